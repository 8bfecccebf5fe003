"""Splits and depths of good plans made better, step by step."""

from collections.abc import Sequence

import numpy as np

from agents.judge.search_judge import Judge
from agents.planners.search.search_moves import double_resplits, joined, resplits
from des.compiled.many.layout import Real, Whole
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Plans

_FEWEST_ACTIVE = 64
"""Plans that are kept however they compare with others."""

_NUM_LAST, _MOST_DOUBLE_MOVES = 12, 100_000
"""Most plans left at last, and most of their neighbours two moves away."""


def refined(judge: Judge, plans: Plans, scores: Real) -> tuple[Plans, float]:
    """Take plans to their best neighbours as long as that helps; returns the best one of all.

    All are refined side by side, so that there are many to judge at a time; after each step the
    better half is kept. Neighbours are `resplits` under all schedules. When none of them helps any
    more, the last few look at `double_resplits` too. The plans and their scores are overwritten.
    """
    active = np.argsort(scores, kind="stable")
    while len(active) and judge.num_left > 0:
        near = [resplits(plans, row, len(judge.schedules)) for row in active.tolist()]
        active = _stepped(judge, plans, scores, active, near)
        active = active[np.argsort(scores[active], kind="stable")]
        active = active[: max(_FEWEST_ACTIVE, len(active) // 2)]
        if not len(active):
            active = _twice_moved(judge, plans, scores)
    best = int(scores.argmin())
    return plan_rows(plans, np.array([best])), float(scores[best])


def _twice_moved(judge: Judge, plans: Plans, scores: Real) -> Whole:
    """Take the best plans to the best that is two moves away; returns those it made better."""
    last = np.argsort(scores, kind="stable")[:_NUM_LAST]
    near: list[Plans] = []
    num_near = 0
    for row in last.tolist():
        near.append(double_resplits(plans, row, len(judge.schedules)))
        num_near += len(near[-1].num_stages)
        if num_near > _MOST_DOUBLE_MOVES:
            break
    return _stepped(judge, plans, scores, last[: len(near)], near)


def _stepped(
    judge: Judge, plans: Plans, scores: Real, active: Whole, near: Sequence[Plans]
) -> Whole:
    """Take the active plans to the best of what is near each; returns those that it made better."""
    together = joined(near)
    found = judge.scores(together)
    improved, begin = [], 0
    for row, own in zip(active.tolist(), near, strict=True):
        end = begin + len(own.num_stages)
        best = begin + int(found[begin:end].argmin())
        if found[best] < scores[row]:
            scores[row] = found[best]
            for field, source in zip(plans, together, strict=True):
                field[row] = source[best]
            improved.append(row)
        begin = end
    return np.array(improved, dtype=np.int64)
