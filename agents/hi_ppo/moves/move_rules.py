"""Rules of when and how far to re-plan: what the move policy chooses from at every epoch."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from agents.decision.situation import MoveLevel
from des.compiled.many.layout import Real, Whole

LEVELS: tuple[MoveLevel, ...] = ("nothing", "depth", "split", "order")
"""Levels of change from the present plan that a rule allows, by index."""

HORIZONS_EPOCHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Expected stays of a plan. [epochs]"""

BELIEFS = (0.0, 0.5, 1.0)
"""Beliefs about a plan's later cost: 0, as much as now; 1, as much as in the long run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRule:
    """Take the plan of least move cost + horizon x cost of an epoch, of those within reach.

    The cost of an epoch is ``now^(1 - belief) * expected^belief``. Under the level ``nothing``
    the plan stays, whatever the rest says.
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
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"move rule: {name} must be one of {', '.join(map(str, allowed))}; "
                    f"got {getattr(self, name)!r}"
                )


STAY = MoveRule(level="nothing", horizon_epochs=1.0, belief=0.0)

RULES: tuple[MoveRule, ...] = (
    STAY,
    *(
        MoveRule(level=level, horizon_epochs=horizon, belief=belief)
        for level, belief, horizon in product(LEVELS[1:], BELIEFS, HORIZONS_EPOCHS)
    ),
)
"""All rules; the policy answers with the index of one. The first one keeps the plan."""

_RULES_OF_LEVEL = len(BELIEFS) * len(HORIZONS_EPOCHS)


def index_of(level: MoveLevel, horizon_epochs: float, belief: float = 0.0) -> int:
    """Index of a rule in `RULES`.

    Examples
    --------
    >>> RULES[index_of("order", 4.0)].horizon_epochs, index_of("nothing", 4.0)
    (4.0, 0)
    """
    if level == "nothing":
        return 0
    return RULES.index(MoveRule(level=level, horizon_epochs=horizon_epochs, belief=belief))


def believed_costs(now: Real, expected: Real) -> Real:
    """Cost of each plan over the horizon by every rule of one level, (L, C).

    Rows are in the order of `RULES`: beliefs, and horizons within them.
    """
    blends = [now ** (1.0 - belief) * expected**belief for belief in BELIEFS]
    horizons = np.array(HORIZONS_EPOCHS)[:, np.newaxis]
    return np.concatenate([horizons * blend for blend in blends])


def target_of_each(
    rules: Whole, move: Real, levels: npt.NDArray[np.int8], now: Real, expected: Real
) -> Whole:
    """Plan that each of some rules takes from a present plan of its own, (R,).

    As `targets` has it in row r and column ``rules[r]``, without working out the others.

    Parameters
    ----------
    rules
        Indices into `RULES`, (R,).
    move, levels
        As those of `targets`, one row per rule, (R, C).
    """
    reach = (rules + _RULES_OF_LEVEL - 1) // _RULES_OF_LEVEL
    believed = believed_costs(now, expected)[(rules - 1) % _RULES_OF_LEVEL]
    total = np.where(levels <= reach[:, np.newaxis], move, np.inf) + believed
    every, present = np.arange(len(rules)), levels.argmin(axis=1)
    best = total.argmin(axis=1)
    stays = total[every, present] <= total[every, best]
    chosen: Whole = np.where(stays, present, best)
    return chosen


def targets(move: Real, levels: npt.NDArray[np.int8], now: Real, expected: Real) -> Whole:
    """Plan that every rule takes from each of some present plans, (P, len(RULES)).

    Parameters
    ----------
    move
        Cost of changing from present plan p to plan c, (P, C); 0 where c is p itself.
    levels
        Level of that change, indices into `LEVELS`, (P, C).
    now, expected
        Cost of an epoch under every plan, in the unit of ``move``, (C,).

    Notes
    -----
    Of equally good plans the present one is kept, else the first one is taken.
    """
    believed = believed_costs(now, expected)
    num_present = len(move)
    chosen = np.empty((num_present, len(RULES)), dtype=np.int64)
    chosen[:, 0] = present = np.argmin(levels, axis=1)
    every = np.arange(num_present)
    for reach in range(1, len(LEVELS)):
        columns = np.flatnonzero((levels <= reach).any(axis=0))
        allowed = np.where(levels[:, columns] <= reach, move[:, columns], np.inf)
        total = allowed[:, np.newaxis, :] + believed[np.newaxis, :, columns]
        best = total.argmin(axis=2)
        stays = total[every, :, np.searchsorted(columns, present)] <= total.min(axis=2)
        span = slice(1 + (reach - 1) * _RULES_OF_LEVEL, 1 + reach * _RULES_OF_LEVEL)
        chosen[:, span] = np.where(stays, present[:, np.newaxis], columns[best])
    return chosen
