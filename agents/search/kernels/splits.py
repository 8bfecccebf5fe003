"""Devices and layers of the sites of a chain: level to begin with, then better step by step."""

import numpy as np

from agents.search.kernels.held_levels import write_held_counts
from agents.search.kernels.layouts import num_devices_of
from agents.search.kernels.levels import (
    level_s,
    levels_of_sites,
    write_even,
    write_fitting_level,
    write_level,
)
from agents.search.kernels.pipeline_times import staged_iteration_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import inner_kernel, lean_kernel

_NO_END = 1 << 30
"""More proposals than there are."""

_OVER, _NONE, _PLAIN, _COUNTED = range(4)
"""Outcomes of a proposal: no more, none this time, a split, a split with layers of each stage."""


@inner_kernel
def _copy(source: np.ndarray, target: np.ndarray) -> None:
    for at in range(len(source)):
        target[at, 0], target[at, 1] = source[at, 0], source[at, 1]


@inner_kernel
def _has_same_devices(one: np.ndarray, other: np.ndarray) -> bool:
    differing = 0
    for at in range(len(one)):
        differing += one[at, 0] != other[at, 0]
    return differing == 0


@inner_kernel
def _write_next_even(
    figures: SiteFigures, rules: TimingRules, chain: np.ndarray, scratch: np.ndarray, attempt: int
) -> int:
    """Write an even split: on all devices, then on one less of the slowest site each time."""
    if attempt == 0:
        for at in range(len(chain)):
            scratch[at, 0] = figures.num_devices[chain[at]]
    else:
        slowest, slowest_s = -1, -1.0
        for at in range(len(chain)):
            own_s = figures.layer_s[chain[at]]
            if scratch[at, 0] > 1 and own_s > slowest_s:
                slowest, slowest_s = at, own_s
        if slowest < 0:
            return _OVER
        scratch[slowest, 0] -= 1
    return _PLAIN if write_even(figures, rules, scratch) else _NONE


@inner_kernel
def _write_next(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    most_workers: int,
    attempt: int,
) -> int:
    """Write a level split with all devices, then with few, then both with sends that block.

    The last two have layers of each stage, in the room's counts, and the devices of ``split``. If
    sends do not block one follows that is level within the memory of sites of one device each.
    """
    if attempt < 2:
        num_layers = figures.passes_s.shape[2] - 1
        pace_s = level_s(levels_of_sites(figures), num_layers, chain, rules.num_chunks)
        if not write_level(figures, chain, pace_s, rules.num_chunks, attempt == 1, scratch):
            return _NONE
        return _NONE if attempt == 1 and _has_same_devices(split, scratch) else _PLAIN
    if not rules.is_blocking:
        is_last = attempt > 2 or rules.num_chunks > 1
        if is_last or not write_fitting_level(figures, rules, chain, scratch):
            return _OVER
        return _PLAIN
    if attempt == 4:
        return _OVER
    _copy(split, scratch)
    for at in range(len(chain)):
        if attempt == 3:
            scratch[at, 0] = figures.num_devices[chain[at]]
    num_workers = num_devices_of(scratch)
    if num_workers > most_workers or num_workers < 1:
        return _NONE
    own = room.counts[:num_workers]
    return _COUNTED if write_held_counts(figures, rules, chain, scratch, room, own) else _NONE


@inner_kernel
def _quick_split(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
    limit_s: float,
) -> float:
    """Write the best split of those that are quick to find; its time, or the limit. [s]"""
    best_s = limit_s
    most_workers = min(figures.passes_s.shape[2] - 1, len(counts))
    for attempt in range(_NO_END):
        if rules.is_even:
            found = _write_next_even(figures, rules, chain, scratch, attempt)
        else:
            found = _write_next(figures, rules, chain, room, split, scratch, most_workers, attempt)
        if found == _OVER:
            break
        if found == _NONE:
            continue
        num_counts = num_devices_of(scratch) if found == _COUNTED else 0
        own = room.counts[:num_counts]
        found_s = staged_iteration_s(figures, rules, chain, scratch, own, room, best_s)
        if found_s < best_s or (found == _PLAIN and split[0, 0] == 0):
            best_s = min(best_s, found_s)
            _copy(scratch, split)
            for at in range(len(counts)):
                counts[at] = own[at] if at < num_counts else 0
    return best_s


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
                _copy(scratch, split)
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
    _copy(split, scratch)
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


@lean_kernel
def survey(
    figures: SiteFigures,
    rules: TimingRules,
    chains: np.ndarray,
    lengths: np.ndarray,
    least_s: np.ndarray,
    room: Room,
    limit_s: float,
    ratio: float,
    splits: np.ndarray,
    counts: np.ndarray,
    times_s: np.ndarray,
    scratch: np.ndarray,
) -> int:
    """Write the quick split of every chain and its time, infinite where a limit rules it out.

    Where sends block, layers of each stage that allow for that are tried too.

    Parameters
    ----------
    chains, lengths
        Sites of each chain, (chains, most sites), and how many it has.
    least_s
        Bounds of each chain, see `levels.write_least_s`. [s]
    limit_s
        A chain of which so much time is foreseen is not simulated, nor is a split that takes so
        long at least. [s]
    ratio
        The quickest time found lowers the limit: of chains to itself, of splits to this multiple.
    splits, counts, times_s
        What is written, (chains, most sites, 2), (chains, most stages) and (chains,); counts only
        of chains whose stages are not even in each site.

    Returns
    -------
    int
        Chains that were simulated.
    """
    count, quickest_s = 0, limit_s
    for each in range(len(chains)):
        chain, split = chains[each, : lengths[each]], splits[each, : lengths[each]]
        times_s[each] = np.inf
        if not least_s[each, 0] < quickest_s:
            continue
        kept_s = min(limit_s, ratio * quickest_s)
        if not least_s[each, 1] < kept_s:
            continue
        own, own_counts = scratch[: lengths[each]], counts[each]
        found_s = _quick_split(figures, rules, chain, room, split, own, own_counts, kept_s)
        if found_s < kept_s:
            times_s[each] = found_s
            quickest_s = min(quickest_s, found_s)
        count += 1
    return count
