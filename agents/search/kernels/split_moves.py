"""Splits of a chain made better step by step: devices of a site, and layers from site to site."""

import numpy as np

from agents.search.kernels.levels import write_even
from agents.search.kernels.pipeline_times import staged_iteration_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from agents.search.kernels.splits import copy_split
from des.base.jit import inner_kernel, lean_kernel


@lean_kernel
def better_split(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    start_s: float,
    most_rounds: int,
) -> float:
    """Improve a split by moves of layers and devices until none helps; returns its time. [s]

    Moves are those of one site's devices, and of layers from it to others, as many as a device of
    either has or one or two; a move that helps is made again.
    """
    best_s, size = start_s, len(chain)
    num_moves = 2 if rules.is_even else 2 + 4 * size
    for _ in range(most_rounds):
        before_s = best_s
        for move in range(size * num_moves):
            giver, kind = move // num_moves, move % num_moves
            while _write_moved(figures, rules, chain, split, scratch, giver, kind):
                found_s = staged_iteration_s(
                    figures, rules, chain, scratch, room.no_counts, room, best_s
                )
                if not found_s < best_s:
                    break
                best_s = found_s
                copy_split(scratch, split)
        if not best_s < before_s:
            break
    return best_s


@inner_kernel
def _write_moved(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    split: np.ndarray,
    scratch: np.ndarray,
    giver: int,
    kind: int,
) -> bool:
    """Write the split after a move of a site: a device less, one more, or layers to another one."""
    copy_split(split, scratch)
    if kind < 2:
        devices = split[giver, 0] + 2 * kind - 1
        if devices < 1 or devices > figures.num_devices[chain[giver]]:
            return False
        scratch[giver, 0] = devices
        if rules.is_even and not write_even(figures, rules, scratch):
            return False
        return bool(devices * rules.num_chunks <= scratch[giver, 1])
    taker, size = (kind - 2) // 4, (kind - 2) % 4
    count = size + 1
    if size > 1:
        count = split[giver if size == 2 else taker, 0]
    scratch[giver, 1] -= count
    scratch[taker, 1] += count
    return bool(taker != giver and scratch[giver, 1] >= split[giver, 0] * rules.num_chunks)
