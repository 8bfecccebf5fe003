"""Groups that share the microbatches of a step so that all end at one time: hand cases."""

import numpy as np
import pytest

from agents.planners.whole.groups import GroupTimes, partition_levels
from des.compiled.many.paced import paced_table

GROUPS = [frozenset({domain}) for domain in range(3)]


def known(times_s: list[list[float]], beats_s: list[list[float]]) -> GroupTimes:
    """Groups of one domain each, on 4 of 8 microbatches."""
    return GroupTimes(
        rows={(group, 4): row for row, group in enumerate(GROUPS)},
        times_s=np.array(times_s),
        beats_s=np.array(beats_s),
        plans=paced_table(len(times_s), 1),
    )


def test_two_groups_end_together():
    """``10 + 2 (n - 4) = 14 + 3 (4 - n)`` on ``n`` and ``8 - n`` microbatches: ``n = 4.8``."""
    times = known([[10.0], [14.0], [1.0]], [[2.0], [3.0], [1.0]])

    levels = partition_levels(np.array([[0, 1, 0]]), np.array([2]), times, 8)

    assert levels.step_s.tolist() == pytest.approx([11.6])
    assert levels.shares[0, :2].tolist() == pytest.approx([4.8, 3.2])


def test_the_best_schedule_under_which_all_groups_fit_is_taken():
    """The first group fits under the last two schedules alone, the third under none."""
    never = np.inf
    times = known(
        [[never, 9.0, 8.0], [1.0, 9.0, 8.0], [never] * 3], [[1.0] * 3, [1.0] * 3, [never] * 3]
    )

    levels = partition_levels(np.array([[0, 1], [0, 2]]), np.array([2, 2]), times, 8)

    assert levels.places.tolist() == [0]
    assert levels.schedule.tolist() == [2]
    assert levels.step_s.tolist() == pytest.approx([8.0])
