"""Stages of one bound pipeline: layers, times, borders and wires of each, and missing memory."""

import numpy as np

from agents.search.kernels.orders import F, write_interleaved
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.arithmetic import even_share
from des.base.jit import inner_kernel, lean_kernel


@inner_kernel
def group_size(rules: TimingRules, num_workers: int) -> int:
    """Microbatches of a group of the interleaved schedule."""
    return round(rules.group_factor * num_workers)


@inner_kernel
def num_devices_of(split: np.ndarray) -> int:
    """Devices of all sites of a split."""
    total: int = 0
    for at in range(len(split)):
        total += split[at, 0]
    return total


@inner_kernel
def lay_stages(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    split: np.ndarray,
    counts: np.ndarray,
    num_workers: int,
    room: Room,
) -> bool:
    """Write stages and borders down; False where a stage has no layer.

    ``counts`` are layers of each stage; empty: as even as can be in each site.
    """
    num_chunks = rules.num_chunks
    stage, layer = 0, 0
    for chunk in range(num_chunks):
        for at in range(len(chain)):
            site, devices = chain[at], split[at, 0]
            layers, parts, first = even_share(split[at, 1], num_chunks, chunk), devices, 0
            if len(chain) == 1:  # no other site in between: one run of layers over all chunks
                layers, parts, first = split[at, 1], devices * num_chunks, chunk * devices
            for device in range(devices):
                count = even_share(layers, parts, first + device)
                if len(counts) > 0:
                    count = counts[stage]
                if count < 1:
                    return False
                room.places[stage, 0], room.places[stage, 1] = site, device
                room.places[stage, 2], room.places[stage, 3] = layer, count
                for kind in range(4):
                    sums = figures.passes_s[site, kind]
                    room.passes_s[stage, kind] = sums[layer + count] - sums[layer]
                room.sums_s[stage] = _sum_s(figures, room.places[stage])
                layer += count
                stage += 1
    num_stages = num_workers * num_chunks
    for here in range(num_stages - 1):
        _lay_border(figures, room, here)
    if num_chunks > 1:
        _share_wires(room, num_workers, num_stages, split)
        if len(chain) == 1:
            _lay_back(figures, room, num_workers, num_stages)
    return True


@inner_kernel
def _lay_border(figures: SiteFigures, room: Room, here: int) -> None:
    """Write the way between a stage and the next one down, there and back; wires are its own."""
    source, target = room.places[here, 0], room.places[here + 1, 0]
    room.wires[here, 0], room.wires[here, 1] = 2 * here, 2 * here + 1
    if source != target:
        room.borders_s[here, 0] = figures.outer_s[source, target, 0]
        room.borders_s[here, 1] = figures.outer_s[source, target, 1]
        room.borders_s[here, 2] = figures.outer_s[target, source, 0]
        room.borders_s[here, 3] = figures.outer_s[target, source, 1]
        return
    device = min(room.places[here, 1], room.places[here + 1, 1])
    for way in range(2):
        room.borders_s[here, 2 * way] = figures.inner_s[source, device, 0]
        room.borders_s[here, 2 * way + 1] = figures.inner_s[source, device, 1]


@inner_kernel
def _share_wires(room: Room, num_workers: int, num_stages: int, split: np.ndarray) -> None:
    """Let the borders of later chunks use the wires of the first one.

    From the last worker back to the first there is one more, which between two sites or two workers
    is the way up of the border between them.
    """
    for here in range(num_workers, num_stages - 1):
        for way in range(2):
            room.wires[here, way] = room.wires[here - num_workers, way]
    back = -1
    if len(split) == 2:
        back = split[0, 0] - 1
    elif num_workers == 2:
        back = 0
    for here in range(num_workers - 1, num_stages - 1 if back >= 0 else 0, num_workers):
        room.wires[here, 0], room.wires[here, 1] = 2 * back + 1, 2 * back


@inner_kernel
def _lay_back(figures: SiteFigures, room: Room, num_workers: int, num_stages: int) -> None:
    """Write the way from the last device of a site back to the first one, to the next chunk."""
    site = room.places[0, 0]
    for here in range(num_workers - 1, num_stages - 1, num_workers):
        for way in range(2):
            room.borders_s[here, 2 * way] = figures.back_s[site, num_workers - 1, 0]
            room.borders_s[here, 2 * way + 1] = figures.back_s[site, num_workers - 1, 1]


@inner_kernel
def lack_of(figures: SiteFigures, rules: TimingRules, num_workers: int, room: Room) -> float:
    """Largest share of its memory that a device lacks; 0 where all fit."""
    most, num_rows = 0.0, 0
    for worker in range(num_workers):
        room_bytes = figures.room_bytes[room.places[worker, 0]]
        state = whole = halved = 0.0
        least = np.inf
        for chunk in range(rules.num_chunks):
            stage = chunk * num_workers + worker
            state += _of_stage(figures.state_bytes, room, stage)
            kept_bytes = _of_stage(figures.kept_bytes, room, stage)
            whole, least = max(whole, kept_bytes), min(least, kept_bytes)
            halved = max(halved, _of_stage(figures.halved_bytes, room, stage))
        held = num_held(rules, num_workers, worker)
        late = max(0.0, min(rules.pace[1] * worker, rules.num_microbatches - held))
        needed = state + held * whole + late * halved
        if rules.pace[1] >= 0.0:  # the fullest moment may also be behind an input gradient
            needed = max(needed, state + (held - 1) * whole + (late + 1) * halved)
        if rules.num_chunks > 1 and needed > room_bytes >= state + held * least:
            if num_rows == 0:
                num_rows = _write_groups(rules, num_workers, room)
            needed = state + _peak_bytes(figures, num_workers, worker, num_rows, room)
        most = max(most, needed / room_bytes - 1.0)
    return most


@inner_kernel
def _of_stage(sums: np.ndarray, room: Room, stage: int) -> float:
    """Bytes of a device for the layers of a stage."""
    site, layer = room.places[stage, 0], room.places[stage, 2]
    return float(sums[site, layer + room.places[stage, 3]] - sums[site, layer])


@inner_kernel
def _write_groups(rules: TimingRules, num_workers: int, room: Room) -> int:
    """Write interleaved orders of a few groups, as full a last one as that of all; returns rows."""
    size, count = group_size(rules, num_workers), rules.num_microbatches
    count = min(count, room.arrivals_s.shape[2], 4 * size + count % size)
    return write_interleaved(room.orders, num_workers, rules.num_chunks, count, size)


@inner_kernel
def _peak_bytes(
    figures: SiteFigures, num_workers: int, worker: int, num_rows: int, room: Room
) -> float:
    """Most activations that a worker holds at a time, in its order of chunks. [bytes]"""
    now = most = 0.0
    for row in range(num_rows):
        stage = room.orders[worker, row, 1] * num_workers + worker
        kept_bytes = _of_stage(figures.kept_bytes, room, stage)
        now += kept_bytes if room.orders[worker, row, 0] == F else -kept_bytes
        most = max(most, now)
    return most


@lean_kernel
def num_held(rules: TimingRules, num_workers: int, worker: int) -> int:
    """Activations, of a chunk and microbatch each, that a worker holds at most."""
    after = num_workers - 1 - worker
    if rules.num_chunks > 1:
        warm_up = 2 * after + (rules.num_chunks - 1) * group_size(rules, num_workers)
        return min(warm_up + 1, rules.num_chunks * rules.num_microbatches)
    depth, _, ahead = rules.pace
    return min(ahead + int(depth * after) + 1, rules.num_microbatches)


@inner_kernel
def _sum_s(figures: SiteFigures, place: np.ndarray) -> float:
    """Time to sum up the gradients of a stage's layers over the copies of its device. [s]"""
    site, layer, end, total_s = place[0], place[2], place[2] + place[3], 0.0
    sums_s = figures.sums_s[site, min(place[1], figures.sums_s.shape[1] - 1)]
    for group in range(2):
        count = figures.parameters[group, end] - figures.parameters[group, layer]
        ring, tree = sums_s[group, 0], sums_s[group, 1]
        total_s += min(ring[0] + ring[1] * count, tree[0] + tree[1] * count)
    return total_s
