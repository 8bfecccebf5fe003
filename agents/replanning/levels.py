"""Levels of the changes between many plans, with each plan analysed once."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from agents.decision.levels import LEVELS, level_marks
from des import Plan
from des.compiled.many.layout import Whole

Levels = npt.NDArray[np.int8]
"""Positions in `agents.decision.levels.LEVELS`."""


class PlanLevels:
    """Levels of all changes between plans that are known by their numbers; more may come."""

    def __init__(self, plans: Sequence[Plan] = ()) -> None:
        self._numbers: tuple[dict[Hashable, int], ...] = tuple({} for _ in LEVELS[1:])
        self._marks: Whole = np.empty((len(self._numbers), 0), dtype=np.int64)
        self.add(plans)

    def add(self, plans: Sequence[Plan]) -> None:
        """Take in more plans, numbered on from those there are; equal ones may come again."""
        marks = [
            [
                numbers.setdefault(mark, len(numbers))
                for numbers, mark in zip(self._numbers, level_marks(plan), strict=True)
            ]
            for plan in plans
        ]
        new = np.array(marks, dtype=np.int64).reshape(len(marks), len(self._numbers)).T
        self._marks = np.concatenate([self._marks, new], axis=1)

    def between(self, sources: Whole, targets: Whole | None = None) -> Levels:
        """Level of each change from some plans, (S,), to others or all, (C,), shaped (S, C)."""
        old = self._marks[:, sources, np.newaxis]
        new = self._marks if targets is None else self._marks[:, targets]
        differs = old != new[:, np.newaxis]
        levels: Levels = differs.sum(axis=0, dtype=np.int8)
        return levels


def levels_between(sources: Sequence[Plan], plans: Sequence[Plan]) -> Levels:
    """Level of each change from S plans to C others, (S, C), see
    `agents.decision.levels.level_of`.

    Examples
    --------
    >>> from des import Placement
    >>> here, there = (Plan(placement=Placement.parse(text)) for text in ("0*3,1*1", "0*2,1*2"))
    >>> levels_between([here], [here, there])
    array([[0, 2]], dtype=int8)
    """
    levels = PlanLevels([*sources, *plans])
    num = len(sources)
    return levels.between(np.arange(num), np.arange(num, num + len(plans)))
