"""Times of iterations and epochs of plans, each on a network of its own."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.scheduling.kernels.epoch_times import epoch_times
from agents.scheduling.known_plan import KnownPlan
from agents.scheduling.setting import Setting
from des.compiled.many.each import NetworkFigures, simulate_each
from des.compiled.many.layout import Real, Whole


class StepTimes(NamedTuple):
    """Times of an iteration without and with the exchange that is due once a period. [s]

    ``free_s`` and ``due_s`` are shaped alike; they are equal where every iteration exchanges.
    """

    free_s: Real
    due_s: Real

    @classmethod
    def empty(cls, *shape: int) -> "StepTimes":
        """Make room."""
        return cls(*np.empty((2, *shape)))

    def put(self, rows: Whole, others: "StepTimes") -> None:
        """Replace some of the times."""
        self.free_s[rows], self.due_s[rows] = others


def step_times_of(
    setting: Setting, networks: NetworkFigures, plans: Sequence[KnownPlan]
) -> StepTimes:
    """Simulate an iteration of plan ``n`` on network ``n``, (N,)."""
    rare = [row for row, one in enumerate(plans) if one.period_steps > 1]
    rows = np.array([*range(len(plans)), *rare], dtype=np.int64)
    steps = [one.free_step for one in plans] + [plans[row].period_steps - 1 for row in rare]
    times_s = simulate_each(
        networks.rows(rows),
        setting.common,
        setting.workload,
        [plans[row].plan for row in rows.tolist()],
        setting.corrections,
        steps=steps,
    )
    found = StepTimes(times_s[: len(plans)], times_s[: len(plans)].copy())
    found.due_s[rare] = times_s[len(plans) :]
    return found


def epoch_lengths_s(
    setting: Setting, change_s: Real, times: StepTimes, plans: Sequence[KnownPlan]
) -> Real:
    """Time of an epoch under each plan, its change included, (N,). [s]"""
    found = np.empty(len(plans))
    periods = np.array([one.period_steps for one in plans], dtype=np.int64)
    num_iterations = setting.world.iterations_per_epoch
    epoch_times(change_s, times.free_s, times.due_s, periods, num_iterations, found)
    return found
