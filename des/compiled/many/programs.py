"""Memory that stages hold by schedule and number of stages, as the kernels read it."""

from collections.abc import Sequence

import numpy as np

from des.compiled.many.layout import HeldMoments
from des.compiled.many.steady import Programs
from des.job.workload import Workload
from des.schedules import Orders, most_held, peaks_held, stage_orders


def moments_of(pipelines: Sequence[Orders]) -> HeldMoments:
    """Say what the stages of several pipelines hold at the moments that can be their worst.

    ``first`` (P,) is where the stages of each pipeline begin. Every stage has a worker of its own.
    """
    first, starts, held = [], [0], []
    for orders in pipelines:
        first.append(len(starts) - 1)
        for moments in peaks_held(orders):
            held += [moment for (moment,) in moments]
            starts.append(len(held))
    return HeldMoments(
        first=np.array(first),
        start=np.array(starts),
        num_whole=np.array([one.num_whole for one in held]),
        num_halved=np.array([one.num_halved for one in held]),
    )


def programs_of(schedules: Sequence[str], most_stages: int, workload: Workload) -> Programs:
    """Say what stages of plans hold by schedule and number of stages."""
    count = workload.num_microbatches
    groups = [(name, size) for name in schedules for size in range(1, most_stages + 1)]
    pipelines = [stage_orders(*group, count) for group in groups]
    windows = [
        window
        for (_, size), orders in zip(groups, pipelines, strict=True)
        for window in most_held(orders, size)
    ]
    return Programs(
        most_stages=most_stages, moments=moments_of(pipelines), window=np.array(windows)
    )
