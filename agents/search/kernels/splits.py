"""Devices and layers of the sites of a chain: level to begin with, then better step by step."""

import numpy as np

from agents.search.kernels.held_levels import write_held_counts
from agents.search.kernels.levels import foreseen_s, layer_s, level_s, write_even, write_level
from agents.search.kernels.pipeline_times import pipeline_s, staged_pipeline_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import lean_kernel


@lean_kernel
def _copy(source: np.ndarray, target: np.ndarray) -> None:
    for at in range(len(source)):
        target[at, 0], target[at, 1] = source[at, 0], source[at, 1]


@lean_kernel
def _has_same_devices(one: np.ndarray, other: np.ndarray) -> bool:
    differing = 0
    for at in range(len(one)):
        differing += one[at, 0] != other[at, 0]
    return differing == 0


@lean_kernel
def _quick_even_split(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
) -> float:
    """Write the best even split of those that give up devices of the slowest site one by one."""
    best_s = np.inf
    for at in range(len(chain)):
        scratch[at, 0] = figures.num_devices[chain[at]]
    while True:
        if write_even(figures, rules, scratch):
            found_s = pipeline_s(figures, rules, chain, scratch, room)
            if found_s < best_s:
                best_s = found_s
                _copy(scratch, split)
        slowest, slowest_s = -1, -1.0
        for at in range(len(chain)):
            own_s = layer_s(figures, chain[at])
            if scratch[at, 0] > 1 and own_s > slowest_s:
                slowest, slowest_s = at, own_s
        if slowest < 0:
            return best_s
        scratch[slowest, 0] -= 1


@lean_kernel
def quick_split(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
) -> float:
    """Write the better of the level splits, with all devices and with few; returns its time. [s]"""
    best_s = np.inf
    if rules.is_even:
        return _quick_even_split(figures, rules, chain, room, split, scratch)
    pace_s = level_s(figures, chain, rules.num_chunks)
    for lean in range(2):
        if write_level(figures, chain, pace_s, rules.num_chunks, lean == 1, scratch):
            if lean == 1 and _has_same_devices(split, scratch):
                break
            found_s = pipeline_s(figures, rules, chain, scratch, room)
            if found_s < best_s:
                best_s = found_s
                _copy(scratch, split)
    return best_s


@lean_kernel
def held_split(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
    best_s: float,
) -> float:
    """Write layers of each stage that allow for blocking sends, if they are quicker; the time. [s]

    They are tried on all devices and on those of the split.
    """
    num_layers = figures.passes_s.shape[2] - 1
    for has_all in range(2):
        _copy(split, scratch)
        num_workers = 0
        for at in range(len(chain)):
            if has_all == 1:
                scratch[at, 0] = figures.num_devices[chain[at]]
            num_workers += scratch[at, 0]
        if num_workers > min(num_layers, len(counts)) or num_workers < 1:
            continue
        own = room.counts[:num_workers]
        if write_held_counts(figures, rules, chain, scratch, room, own):
            found_s = staged_pipeline_s(figures, rules, chain, scratch, own, room)
            if found_s < best_s:
                best_s = found_s
                _copy(scratch, split)
                counts[:] = 0
                for worker in range(num_workers):
                    counts[worker] = own[worker]
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
    """Improve a split by moves of layers and devices until none helps; returns its time. [s]"""
    best_s = start_s
    for _ in range(most_rounds):
        before_s = best_s
        for at in range(len(chain)):
            best_s = _try_devices(figures, rules, chain, room, split, scratch, best_s, at)
            for other in range(len(chain)):
                if other != at and not rules.is_even:
                    best_s = _try_layers(
                        figures, rules, chain, room, split, scratch, best_s, at, other
                    )
        if not best_s < before_s:
            break
    return best_s


@lean_kernel
def _try_devices(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    best_s: float,
    at: int,
) -> float:
    for change in (-1, 1):
        while True:
            devices = split[at, 0] + change
            if devices < 1 or devices > figures.num_devices[chain[at]]:
                break
            _copy(split, scratch)
            scratch[at, 0] = devices
            if rules.is_even and not write_even(figures, rules, scratch):
                break
            if devices * rules.num_chunks > scratch[at, 1]:
                break
            found_s = pipeline_s(figures, rules, chain, scratch, room)
            if not found_s < best_s:
                break
            best_s = found_s
            _copy(scratch, split)
    return best_s


@lean_kernel
def _try_layers(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    best_s: float,
    giver: int,
    taker: int,
) -> float:
    """Move layers from one site to another, as many as a device of either has or just one."""
    for count in (1, 2, split[giver, 0], split[taker, 0]):
        while split[giver, 1] - count >= split[giver, 0] * rules.num_chunks:
            _copy(split, scratch)
            scratch[giver, 1] -= count
            scratch[taker, 1] += count
            found_s = pipeline_s(figures, rules, chain, scratch, room)
            if not found_s < best_s:
                break
            best_s = found_s
            _copy(scratch, split)
    return best_s


@lean_kernel
def survey(
    figures: SiteFigures,
    rules: TimingRules,
    chains: np.ndarray,
    lengths: np.ndarray,
    room: Room,
    limit_s: float,
    splits: np.ndarray,
    counts: np.ndarray,
    times_s: np.ndarray,
    scratch: np.ndarray,
) -> int:
    """Write the quick split of every chain and its time, infinite where the limit rules it out.

    Where sends block, layers of each stage that allow for that are tried too.

    Parameters
    ----------
    chains, lengths
        Sites of each chain, (chains, most sites), and how many it has.
    limit_s
        A chain whose busiest device works for so long is not simulated; the quickest time found
        lowers it. [s]
    splits, counts, times_s
        What is written, (chains, most sites, 2), (chains, most stages) and (chains,); counts only
        of chains whose stages are not even in each site.

    Returns
    -------
    int
        SiteChains that were simulated.
    """
    count = 0
    for each in range(len(chains)):
        chain, split = chains[each, : lengths[each]], splits[each, : lengths[each]]
        times_s[each] = np.inf
        least = figures.num_devices[chain[0]]
        for at in range(1, len(chain)):
            least = min(least, figures.num_devices[chain[at]])
        if least < 1 or not foreseen_s(figures, rules, chain) < limit_s:
            continue
        own = scratch[: lengths[each]]
        times_s[each] = quick_split(figures, rules, chain, room, split, own)
        if rules.is_blocking and not rules.is_even:
            times_s[each] = held_split(
                figures, rules, chain, room, split, own, counts[each], times_s[each]
            )
        limit_s = min(limit_s, times_s[each])
        count += 1
    return count
