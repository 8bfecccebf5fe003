"""Observation of the move policy: the past, costs of rules so far, and each rule's plan now."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from agents.hi_ppo.moves.move_history import (
    HISTORY_NAMES,
    WINDOW_EPOCHS,
    expected_costs,
    history_features,
    trailing_run,
)
from agents.hi_ppo.moves.move_rules import (
    HORIZONS_EPOCHS,
    PIPELINE_RULES,
    Rows,
    RuleBank,
    RuleSet,
    bank_names,
    targets,
)
from agents.replanning.levels import Levels
from des.compiled.many.layout import Flags, Real, Whole

_LEAST_LOG, _MOST_LOG = -4.0, 6.0  # of horizons after which a move has paid


@cache
def observation_names(rule_set: RuleSet) -> tuple[str, ...]:
    """Names of the entries of an observation of a policy with these rules; all without units."""
    return (
        *HISTORY_NAMES,
        *bank_names(rule_set),
        "cost_now",
        "over_expected",
        "expected_regret",
        *(f"regret_{level}" for level in rule_set.levels[1:]),
        *(f"pays_after_{level}" for level in rule_set.levels[1:]),
        "pays_after_in_expectation",
        "least_move",
        "probed_age",
        "probed_autocorrelation_1",
        "probed_autocorrelation_4",
        *(
            f"{kind}_{rule}"
            for kind in ("saving", "price", "expected_saving")
            for rule in _list_shown(rule_set)
        ),
    )


@cache
def _list_shown(rule_set: RuleSet) -> tuple[int, ...]:
    """Rules of which the policy sees what their plans save and cost, by index."""
    index_of, top = rule_set.index_of, rule_set.top
    return (
        *(index_of(top, horizon) for horizon in HORIZONS_EPOCHS),
        *(index_of(top, horizon, 0.5) for horizon in (1.0, 4.0, 16.0)),
        *(index_of(top, horizon, 1.0) for horizon in (1.0, 4.0, 16.0, 64.0)),
        *(index_of("split", horizon) for horizon in (2.0, 8.0)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveView:
    """One decision, from each of some present plans.

    Attributes
    ----------
    observation
        As `observation_names` says, (P, D).
    targets
        Plan that each rule takes, (P, R).
    price
        Cost of changing to every plan, (P, C).
    """

    observation: npt.NDArray[np.float32]
    targets: Whole
    price: Real


class MoveMemory:
    """Remembers an episode epoch by epoch; candidates have numbers, and may become more.

    Parameters
    ----------
    base
        Cost of an iteration of each candidate at base figures, (C,).
    start
        The plan that is in force at first.
    rule_set
        Rules of the policy.
    """

    def __init__(self, base: Real, start: int, rule_set: RuleSet = PIPELINE_RULES) -> None:
        self.base, self._rule_set = np.asarray(base, dtype=np.float64), rule_set
        self._bank = RuleBank(start, rule_set)
        self._reaches = range(1, len(rule_set.levels))
        self._log_relative: Real = np.empty((0, len(self.base)))
        self._now: Real = np.empty(0)
        self._expected: Real = np.empty(0)
        self._shared: Real = np.empty(0)
        self._rows: Rows | None = None

    def add(self, base: Real) -> None:
        """Take more candidates in, that cost so much at base figures, (N,).

        In epochs before, they are thought to have cost over base what others did, by the median.
        """
        past = np.median(self._log_relative, axis=1, keepdims=True)
        self._log_relative = np.hstack((self._log_relative, np.repeat(past, len(base), axis=1)))
        self.base = np.concatenate((self.base, base))

    @property
    def occupied(self) -> Whole:
        """Candidates on which fixed rules stand; those must be kept."""
        return self._bank.plans

    def keep(self, candidates: Whole) -> None:
        """Keep only some candidates, numbers in rising order, and renumber them."""
        self._log_relative = self._log_relative[:, candidates]
        self.base = self.base[candidates]
        self._bank.plans = np.searchsorted(candidates, self._bank.plans)
        self._rows = None

    def see(self, now: Real, rows: Rows) -> None:
        """Begin an epoch: what every candidate costs now, (C,), and what changes cost.

        Raises
        ------
        ValueError
            If there is not one positive and finite cost for each candidate.
        """
        if now.shape != self.base.shape or not (np.isfinite(now) & (now > 0)).all():
            raise ValueError(
                f"move memory: now must be {len(self.base)} positive and finite costs, got {now!r}"
            )
        present = np.log(now / self.base)
        self._log_relative = np.vstack((self._log_relative, present))[-WINDOW_EPOCHS:]
        self._now, self._rows = now, self._bound(rows)
        self._expected = expected_costs(np.exp(self._log_relative), self.base)
        self._bank.see(self._now, self._expected, self._rows)
        history = history_features(self._log_relative, np.log(self.base))
        self._shared = np.concatenate((history, self._bank.features()))

    def view(self, present: Whole) -> MoveView:
        """Look at the epoch from each of some present plans, (P,)."""
        if self._rows is None:
            raise RuntimeError("move memory: see must be called first")
        price, levels = self._rows(present)
        chosen = targets(self._rule_set, price, levels, self._now, self._expected)
        own = self._plan_features(present, price, levels, chosen)
        shared = np.broadcast_to(self._shared, (len(present), len(self._shared)))
        observation = np.hstack((shared, own)).astype(np.float32)
        if not np.isfinite(observation).all():
            raise ValueError("move memory: observations must be finite; some cost was not")
        return MoveView(observation=observation, targets=chosen, price=price)

    def _bound(self, rows: Rows) -> Rows:
        """Rows with levels by position among those of the rules."""

        def bounded(plans: Whole) -> tuple[Real, Levels]:
            price, levels = rows(plans)
            return price, self._rule_set.bounded(levels)

        return bounded

    def _plan_features(self, present: Whole, price: Real, levels: Levels, chosen: Whole) -> Real:
        """Features of plans, those of `observation_names` from ``cost_now`` on, (P, ...)."""
        now, expected = self._now, self._expected
        own, own_expected = now[present], expected[present]
        columns = [np.log(own), np.log(own / own_expected), np.log(own_expected / expected.min())]
        within = [(levels <= reach) & np.isfinite(price) for reach in self._reaches]
        columns += [np.log(own / np.where(mask, now, np.inf).min(axis=1)) for mask in within]
        columns += [_pays_after(price, own, now, mask) for mask in within]
        columns.append(_pays_after(price, own_expected, expected, within[-1]))
        least = np.where(levels > 0, price, np.inf).min(axis=1)
        columns.append(np.where(np.isfinite(least), _squashed(least), _MOST_LOG))
        probed = self._rule_set.index_of(self._rule_set.top, 4.0)
        columns += self._probe(present, chosen[:, probed])
        to = chosen[:, _list_shown(self._rule_set)]
        saving = np.log(own[:, np.newaxis] / now[to])
        paid = _squashed(price[np.arange(len(present))[:, np.newaxis], to])
        in_the_long_run = np.log(own_expected[:, np.newaxis] / expected[to])
        return np.hstack((np.stack(columns, axis=1), saving, paid, in_the_long_run))

    def _probe(self, present: Whole, other: Whole) -> list[Real]:
        """Time for which another plan has been better, and how persistent the saving is."""
        log_cost = self._log_relative + np.log(self.base)
        saving = log_cost[:, present] - log_cost[:, other]
        deviation = saving - saving.mean(axis=0)
        power = np.square(deviation).sum(axis=0)
        correlations = []
        for lag in (1, 4):
            product = (deviation[lag:] * deviation[:-lag]).sum(axis=0)
            is_told = (power > 1e-12) & (len(saving) >= lag + 2)
            correlations.append(np.where(is_told, product / np.maximum(power, 1e-12), 0.0))
        return [np.log1p(trailing_run(saving > 0.02)), *correlations]


def _pays_after(price: Real, own: Real, costs: Real, mask: Flags) -> Real:
    """Logarithm of the least number of epochs after which a move has paid, (P,)."""
    saving = own[:, np.newaxis] - costs
    pays = mask & (saving > 1e-9)
    share = np.where(pays, saving, 1.0) / own[:, np.newaxis]
    epochs = np.where(pays, price / share, np.inf).min(axis=1)
    clipped: Real = np.clip(epochs, math.exp(_LEAST_LOG), math.exp(_MOST_LOG))
    return np.log(clipped)


def _squashed(price: Real) -> Real:
    return np.log1p(4.0 * price)
