"""Time of a pipeline of single chunks under a schedule with a pace: microbatch by microbatch.

Every wire carries the messages of one worker, so one order of all operations serves any times.
"""

import numpy as np

from agents.search.kernels.bounds import rest_s
from agents.search.kernels.records import Room, TimingRules
from des.base.jit import inner_kernel

_CHECKED_EVERY = 8
"""Microbatches between two checks of the limit."""


@inner_kernel
def paced_s(
    rules: TimingRules, num_workers: int, num_microbatches: int, room: Room, limit_s: float
) -> float:
    """Time until the last gradients are summed up, see `des.schedules.registry.Pace`. [s]

    A worker does its warm-up, then a forward pass and a backward pass in turn. The weight gradients
    of a pace that splits them stay behind by as much as it says. Infinite as soon as the limit is
    known to be exceeded.
    """
    common = _begin(rules, num_workers, num_microbatches, room)
    if not _go_on(rules, num_workers, num_microbatches, 0, common, room, limit_s):
        return np.inf
    return _end_s(rules, num_workers, num_microbatches, common, room)


@inner_kernel
def both_paced_s(
    rules: TimingRules, num_workers: int, fewer: int, more: int, room: Room
) -> tuple[float, float]:
    """`paced_s` of two numbers of microbatches, which begin alike. [s]"""
    common = _begin(rules, num_workers, fewer, room)
    _go_on(rules, num_workers, fewer, 0, common, room, np.inf)
    for worker in range(num_workers):
        room.next_s[worker] = room.free_s[worker]
        for way in range(2):
            room.wire_free_s[num_workers + worker, way] = room.wire_free_s[worker, way]
    fewer_s = _end_s(rules, num_workers, fewer, common, room)
    for worker in range(num_workers):
        room.free_s[worker] = room.next_s[worker]
        for way in range(2):
            room.wire_free_s[worker, way] = room.wire_free_s[num_workers + worker, way]
        room.done[worker] = _num_warm_up(rules, num_workers, worker, fewer) + common
    return fewer_s, _end_s(rules, num_workers, more, common, room)


@inner_kernel
def _begin(rules: TimingRules, num_workers: int, num_microbatches: int, room: Room) -> int:
    """Do the warm-up; returns how many microbatches go on until the first worker has no more."""
    for worker in range(num_workers):
        warm_up = _num_warm_up(rules, num_workers, worker, num_microbatches)
        room.done[worker] = warm_up
        room.free_s[worker] = 0.0
        room.wire_free_s[worker, 0] = room.wire_free_s[worker, 1] = 0.0
        for microbatch in range(warm_up):
            _forward(rules, room, worker, num_workers - 1, microbatch)
    return num_microbatches - _num_warm_up(rules, num_workers, 0, num_microbatches)


@inner_kernel
def _go_on(
    rules: TimingRules,
    num_workers: int,
    num_microbatches: int,
    first: int,
    end: int,
    room: Room,
    limit_s: float,
) -> bool:
    """Do the passes of some microbatches, forward ones of later ones; False beyond the limit."""
    _, behind, _ = rules.pace
    back = 2 if behind >= 0.0 else 1
    for microbatch in range(first, end):
        for worker in range(num_workers):
            if room.done[worker] < num_microbatches:
                _forward(rules, room, worker, num_workers - 1, room.done[worker])
                room.done[worker] += 1
        ready_s = 0.0
        for worker in range(num_workers - 1, -1, -1):
            end_s = max(room.free_s[worker], ready_s) + room.passes_s[worker, back]
            room.free_s[worker] = room.made_s[worker] = end_s
            if worker > 0:
                left_s = max(end_s, room.wire_free_s[worker - 1, 1])
                left_s += room.borders_s[worker - 1, 2]
                room.wire_free_s[worker - 1, 1] = left_s
                ready_s = left_s + room.borders_s[worker - 1, 3]
                if rules.is_blocking:
                    room.free_s[worker] = ready_s
            if behind >= 0.0 and microbatch >= int(behind * worker):
                room.free_s[worker] += room.passes_s[worker, 3]
        is_checked = limit_s < np.inf and microbatch % _CHECKED_EVERY == 0
        if is_checked and not rest_s(rules, num_workers, microbatch + 1, room) < limit_s:
            return False
    return True


@inner_kernel
def _end_s(
    rules: TimingRules, num_workers: int, num_microbatches: int, first: int, room: Room
) -> float:
    """Do what is left from a microbatch on; returns the end of the last sum over copies. [s]"""
    _go_on(rules, num_workers, num_microbatches, first, num_microbatches, room, np.inf)
    _, behind, _ = rules.pace
    longest_s = 0.0
    for worker in range(num_workers):
        if behind >= 0.0:
            for _ in range(min(int(behind * worker), num_microbatches)):
                room.free_s[worker] += room.passes_s[worker, 3]
            room.made_s[worker] = room.free_s[worker]
        longest_s = max(longest_s, room.made_s[worker] + room.sums_s[worker])
    return longest_s


@inner_kernel
def _num_warm_up(rules: TimingRules, num_workers: int, worker: int, num_microbatches: int) -> int:
    """Forward passes of a worker before it goes on by turns."""
    depth, _, ahead = rules.pace
    return min(ahead + int(depth * (num_workers - 1 - worker)), num_microbatches)


@inner_kernel
def _forward(rules: TimingRules, room: Room, worker: int, last: int, microbatch: int) -> None:
    """Do a forward pass and send what it made, and wait for that where sends block."""
    ready_s = room.arrivals_s[worker, 0, microbatch] if worker > 0 else 0.0
    end_s = max(room.free_s[worker], ready_s) + room.passes_s[worker, 0]
    room.free_s[worker] = end_s
    if worker < last:
        left_s = max(end_s, room.wire_free_s[worker, 0]) + room.borders_s[worker, 0]
        room.wire_free_s[worker, 0] = left_s
        arrival_s = left_s + room.borders_s[worker, 1]
        room.arrivals_s[worker + 1, 0, microbatch] = arrival_s
        if rules.is_blocking:
            room.free_s[worker] = arrival_s
