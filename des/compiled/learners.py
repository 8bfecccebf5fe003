"""Outer steps of learners with clocks of their own, without processes.

At every merge each learner has one report that is not merged: it is made, or its time is known, as
the next steps wait for the merge of the last one. So a merge needs the times of the reports alone.
"""

import numpy as np

from des.base.checks import require_count
from des.base.jit import kernel
from des.compiled.many.layout import Real
from des.plan.learners import Learners, OuterStep, after_steps


def outer_steps(learners: Learners, num_periods: int) -> tuple[OuterStep, ...]:
    """Merges until each learner has been merged some times, as `des.training.learners` has them.

    Raises
    ------
    ValueError
        If the number is out of range.
    """
    require_count("learners", "num_periods", num_periods)
    mode, step_s = learners.mode, np.array(learners.step_s)
    reports_s = np.array([after_steps(0.0, own_s, mode.steps_between) for own_s in learners.step_s])
    num_merged = np.zeros(len(step_s), np.int64)
    found: list[OuterStep] = []
    while num_merged.min() < num_periods:
        before_s, free_s = reports_s.copy(), found[-1].end_s if found else 0.0
        begin_s = _begin_s(reports_s, step_s, free_s, mode.quorum, float(mode.grace_steps))
        end_s = begin_s + learners.merge_s
        is_in = before_s <= begin_s
        _report_again(reports_s, step_s, (begin_s, end_s), mode.steps_between, mode.overlap_steps)
        found.append(OuterStep(begin_s, end_s, tuple(np.where(is_in, before_s, np.inf).tolist())))
        num_merged += is_in
    return tuple(found)


@kernel
def _begin_s(
    reports_s: Real, step_s: Real, free_s: float, quorum: int, grace_steps: float
) -> float:
    """Begin of the next merge: when the last is over, and the grace window or all are in. [s]"""
    last = np.argsort(reports_s, kind="mergesort")[quorum - 1]
    due_s = reports_s[last] + grace_steps * step_s[last]
    return max(free_s, min(due_s, reports_s.max()))


@kernel
def _report_again(
    reports_s: Real,
    step_s: Real,
    merge_s: tuple[float, float],
    steps_between: int,
    overlap_steps: int,
) -> None:
    """Write the next report of those that a merge took: overlap, wait for its end, the rest. [s]"""
    begin_s, end_s = merge_s
    for learner in range(reports_s.size):
        if reports_s[learner] <= begin_s:
            now_s = max(after_steps(reports_s[learner], step_s[learner], overlap_steps), end_s)
            left = steps_between - overlap_steps
            reports_s[learner] = after_steps(now_s, step_s[learner], left)
