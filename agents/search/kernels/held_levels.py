"""Layers of the stages of a pipeline whose sends block: level with the time that sends hold up.

A stage is held up by what it sends down after a forward pass and up after a backward pass, until it
has arrived; so of two equal devices the one beside a link gets fewer layers.
"""

import numpy as np

from agents.search.kernels.layouts import num_devices_of, num_held
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import inner_kernel

_CLOSE = 1e-4
"""Share of the level by which it is known well enough."""


@inner_kernel
def write_held_counts(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    split: np.ndarray,
    room: Room,
    counts: np.ndarray,
) -> bool:
    """Write layers of each stage, and of each site into ``split``; False where they do not fit.

    Stages are as many as ``split`` has devices. All are busy or held up for about as long.
    """
    num_layers = figures.passes_s.shape[2] - 1
    num_workers = lay_loads(figures, rules, chain, split, room)
    low_s, high_s = 0.0, 0.0
    for worker in range(num_workers):
        limits = room.loads_s[worker]
        high_s = max(high_s, limits[0] + num_layers * limits[1])
    if _total_within(room, num_workers, high_s) < num_layers:
        return False
    while high_s - low_s > _CLOSE * high_s:
        middle_s = 0.5 * (low_s + high_s)
        if _total_within(room, num_workers, middle_s) < num_layers:
            low_s = middle_s
        else:
            high_s = middle_s
    surplus = -num_layers
    for worker in range(num_workers):
        counts[worker] = _within(room, worker, high_s)
        surplus += counts[worker]
    for _ in range(surplus):
        worst, worst_s = -1, -1.0
        for worker in range(num_workers):
            own_s = room.loads_s[worker, 0] + counts[worker] * room.loads_s[worker, 1]
            if counts[worker] > 1 and own_s > worst_s:
                worst, worst_s = worker, own_s
        if worst < 0:
            return False
        counts[worst] -= 1
    write_site_layers(split, counts)
    return True


@inner_kernel
def write_site_layers(split: np.ndarray, counts: np.ndarray) -> None:
    """Write the layers of each site of a pipeline of single chunks."""
    worker = 0
    for at in range(len(split)):
        split[at, 1] = 0
        for _ in range(split[at, 0]):
            split[at, 1] += counts[worker]
            worker += 1


@inner_kernel
def lay_loads(
    figures: SiteFigures, rules: TimingRules, chain: np.ndarray, split: np.ndarray, room: Room
) -> int:
    """Write of each worker how long sends hold it up, the time of a layer, and most layers.

    The first and the last one are held up too by what their layer takes beyond a mean one.

    Returns the number of workers.
    """
    last = figures.passes_s.shape[2] - 1
    num_workers, worker = num_devices_of(split), 0
    for at in range(len(chain)):
        site = chain[at]
        for device in range(split[at, 0]):
            held_s = 0.0
            if device > 0:
                held_s += (
                    figures.inner_s[site, device - 1, 0] + figures.inner_s[site, device - 1, 1]
                )
            elif at > 0:
                way = figures.outer_s[site, chain[at - 1]]
                held_s += way[0] + way[1]
            if device < split[at, 0] - 1:
                held_s += figures.inner_s[site, device, 0] + figures.inner_s[site, device, 1]
            elif at < len(chain) - 1:
                way = figures.outer_s[site, chain[at + 1]]
                held_s += way[0] + way[1]
            needed = figures.state_bytes[site, last]
            needed += num_held(rules, num_workers, worker) * figures.kept_bytes[site, last]
            room.loads_s[worker, 0] = held_s
            room.loads_s[worker, 1] = figures.layer_s[site]
            room.loads_s[worker, 2] = last * figures.room_bytes[site] / needed
            worker += 1
    for worker, layer in ((0, 0), (num_workers - 1, last - 1)):
        room.loads_s[worker, 0] += _beyond_s(figures, chain[0 if layer == 0 else -1], layer)
    return num_workers


@inner_kernel
def _beyond_s(figures: SiteFigures, site: int, layer: int) -> float:
    """Time of the passes of a layer beyond that of a mean one, as of the one with the head. [s]"""
    found_s = -figures.layer_s[site]
    for kind in range(2):
        sums = figures.passes_s[site, kind]
        found_s += sums[layer + 1] - sums[layer]
    return float(found_s)


@inner_kernel
def _within(room: Room, worker: int, pace_s: float) -> int:
    """Layers that a worker can do in a time, and hold."""
    spare_s = pace_s - room.loads_s[worker, 0]
    count = min(spare_s / room.loads_s[worker, 1], room.loads_s[worker, 2])
    return int(count * (1.0 + 1e-12)) if count > 0.0 else 0


@inner_kernel
def _total_within(room: Room, num_workers: int, pace_s: float) -> int:
    """Layers that all workers can do in a time; -1 where one cannot do any."""
    total = 0
    for worker in range(num_workers):
        count = _within(room, worker, pace_s)
        if count < 1:
            return -1
        total += count
    return total
