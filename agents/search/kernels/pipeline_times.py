"""Time of one bound pipeline by recurrence: workers do their orders, messages take their wires.

Where each wire carries the messages of one stage the times are those of the simulator to the last
bit; where several stages share a link their messages come in the order of this loop, which is a
guess.
"""

import numpy as np

from agents.search.kernels.orders import B, D, F, W, write_interleaved, write_paced
from agents.search.kernels.records import Figures, Room, Rules
from des.base.arithmetic import even_share
from des.base.jit import lean_kernel

MISFIT = 1e15
"""Times at or above it mean that a pipeline does not fit: this times 1 and the missing share."""


@lean_kernel
def pipeline_s(
    figures: Figures, rules: Rules, chain: np.ndarray, split: np.ndarray, room: Room
) -> float:
    """Time of an iteration of one pipeline; at least `MISFIT` where it does not fit. [s]

    Parameters
    ----------
    chain
        Sites in the order of the model.
    split
        Devices and layers of each of them, (sites, 2).
    """
    num_workers = 0
    for site in range(len(chain)):
        num_workers += split[site, 0]
    lack = _lay_out(figures, rules, chain, split, num_workers, room)
    if lack > 0.0:
        return MISFIT * (1.0 + lack)
    num_microbatches = rules.num_microbatches
    most = rules.most_microbatches
    step = num_workers if rules.num_chunks == 1 else _group_size(rules, num_workers)
    short = max(most // step, 3) * step if most else num_microbatches
    if short >= num_microbatches:
        longest_s = _run(rules, num_workers, num_microbatches, room)
    else:
        short -= (short - num_microbatches) % step  # as full a last group as that of all
        before_s = _run(rules, num_workers, short - step, room)
        longest_s = _run(rules, num_workers, short, room)
        longest_s += (num_microbatches - short) / step * (longest_s - before_s)
    return longest_s + _tail_s(figures, rules, chain, split)


@lean_kernel
def _group_size(rules: Rules, num_workers: int) -> int:
    return round(rules.group_factor * num_workers)


@lean_kernel
def _lay_out(
    figures: Figures,
    rules: Rules,
    chain: np.ndarray,
    split: np.ndarray,
    num_workers: int,
    room: Room,
) -> float:
    """Write stages and borders down; returns the largest share of memory that is missing."""
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
                if count < 1:
                    return np.inf
                room.places[stage, 0], room.places[stage, 1] = site, device
                room.places[stage, 2], room.places[stage, 3] = layer, count
                for kind in range(4):
                    sums = figures.passes_s[site, kind]
                    room.passes_s[stage, kind] = sums[layer + count] - sums[layer]
                layer += count
                stage += 1
    for here in range(stage - 1):
        _lay_border(figures, room, here, num_workers)
    if num_chunks > 1:
        _share_wires(room, num_workers, stage, split)
    return _lack(figures, rules, num_workers, room)


@lean_kernel
def _lay_border(figures: Figures, room: Room, here: int, num_workers: int) -> None:
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


@lean_kernel
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


@lean_kernel
def _lack(figures: Figures, rules: Rules, num_workers: int, room: Room) -> float:
    """Largest share of its memory that a device lacks; 0 where all fit."""
    most = 0.0
    for worker in range(num_workers):
        site = room.places[worker, 0]
        state = whole = halved = 0.0
        for chunk in range(rules.num_chunks):
            layer = room.places[chunk * num_workers + worker, 2]
            end = layer + room.places[chunk * num_workers + worker, 3]
            state += figures.state_bytes[site, end] - figures.state_bytes[site, layer]
            whole = max(whole, figures.kept_bytes[site, end] - figures.kept_bytes[site, layer])
            kept_bytes = figures.halved_bytes[site, end] - figures.halved_bytes[site, layer]
            halved = max(halved, kept_bytes)
        held = num_held(rules, num_workers, worker)
        late = min(rules.pace[1] * worker, rules.num_microbatches - held)
        needed = state + held * whole + max(0.0, late) * halved
        most = max(most, needed / figures.room_bytes[site] - 1.0)
    return most


@lean_kernel
def num_held(rules: Rules, num_workers: int, worker: int) -> int:
    """Activations, of a chunk and microbatch each, that a worker holds at most."""
    after = num_workers - 1 - worker
    if rules.num_chunks > 1:
        warm_up = 2 * after + (rules.num_chunks - 1) * _group_size(rules, num_workers)
        return min(warm_up + 1, rules.num_chunks * rules.num_microbatches)
    depth, _, ahead = rules.pace
    return min(ahead + int(depth * after) + 1, rules.num_microbatches)


@lean_kernel
def _tail_s(figures: Figures, rules: Rules, chain: np.ndarray, split: np.ndarray) -> float:
    """Time behind the last pass: the longest of any site, whose devices have equal layers. [s]"""
    longest_s, layer = 0.0, 0
    for at in range(len(chain)):
        site = chain[at]
        count = -(-split[at, 1] // split[at, 0])
        end = min(layer + count, figures.tail_s.shape[1] - 1)
        own_s = figures.tail_s[site, end] - figures.tail_s[site, end - count]
        longest_s = max(longest_s, own_s + figures.floor_s[site])
        layer += split[at, 1]
    return longest_s


@lean_kernel
def _run(rules: Rules, num_workers: int, num_microbatches: int, room: Room) -> float:
    """Let all workers do their orders; returns the end of the last operation. [s]"""
    num_chunks = rules.num_chunks
    if num_chunks == 1:
        num_rows = write_paced(room.orders, num_workers, num_microbatches, rules.pace)
    else:
        size = _group_size(rules, num_workers)
        num_rows = write_interleaved(room.orders, num_workers, num_chunks, num_microbatches, size)
    room.arrivals_s[:, :, :num_microbatches] = -1.0
    room.arrivals_s[0, 0, :num_microbatches] = 0.0
    room.arrivals_s[num_workers * num_chunks - 1, 1, :num_microbatches] = 0.0
    room.free_s[:num_workers] = 0.0
    room.wire_free_s[:] = 0.0
    done = room.done
    done[:num_workers] = 0
    longest_s, left = 0.0, num_workers * num_rows
    while left > 0:
        before = left
        for worker in range(num_workers):
            while done[worker] < num_rows:
                end_s = _advance(rules, room, worker, num_workers, done[worker])
                if end_s < 0.0:
                    break
                longest_s = max(longest_s, end_s)
                done[worker] += 1
                left -= 1
        if left == before:
            return MISFIT
    return longest_s


@lean_kernel
def _advance(rules: Rules, room: Room, worker: int, num_workers: int, row: int) -> float:
    """Do a worker's next operation; returns its end, or -1 where its input is not there yet."""
    kind, microbatch = room.orders[worker, row, 0], room.orders[worker, row, 2]
    chunk = room.orders[worker, row, 1]
    stage = chunk * num_workers + worker
    ready_s = 0.0
    if kind != W:
        ready_s = room.arrivals_s[stage, 0 if kind == F else 1, microbatch]
        if ready_s < 0.0:
            return -1.0
    end_s: float = max(room.free_s[worker], ready_s) + room.passes_s[stage, kind]
    room.free_s[worker] = end_s
    if kind == F:
        if stage + 1 < num_workers * rules.num_chunks:
            arrival_s = _send(room, stage, 0, end_s)
            room.arrivals_s[stage + 1, 0, microbatch] = arrival_s
            if rules.is_blocking:
                room.free_s[worker] = arrival_s
    elif (kind in (B, D)) and stage > 0:
        arrival_s = _send(room, stage - 1, 1, end_s)
        room.arrivals_s[stage - 1, 1, microbatch] = arrival_s
        if rules.is_blocking:
            room.free_s[worker] = arrival_s
    return end_s


@lean_kernel
def _send(room: Room, border: int, way: int, ready_s: float) -> float:
    """Send a message over a border, 0 down or 1 up; returns when it arrives. [s]"""
    wire = room.wires[border, way]
    transfer_s, latency_s = room.borders_s[border, 2 * way], room.borders_s[border, 2 * way + 1]
    left_s = max(ready_s, room.wire_free_s[wire, 0]) + transfer_s
    arrival_s: float = max(left_s + latency_s, room.wire_free_s[wire, 1])
    room.wire_free_s[wire, 0], room.wire_free_s[wire, 1] = left_s, arrival_s
    return arrival_s
