"""Bank of fixed rules that run in parallel to the policy, each with its own plan and cost."""

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np

from agents.hi_ppo.moves.move_rules import (
    BELIEFS,
    HORIZONS_EPOCHS,
    RuleSet,
    target_of_each,
    work_left,
)
from agents.replanning.levels import Levels
from des.compiled.many.layout import Real, Whole

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
