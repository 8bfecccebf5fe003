"""Judgement of groups of domains as sketches: pipelines, levelled shares, estimated exchanges."""

from collections.abc import Sequence

import numpy as np

from agents.judge.paced_judge import FEW_SCHEDULES, Order, PacedJudge
from agents.planners.whole.level_kernels import write_levels
from agents.planners.whole.rings import ExchangeTimes
from des import Corrections, Topology, Workload
from des.compiled.many.layout import Real
from des.compiled.many.steady import Plans

Groups = tuple[Order, ...]
"""Orders of domains, a pipeline each; several train copies of the model."""

SKETCH_SCHEDULES = tuple(sorted(FEW_SCHEDULES))
"""Schedules of sketches."""


class SketchJudge:
    """Judges groups of a job on one network that stands still, under `SKETCH_SCHEDULES`.

    Times are those of the simulator for one pipeline with a direct link at each border; several
    get shares that end together, and the time of a ring or a star over the gradients on top.
    """

    def __init__(self, topology: Topology, workload: Workload, corrections: Corrections) -> None:
        self.judge = PacedJudge(topology, workload, corrections, schedules=SKETCH_SCHEDULES)
        self._exchanges = ExchangeTimes(topology, workload, corrections)

    def step_times_s(self, sketches: Sequence[Groups]) -> Real:
        """Times of a step under each schedule, (N, S); ``inf`` where a group does not fit. [s]"""
        total = self.judge.workload.num_microbatches
        entry: dict[tuple[Order, int], int] = {}
        index = [
            [entry.setdefault((order, max(1, total // len(one))), len(entry)) for order in one]
            for one in sketches
        ]
        orders, counts = [order for order, _ in entry], np.array([count for _, count in entry])
        scored = self.judge.scored(orders, counts.tolist())
        num = len(SKETCH_SCHEDULES)
        times_s = scored.times_s.reshape(-1, num)
        if (counts < total).any():
            later = counts + np.maximum(1, counts // 4)
            further = self.judge.judged(scored.plans, later.repeat(num))
            gains_s = further.times_s.reshape(-1, num) - np.where(
                np.isfinite(times_s), times_s, 0.0
            )
            beats_s = gains_s / (later - counts)[:, np.newaxis]
        found = np.empty((len(sketches), num))
        for row, own in enumerate(index):
            if len(own) == 1:
                found[row] = times_s[own[0]]
            else:
                groups, size, level_s = np.array([own]), np.array([len(own)]), found[row : row + 1]
                write_levels(times_s, beats_s, groups, size, counts[own[:1]], total, level_s)
                found[row] += self._exchange_s(scored.plans, own, found[row], num)
        return found

    def _exchange_s(self, plans: Plans, own: Sequence[int], times_s: Real, num: int) -> float:
        """Time to exchange the gradients of groups under their best schedule. [s]"""
        best = int(times_s.argmin())
        if not np.isfinite(times_s[best]):
            return 0.0
        rows = np.array([[group * num + best for group in own]])
        num_bytes = float(self.judge.workload.gradient_bytes)
        ring_s, star_s = self._exchanges.rings_and_stars_s(
            plans, rows, np.array([len(own)]), num_bytes
        )
        return min(float(ring_s[0]), float(star_s[0]))
