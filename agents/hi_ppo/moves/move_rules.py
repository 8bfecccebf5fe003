"""Rules of when and how far to re-plan: the choice of the move policy, and fixed ones beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np

from agents.decision.levels import LEVELS, MoveLevel
from agents.replanning.levels import Levels
from des.base.checks import require_one_of
from des.base.jit import kernel
from des.compiled.many.layout import Real, Whole

HORIZONS_EPOCHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Expected stays of a plan. [epochs]"""

BELIEFS = (0.0, 0.5, 1.0)
"""Beliefs about a plan's later cost: 0, as much as now; 1, as much as in the long run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRule:
    """Take the plan that does most work within the horizon, its move first, of those in reach.

    The cost of an iteration is ``now^(1 - belief) * expected^belief``, see `work_left`. Under the
    level ``nothing`` the plan stays, whatever the rest says.
    """

    level: MoveLevel
    horizon_epochs: float
    belief: float

    def __post_init__(self) -> None:
        for name, allowed in (
            ("level", LEVELS),
            ("horizon_epochs", HORIZONS_EPOCHS),
            ("belief", BELIEFS),
        ):
            require_one_of("move rule", name, getattr(self, name), allowed)


STAY = MoveRule(level="nothing", horizon_epochs=1.0, belief=0.0)

_RULES_OF_LEVEL = len(BELIEFS) * len(HORIZONS_EPOCHS)


@dataclass(frozen=True)
class RuleSet:
    """Rules of some levels, the least first; the last level reaches every plan.

    A policy chooses one of ``rules`` by its index; the first one keeps the plan.
    """

    levels: tuple[MoveLevel, ...]

    @property
    def top(self) -> MoveLevel:
        """The level that reaches every plan."""
        return self.levels[-1]

    @cached_property
    def rules(self) -> tuple[MoveRule, ...]:
        """All rules."""
        return (
            STAY,
            *(
                MoveRule(level=level, horizon_epochs=horizon, belief=belief)
                for level, belief, horizon in product(self.levels[1:], BELIEFS, HORIZONS_EPOCHS)
            ),
        )

    def rule(self, level: MoveLevel, horizon_epochs: float, belief: float = 0.0) -> MoveRule:
        """One of ``rules``."""
        return self.rules[self.index_of(level, horizon_epochs, belief)]

    def index_of(self, level: MoveLevel, horizon_epochs: float, belief: float = 0.0) -> int:
        """Index of a rule among ``rules``.

        Examples
        --------
        >>> PIPELINE_RULES.index_of("nothing", 4.0), PIPELINE_RULES.index_of("depth", 0.5)
        (0, 2)
        """
        if level == "nothing":
            return 0
        return self.rules.index(MoveRule(level=level, horizon_epochs=horizon_epochs, belief=belief))

    def bounded(self, levels: Levels) -> Levels:
        """Return levels of changes by position in ``levels``: those above count as the last."""
        return np.minimum(levels, np.int8(len(self.levels) - 1))


PIPELINE_RULES = RuleSet(LEVELS[:4])
"""Rules of policies that were trained on single pipelines; ``order`` reaches whatever there is."""

WHOLE_RULES = RuleSet(LEVELS)
"""Rules of policies for plans of all families."""


def work_left(move: float | Real, run: Real, horizon_epochs: float | Real = 1.0) -> Real:
    """Minus the work of a horizon: an epoch has a cost of 1 to spend, on the move first."""
    return (move - horizon_epochs) / run


def believed_costs(now: Real, expected: Real) -> tuple[Real, Real]:
    """Horizon, (L, 1), and believed cost of an iteration of each plan, (L, C), by rule of a level.

    Rows are in the order of `RuleSet.rules`: beliefs, and horizons within them.
    """
    blends = [now ** (1.0 - belief) * expected**belief for belief in BELIEFS]
    horizons = np.tile(np.array(HORIZONS_EPOCHS), len(BELIEFS))[:, np.newaxis]
    return horizons, np.repeat(np.array(blends), len(HORIZONS_EPOCHS), axis=0)


def target_of_each(rules: Whole, move: Real, levels: Levels, now: Real, expected: Real) -> Whole:
    """Plan that each of some rules takes from a present plan of its own, (R,).

    As `targets` has it in row r and column ``rules[r]``, without working out the others.

    Parameters
    ----------
    rules
        Indices into `RuleSet.rules`, (R,).
    move, levels
        As those of `targets`, one row per rule, (R, C).
    """
    reach = (rules + _RULES_OF_LEVEL - 1) // _RULES_OF_LEVEL
    own = (rules - 1) % _RULES_OF_LEVEL
    horizons, believed = (part[own] for part in believed_costs(now, expected))
    total = work_left(np.where(levels <= reach[:, np.newaxis], move, np.inf), believed, horizons)
    every, present = np.arange(len(rules)), levels.argmin(axis=1)
    best = total.argmin(axis=1)
    stays = total[every, present] <= total[every, best]
    chosen: Whole = np.where(stays, present, best)
    return chosen


def targets(rule_set: RuleSet, move: Real, levels: Levels, now: Real, expected: Real) -> Whole:
    """Plan that every rule of a set takes from each of some present plans, (P, R).

    Parameters
    ----------
    move
        Cost of changing from present plan p to plan c, (P, C); 0 where c is p itself.
    levels
        Level of that change, by position among those of the set, (P, C).
    now, expected
        Cost of an iteration of every plan, see `agents.hi_ppo.moves.move_costs.MoveCosts`, (C,).

    Notes
    -----
    Of equally good plans the present one is kept, else the first one is taken.
    """
    horizons, believed = believed_costs(now, expected)
    chosen = np.empty((len(move), len(rule_set.rules)), dtype=np.int64)
    chosen[:, 0] = np.argmin(levels, axis=1)
    _write_targets(chosen, move, levels, horizons[:, 0], believed)
    return chosen


@kernel
def _write_targets(
    chosen: Whole, move: Real, levels: Levels, horizons: Real, believed: Real
) -> None:
    """Write the targets of all rules but the first, whose are there, see `targets`."""
    for state in range(chosen.shape[0]):
        present = chosen[state, 0]
        for rule in range(1, chosen.shape[1]):
            reach, row = 1 + (rule - 1) // horizons.size, (rule - 1) % horizons.size
            horizon, least, best = horizons[row], np.inf, -1
            for plan in range(levels.shape[1]):
                if levels[state, plan] <= reach:
                    total = (move[state, plan] - horizon) / believed[row, plan]
                    if best < 0 or total < least:
                        least, best = total, plan
            stays = (move[state, present] - horizon) / believed[row, present] <= least
            chosen[state, rule] = present if stays else best


Rows = Callable[[Whole], tuple[Real, Levels]]
"""Costs of all changes from some plans and how far they go, both (P, C), from their numbers."""

MEMORIES = (0.8, 0.95, 1.0)
"""Weight of an epoch over that of the next one."""

_KEEP = np.array(MEMORIES)[:, np.newaxis]


@cache
def bank_of(rule_set: RuleSet) -> tuple[int, ...]:
    """Rules of a set that run in parallel to its policy, by index."""
    index_of, top = rule_set.index_of, rule_set.top
    return (
        0,
        *(index_of(top, horizon) for horizon in HORIZONS_EPOCHS),
        *(
            index_of(top, horizon, belief)
            for belief, horizon in product(BELIEFS[1:], (1.0, 4.0, 16.0))
        ),
        *(index_of("split", horizon) for horizon in (1.0, 8.0)),
        index_of("depth", 1.0),
    )


def bank_names(rule_set: RuleSet) -> tuple[str, ...]:
    """Names of the features of a bank."""
    return tuple(f"rule_{rule}_{memory:g}" for memory in MEMORIES for rule in bank_of(rule_set))


class RuleBank:
    """Runs the rules of `bank_of` from one plan on.

    Attributes
    ----------
    plans
        Present plan of each rule, by number.
    """

    def __init__(self, start: int, rule_set: RuleSet) -> None:
        self._rules: Whole = np.array(bank_of(rule_set))
        self.plans: Whole = np.full(len(self._rules), start, dtype=np.int64)
        self._costs = np.zeros((len(MEMORIES), len(self._rules)))
        self._weights = np.zeros((len(MEMORIES), 1))

    def features(self) -> Real:
        """Mean work an epoch that each rule is behind the best one, as `bank_names` has them."""
        means = self._costs / np.maximum(self._weights, 1.0)
        features: Real = np.log1p(16.0 * (means - means.min(axis=1, keepdims=True))).ravel()
        return features

    def see(self, now: Real, expected: Real, rows: Rows) -> None:
        """Let each rule decide, and pay for its decision and for the epoch; the first is free.

        Parameters
        ----------
        now, expected
            Cost of an iteration of every plan, (C,).
        """
        places, place_of = np.unique(self.plans, return_inverse=True)
        move, levels = rows(places)
        own = move[place_of]
        chosen = target_of_each(self._rules, own, levels[place_of], now, expected)
        is_first = not self._weights.any()
        price = 0.0 if is_first else own[np.arange(len(chosen)), chosen]
        paid = work_left(price, now[chosen])
        self._costs = _KEEP * self._costs + paid
        self._weights = _KEEP * self._weights + 1.0
        self.plans = chosen
