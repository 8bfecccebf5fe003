"""Layers of single stages: moved one by one, as stages that wait for links have time for fewer.

A stage beside a link does nothing while what it has sent is under way, where sends block; so one
layer less there and one more inside the site shortens every round.
"""

import numpy as np

from agents.search.kernels.held_levels import write_site_layers
from agents.search.kernels.layouts import num_devices_of
from agents.search.kernels.pipeline_times import staged_iteration_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import inner_kernel, lean_kernel

_SHORT = 16
"""Most workers of a short pipeline."""


@lean_kernel
def better_counts(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    split: np.ndarray,
    room: Room,
    counts: np.ndarray,
    start_s: float,
    most_rounds: int,
) -> float:
    """Move layers from stage to stage, one at a time, as long as it helps; returns the time.

    They go to stages of the same site and, with one chunk, of those beside it. Ends when all moves
    were tried since the last one that helped.

    Parameters
    ----------
    split, counts
        Layers of each site, and of each stage, which are written over. (sites, 2), (stages,)
    start_s
        Time with the counts that come in. [s]
    """
    best_s, last = start_s, (-1, -1)
    num_workers = num_devices_of(split)
    for _ in range(most_rounds):
        before_s, is_over = best_s, False
        for giver in range(len(counts)):
            first, end = _reach_of(split, giver % num_workers, rules.num_chunks == 1)
            for device in range(first, end):
                is_over = is_over or last == (giver, device)
                taker = giver - giver % num_workers + device
                stands_out = _stands_out(split, counts, giver) and _stands_out(split, counts, taker)
                while not is_over and stands_out and counts[giver] > 1 and taker != giver:
                    counts[giver] -= 1
                    counts[taker] += 1
                    found_s = staged_iteration_s(figures, rules, chain, split, counts, room, best_s)
                    if not found_s < best_s:
                        counts[giver] += 1
                        counts[taker] -= 1
                        break
                    best_s, last = found_s, (giver, device)
        if not best_s < before_s:
            break
    if best_s < start_s and rules.num_chunks == 1:
        write_site_layers(split, counts)
    return best_s


@inner_kernel
def _stands_out(split: np.ndarray, counts: np.ndarray, stage: int) -> bool:
    """Whether a stage has other layers than one beside it, or is among two at an end of its site.

    Of equal stages side by side between those any does nearly as well in a long pipeline as the
    first or last one; in a short one all stand out.
    """
    num_workers = num_devices_of(split)
    if num_workers <= _SHORT:
        return True
    own, end = _reach_of(split, stage % num_workers, False)
    worker = stage % num_workers
    if worker < own + 2 or worker >= end - 2:
        return True
    return bool(counts[stage - 1] != counts[stage] or counts[stage + 1] != counts[stage])


@inner_kernel
def _reach_of(split: np.ndarray, worker: int, goes_beyond: bool) -> tuple[int, int]:
    """First worker of the site that one belongs to, or of the site before, and the last one's end.

    ``goes_beyond`` takes in the sites before and behind.
    """
    first, at = 0, 0
    while worker >= first + split[at, 0]:
        first += split[at, 0]
        at += 1
    end = first + split[at, 0]
    if goes_beyond:
        if at > 0:
            first -= split[at - 1, 0]
        if at + 1 < len(split):
            end += split[at + 1, 0]
    return first, end
