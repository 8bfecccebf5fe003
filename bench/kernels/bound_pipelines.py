"""Times of many splits of one chain of sites, as the search of bound plans works them out."""

import numpy as np

from agents.search.kernels.pipeline_times import staged_iteration_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import lean_kernel


@lean_kernel
def write_times_s(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    splits: np.ndarray,
    room: Room,
    times_s: np.ndarray,
) -> None:
    """Write the time of an iteration of each split, (plans, sites, 2). [s]"""
    for each in range(len(splits)):
        times_s[each] = staged_iteration_s(
            figures, rules, chain, splits[each], room.no_counts, room, np.inf
        )
