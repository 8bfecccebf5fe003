"""Time of one bound pipeline by recurrence: workers do their orders, messages take their wires.

On direct links the times are those of the simulator, up to the rounding of sums over layers. Of
messages that are ready for a link at one moment the one of the first worker goes first.
"""

import numpy as np

from agents.search.kernels.bounds import least_s
from agents.search.kernels.layouts import (
    group_size,
    lack_of,
    lay_stages,
    num_devices_of,
    num_held,
)
from agents.search.kernels.orders import B, F, write_interleaved
from agents.search.kernels.paced_times import both_paced_s, paced_s
from agents.search.kernels.records import Room, SiteFigures, TimingRules
from des.base.jit import inner_kernel, lean_kernel

MISFIT = 1e15
"""Times at or above it mean that a pipeline does not fit: this times 1 and the missing share."""


@lean_kernel
def staged_pipeline_s(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    split: np.ndarray,
    counts: np.ndarray,
    room: Room,
    limit_s: float,
) -> float:
    """Time of an iteration of one pipeline; at least `MISFIT` where it does not fit. [s]

    Parameters
    ----------
    chain
        Sites in the order of the model.
    split
        Devices and layers of each of them, (sites, 2).
    counts
        Layers of each stage; empty: even ones in each site.
    limit_s
        A pipeline that takes so long at least is not simulated; its time is infinite then.
    """
    return staged_iteration_s(figures, rules, chain, split, counts, room, limit_s)


@inner_kernel
def staged_iteration_s(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    split: np.ndarray,
    counts: np.ndarray,
    room: Room,
    limit_s: float,
) -> float:
    """`staged_pipeline_s` in other kernels. [s]"""
    num_workers = num_devices_of(split)
    if not _has_order(rules, num_workers):
        return np.inf
    if not lay_stages(figures, rules, chain, split, counts, num_workers, room):
        return np.inf
    update_s = _update_s(figures, rules, num_workers, room)
    limit_s -= update_s
    if limit_s < np.inf and not least_s(rules, num_workers, room) < limit_s:
        return np.inf
    lack = lack_of(figures, rules, num_workers, room)
    if lack > 0.0:
        return MISFIT * (1.0 + lack)
    in_order = rules.num_chunks > 1 and len(chain) == 2 and num_workers > 2
    num_microbatches = rules.num_microbatches
    most = rules.most_microbatches
    step = num_workers if rules.num_chunks == 1 else group_size(rules, num_workers)
    short = num_microbatches
    if most:
        warm_up = 0 if rules.num_chunks > 1 else num_held(rules, num_workers, 0)
        short = max(most // step, 3, 1 + (2 * warm_up - 1) // step + 1) * step
    if short < num_microbatches:
        short -= (short - num_microbatches) % step  # as full a last group as that of all
    if short >= num_microbatches:
        longest_s = _run(rules, num_workers, num_microbatches, room, in_order, limit_s)
    else:
        before_s, longest_s = _run_both(rules, num_workers, short - step, short, room, in_order)
        longest_s += (num_microbatches - short) / step * (longest_s - before_s)
    return longest_s + update_s


@inner_kernel
def _has_order(rules: TimingRules, num_workers: int) -> bool:
    """Whether the schedule knows pipelines of this number of devices."""
    if rules.num_chunks == 1:
        return True
    rest = rules.num_microbatches % group_size(rules, num_workers)
    return num_workers > 1 and not (rules.whole_groups and 0 < rest < num_workers)


@inner_kernel
def _update_s(figures: SiteFigures, rules: TimingRules, num_workers: int, room: Room) -> float:
    """Time from the last gradient to the end of the slowest device's update. [s]"""
    longest_s = 0.0
    for worker in range(num_workers):
        own = figures.update_s[room.places[worker, 0]]
        own_s = own[0]
        for chunk in range(rules.num_chunks):
            layer = room.places[chunk * num_workers + worker, 2]
            end = layer + room.places[chunk * num_workers + worker, 3]
            for group in range(2):
                count = figures.parameters[group, end] - figures.parameters[group, layer]
                own_s += own[1 + group] * count
        longest_s = max(longest_s, own_s)
    return longest_s


@inner_kernel
def _summed_s(rules: TimingRules, num_workers: int, room: Room) -> float:
    """End of the last sum over copies; a device sums up one stage after the other. [s]"""
    longest_s = 0.0
    for worker in range(num_workers):
        for chunk in range(rules.num_chunks):
            stage = chunk * num_workers + worker
            end_s = room.made_s[stage]
            for other in range(worker, rules.num_chunks * num_workers, num_workers):
                if room.made_s[other] >= room.made_s[stage]:
                    end_s += room.sums_s[other]
            longest_s = max(longest_s, end_s)
    return longest_s


@inner_kernel
def _run(
    rules: TimingRules,
    num_workers: int,
    num_microbatches: int,
    room: Room,
    in_order: bool,
    limit_s: float,
) -> float:
    """Let all workers do their orders; returns the end of the last operation or sum. [s]

    ``in_order`` does operations in the order of time, as wires need that carry the messages of
    several workers. Infinite as soon as the limit is known to be exceeded.
    """
    num_chunks = rules.num_chunks
    if num_chunks == 1:
        return paced_s(rules, num_workers, num_microbatches, room, limit_s)
    size = group_size(rules, num_workers)
    num_rows = write_interleaved(room.orders, num_workers, num_chunks, num_microbatches, size)
    num_stages = num_workers * num_chunks
    room.arrivals_s[:num_stages, :, :num_microbatches] = -1.0
    room.arrivals_s[0, 0, :num_microbatches] = 0.0
    room.arrivals_s[num_stages - 1, 1, :num_microbatches] = 0.0
    room.free_s[:num_workers] = 0.0
    room.wire_free_s[: 2 * num_stages] = 0.0
    room.done[:num_workers] = 0
    if in_order:
        longest_s = _run_in_order(rules, num_workers, num_rows, room)
    else:
        longest_s = _run_by_workers(rules, num_workers, num_rows, room)
    return max(longest_s, _summed_s(rules, num_workers, room))


@inner_kernel
def _run_both(
    rules: TimingRules,
    num_workers: int,
    fewer: int,
    more: int,
    room: Room,
    in_order: bool,
) -> tuple[float, float]:
    """`_run` of two numbers of microbatches, to their ends. [s]"""
    if rules.num_chunks == 1:
        return both_paced_s(rules, num_workers, fewer, more, room)
    fewer_s = _run(rules, num_workers, fewer, room, in_order, np.inf)
    return fewer_s, _run(rules, num_workers, more, room, in_order, np.inf)


@inner_kernel
def _run_by_workers(rules: TimingRules, num_workers: int, num_rows: int, room: Room) -> float:
    """Let one worker after the other do what it can; returns the end of the last operation. [s]"""
    done, longest_s, left = room.done, 0.0, num_workers * num_rows
    while left > 0:
        before = left
        for worker in range(num_workers):
            while done[worker] < num_rows:
                end_s = _end_s(rules, room, worker, num_workers)
                if end_s == np.inf:
                    break
                _do(rules, room, worker, num_workers, end_s)
                longest_s = max(longest_s, end_s)
                left -= 1
        if left == before:
            return MISFIT
    return longest_s


@inner_kernel
def _run_in_order(rules: TimingRules, num_workers: int, num_rows: int, room: Room) -> float:
    """Do the operation that ends first, again and again; returns the end of the last one. [s]"""
    next_s, longest_s = room.next_s, 0.0
    for worker in range(num_workers):
        next_s[worker] = _end_s(rules, room, worker, num_workers)
    for _ in range(num_workers * num_rows):
        first = _first_of(next_s, num_workers)
        if next_s[first] == np.inf:
            return MISFIT
        longest_s = max(longest_s, next_s[first])
        _do(rules, room, first, num_workers, next_s[first])
        for worker in (first, (first + 1) % num_workers, (first - 1) % num_workers):
            is_over = room.done[worker] == num_rows
            next_s[worker] = np.inf if is_over else _end_s(rules, room, worker, num_workers)
    return longest_s


@inner_kernel
def _first_of(next_s: np.ndarray, num_workers: int) -> int:
    """Worker whose next operation ends first, of several the first one."""
    first: int = 0
    for worker in range(1, num_workers):
        if next_s[worker] < next_s[first]:
            first = worker
    return first


@inner_kernel
def _end_s(rules: TimingRules, room: Room, worker: int, num_workers: int) -> float:
    """End of a worker's next operation; infinite where its input is not known yet. [s]"""
    row = room.done[worker]
    kind, microbatch = room.orders[worker, row, 0], room.orders[worker, row, 2]
    stage = room.orders[worker, row, 1] * num_workers + worker
    ready_s = room.arrivals_s[stage, kind, microbatch]
    if ready_s < 0.0:
        return np.inf
    end_s: float = max(room.free_s[worker], ready_s) + room.passes_s[stage, kind]
    return end_s


@inner_kernel
def _do(rules: TimingRules, room: Room, worker: int, num_workers: int, end_s: float) -> None:
    """End a worker's next operation: send what it made, and wait for that where sends block."""
    row = room.done[worker]
    kind, microbatch = room.orders[worker, row, 0], room.orders[worker, row, 2]
    stage = room.orders[worker, row, 1] * num_workers + worker
    room.done[worker] = row + 1
    room.free_s[worker] = end_s
    if kind == B:
        room.made_s[stage] = end_s
    if kind == F and stage + 1 < num_workers * rules.num_chunks:
        arrival_s = _send(room, stage, 0, end_s)
        room.arrivals_s[stage + 1, 0, microbatch] = arrival_s
        if rules.is_blocking:
            room.free_s[worker] = arrival_s
    elif kind == B and stage > 0:
        arrival_s = _send(room, stage - 1, 1, end_s)
        room.arrivals_s[stage - 1, 1, microbatch] = arrival_s
        if rules.is_blocking:
            room.free_s[worker] = arrival_s


@inner_kernel
def _send(room: Room, border: int, way: int, ready_s: float) -> float:
    """Send a message over a border, 0 down or 1 up; returns when it arrives. [s]"""
    wire = room.wires[border, way]
    transfer_s, latency_s = room.borders_s[border, 2 * way], room.borders_s[border, 2 * way + 1]
    left_s = max(ready_s, room.wire_free_s[wire, 0]) + transfer_s
    arrival_s: float = max(left_s + latency_s, room.wire_free_s[wire, 1])
    room.wire_free_s[wire, 0], room.wire_free_s[wire, 1] = left_s, arrival_s
    return arrival_s
