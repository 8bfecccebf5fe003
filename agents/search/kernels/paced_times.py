"""Time of a pipeline of single chunks under a schedule with a pace: microbatch by microbatch.

Every wire carries the messages of one worker, so one order of all operations serves any times. Once
all workers, wires and messages under way are later by one time after some microbatches, they are so
again after as many more.
"""

from agents.search.kernels.records import Room, TimingRules
from des.base.jit import inner_kernel

_CLOSE = 1e-11
"""Share by which times may differ that are equal but for rounding."""


@inner_kernel
def paced_s(
    rules: TimingRules, num_workers: int, num_microbatches: int, room: Room, skips: bool
) -> tuple[float, bool]:
    """Time until the last gradients are summed up, see `des.schedules.registry.Pace`. [s]

    A worker does its warm-up, then a forward pass and a backward pass in turn. The weight gradients
    of a pace that splits them stay behind by as much as it says. ``skips`` leaves out rounds that
    repeat, whose time is added; whether none was left out comes second.
    """
    _, behind, _ = rules.pace
    last, end, skipped_s = num_workers - 1, num_microbatches, 0.0
    held = _num_warm_up(rules, num_workers, 0, num_microbatches) + 1
    noted = max(held, int(behind * last))
    if not skips or num_microbatches < noted + 4 * held:
        noted = num_microbatches
    for worker in range(num_workers):
        warm_up = _num_warm_up(rules, num_workers, worker, num_microbatches)
        room.done[worker] = warm_up
        room.free_s[worker] = 0.0
        room.wire_free_s[worker, 0] = room.wire_free_s[worker, 1] = 0.0
        for microbatch in range(warm_up):
            _forward(rules, room, worker, last, microbatch)
    back = 2 if behind >= 0.0 else 1
    for microbatch in range(num_microbatches):
        if microbatch == end:
            break
        for worker in range(num_workers):
            if room.done[worker] < end:
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
        since = microbatch - noted
        if since in (1, held) and room.done[0] < end:
            gone_s = _gone_s(room, num_workers, since)
            if gone_s > 0.0:
                rounds = (end - room.done[0]) // since
                end, skipped_s, noted = end - rounds * since, rounds * gone_s, num_microbatches
        if since in (0, held):
            noted = microbatch if noted < num_microbatches else noted
            _note(room, num_workers)
    longest_s = 0.0
    for worker in range(num_workers):
        if behind >= 0.0:
            for _ in range(min(int(behind * worker), num_microbatches)):
                room.free_s[worker] += room.passes_s[worker, 3]
            room.made_s[worker] = room.free_s[worker]
        longest_s = max(longest_s, room.made_s[worker] + room.sums_s[worker])
    return longest_s + skipped_s, skipped_s == 0.0


@inner_kernel
def _note(room: Room, num_workers: int) -> None:
    """Note when workers and wires are free, where the interleaved order has its way back."""
    for worker in range(num_workers):
        room.arrivals_s[worker, 1, 0] = room.free_s[worker]
        room.arrivals_s[worker, 1, 1] = room.wire_free_s[worker, 0]
        room.arrivals_s[worker, 1, 2] = room.wire_free_s[worker, 1]


@inner_kernel
def _gone_s(room: Room, num_workers: int, since: int) -> float:
    """Time by which all is later than noted some microbatches ago; -1 where that differs. [s]"""
    gone_s: float = room.free_s[0] - room.arrivals_s[0, 1, 0]
    most_s, off_s = _CLOSE * gone_s, 0.0
    for worker in range(num_workers):
        noted = room.arrivals_s[worker, 1]
        off_s = max(off_s, abs(room.free_s[worker] - noted[0] - gone_s))
        if worker + 1 < num_workers:
            off_s = max(off_s, abs(room.wire_free_s[worker, 0] - noted[1] - gone_s))
            off_s = max(off_s, abs(room.wire_free_s[worker, 1] - noted[2] - gone_s))
            for microbatch in range(room.done[worker + 1], room.done[worker]):
                arrivals_s = room.arrivals_s[worker + 1, 0]
                later_s = arrivals_s[microbatch] - arrivals_s[microbatch - since]
                off_s = max(off_s, abs(later_s - gone_s))
    return gone_s if off_s <= most_s else -1.0


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
