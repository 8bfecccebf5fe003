"""Devices and layers of the sites of a chain: level to begin with, then better step by step."""

import numpy as np

from agents.search.kernels.pipeline_times import pipeline_s
from agents.search.kernels.records import Figures, Room, Rules
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
def layer_s(figures: Figures, site: int) -> float:
    """Mean time of the passes of a layer on a device of a site. [s]"""
    last = figures.passes_s.shape[2] - 1
    whole = figures.passes_s[site, 0, last] + figures.passes_s[site, 1, last]
    return float(whole / last)


@lean_kernel
def level_s(figures: Figures, chain: np.ndarray, num_chunks: int) -> float:
    """Least time of the busiest device for one microbatch, links apart; infinite if too few. [s]

    Every device of a site has as many layers as it can do in that time, all sites together no fewer
    than the model has.
    """
    num_layers = figures.passes_s.shape[2] - 1
    least_s = np.inf
    for at in range(len(chain)):
        one_s = layer_s(figures, chain[at])
        low, high = num_chunks, num_layers
        while low < high:
            count = (low + high) // 2
            if _num_held_by(figures, chain, count * one_s, num_chunks) >= num_layers:
                high = count
            else:
                low = count + 1
        if _num_held_by(figures, chain, low * one_s, num_chunks) >= num_layers:
            least_s = min(least_s, low * one_s)
    return least_s


@lean_kernel
def foreseen_s(figures: Figures, rules: Rules, chain: np.ndarray) -> float:
    """Time of an iteration without any wait: one microbatch all the way, then the busiest device.

    The fastest site's layers stand for all of the way, and the time of several chunks is shared.
    """
    fastest_s = np.inf
    for at in range(len(chain)):
        fastest_s = min(fastest_s, layer_s(figures, chain[at]))
    way_s = (figures.passes_s.shape[2] - 1) * fastest_s / rules.num_chunks
    busiest_s = level_s(figures, chain, rules.num_chunks)
    found_s: float = (rules.num_microbatches - 1) * busiest_s + max(way_s, busiest_s)
    return found_s


@lean_kernel
def _num_held_by(figures: Figures, chain: np.ndarray, pace_s: float, num_chunks: int) -> int:
    total: int = 0
    for at in range(len(chain)):
        each: int = _layers_within(figures, chain[at], pace_s)
        devices: int = figures.num_devices[chain[at]]
        if each >= num_chunks:
            total = total + devices * each
    return total


@lean_kernel
def _layers_within(figures: Figures, site: int, pace_s: float) -> int:
    most: int = figures.passes_s.shape[2] - 1
    count = min(int(pace_s / layer_s(figures, site) * (1.0 + 1e-12)), most)
    while count > 0:
        needed_bytes = figures.state_bytes[site, count] + figures.kept_bytes[site, count]
        if needed_bytes <= figures.room_bytes[site]:
            break
        count -= 1
    return count


@lean_kernel
def write_level(
    figures: Figures,
    chain: np.ndarray,
    pace_s: float,
    num_chunks: int,
    is_lean: bool,
    split: np.ndarray,
) -> bool:
    """Write a split in which no device is busy for longer than a time; False where there is none.

    Layers that devices have less than they could are taken from the slowest sites' devices first.
    Lean splits have no more devices than needed.
    """
    num_layers, total = figures.passes_s.shape[2] - 1, 0
    for at in range(len(chain)):
        each = _layers_within(figures, chain[at], pace_s)
        if each < num_chunks:
            return False
        split[at, 0] = min(figures.num_devices[chain[at]], num_layers // num_chunks)
        split[at, 1] = split[at, 0] * each
        total += split[at, 1]
    if total < num_layers:
        return False
    while total > num_layers:
        worst, worst_s = 0, -1.0
        for at in range(len(chain)):
            if split[at, 1] > split[at, 0] * num_chunks or split[at, 0] > 1:
                count = -(-split[at, 1] // split[at, 0])
                own_s = count * layer_s(figures, chain[at])
                if own_s > worst_s:
                    worst, worst_s = at, own_s
        split[worst, 1] -= 1
        if split[worst, 1] < split[worst, 0] * num_chunks:
            split[worst, 0] -= 1
        if split[worst, 0] < 1:
            return False
        total -= 1
    if is_lean:
        for at in range(len(chain)):
            each = _layers_within(figures, chain[at], pace_s)
            split[at, 0] = min(split[at, 0], -(-split[at, 1] // each))
    return True


@lean_kernel
def write_even(figures: Figures, rules: Rules, split: np.ndarray) -> bool:
    """Write layers of which all stages have equally many; False where that cannot be."""
    num_layers, num_workers = figures.passes_s.shape[2] - 1, 0
    for at in range(len(split)):
        num_workers += split[at, 0]
    num_stages = num_workers * rules.num_chunks
    if num_layers % num_stages:
        return False
    for at in range(len(split)):
        split[at, 1] = split[at, 0] * (num_layers // num_workers)
    return True


@lean_kernel
def _quick_even_split(
    figures: Figures,
    rules: Rules,
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
    figures: Figures,
    rules: Rules,
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
def better_split(
    figures: Figures,
    rules: Rules,
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
    figures: Figures,
    rules: Rules,
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
    figures: Figures,
    rules: Rules,
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
    figures: Figures,
    rules: Rules,
    chains: np.ndarray,
    lengths: np.ndarray,
    room: Room,
    limit_s: float,
    splits: np.ndarray,
    times_s: np.ndarray,
    scratch: np.ndarray,
) -> int:
    """Write the quick split of every chain and its time, infinite where the limit rules it out.

    Parameters
    ----------
    chains, lengths
        Sites of each chain, (chains, most sites), and how many it has.
    limit_s
        A chain whose busiest device works for so long is not simulated; the quickest time found
        lowers it. [s]
    splits, times_s
        What is written, (chains, most sites, 2) and (chains,).

    Returns
    -------
    int
        Chains that were simulated.
    """
    count = 0
    for each in range(len(chains)):
        chain, split = chains[each, : lengths[each]], splits[each, : lengths[each]]
        times_s[each] = np.inf
        if not foreseen_s(figures, rules, chain) < limit_s:
            continue
        times_s[each] = quick_split(figures, rules, chain, room, split, scratch[: lengths[each]])
        limit_s = min(limit_s, times_s[each])
        count += 1
    return count
