"""Time of a pipeline of single chunks under a schedule with a pace: microbatch by microbatch.

Every wire carries the messages of one worker, so one order of all operations serves any times.
"""

from agents.search.kernels.records import Room, TimingRules
from des.base.jit import inner_kernel


@inner_kernel
def paced_s(rules: TimingRules, num_workers: int, num_microbatches: int, room: Room) -> float:
    """Time until the last gradients are summed up, see `des.schedules.registry.Pace`. [s]

    A worker does its warm-up, then a forward pass and a backward pass in turn. The weight gradients
    of a pace that splits them stay behind by as much as it says.
    """
    _, behind, _ = rules.pace
    last = num_workers - 1
    for worker in range(num_workers):
        warm_up = _num_warm_up(rules, num_workers, worker, num_microbatches)
        room.done[worker] = warm_up
        room.free_s[worker] = 0.0
        room.wire_free_s[worker, 0] = room.wire_free_s[worker, 1] = 0.0
        for microbatch in range(warm_up):
            _forward(rules, room, worker, last, microbatch)
    back = 2 if behind >= 0.0 else 1
    for microbatch in range(num_microbatches):
        for worker in range(num_workers):
            if room.done[worker] < num_microbatches:
                _forward(rules, room, worker, last, room.done[worker])
                room.done[worker] += 1
        ready_s = 0.0
        for worker in range(last, -1, -1):
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
