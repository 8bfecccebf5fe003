"""Layers of single stages: moved within a site, as stages that wait for links have time for fewer.

A stage beside a link does nothing while what it has sent is under way, where sends block; so one
layer less there and one more inside the site shortens every round.
"""

import numpy as np

from agents.search.kernels.pipeline_times import staged_pipeline_s
from agents.search.kernels.records import Figures, Room, Rules
from des.base.jit import lean_kernel


@lean_kernel
def better_counts(
    figures: Figures,
    rules: Rules,
    chain: np.ndarray,
    split: np.ndarray,
    room: Room,
    counts: np.ndarray,
    start_s: float,
    most_rounds: int,
) -> float:
    """Move layers between stages of a site, one at a time, as long as it helps; returns the time.

    Parameters
    ----------
    counts
        Layers of each stage, which are written over. (stages,)
    start_s
        Time with the counts that come in. [s]
    """
    best_s, num_workers = start_s, 0
    for at in range(len(chain)):
        num_workers += split[at, 0]
    for _ in range(most_rounds):
        before_s = best_s
        for giver in range(len(counts)):
            first, end = _site_of(split, giver % num_workers)
            for device in range(first, end):
                taker = giver - giver % num_workers + device
                while counts[giver] > 1 and taker != giver:
                    counts[giver] -= 1
                    counts[taker] += 1
                    found_s = staged_pipeline_s(figures, rules, chain, split, counts, room)
                    if not found_s < best_s:
                        counts[giver] += 1
                        counts[taker] -= 1
                        break
                    best_s = found_s
        if not best_s < before_s:
            break
    return best_s


@lean_kernel
def _site_of(split: np.ndarray, worker: int) -> tuple[int, int]:
    """First worker of the site that one belongs to, and the first one behind it."""
    first = 0
    for at in range(len(split)):
        if worker < first + split[at, 0]:
            return first, first + split[at, 0]
        first += split[at, 0]
    return first, first
