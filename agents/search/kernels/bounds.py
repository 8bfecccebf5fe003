"""Least time of a pipeline whose stages are laid out: no run of its operations is shorter."""

from agents.search.kernels.layouts import num_held
from agents.search.kernels.records import Room, TimingRules
from des.base.jit import inner_kernel


@inner_kernel
def least_s(rules: TimingRules, num_workers: int, room: Room) -> float:
    """Time that all microbatches and the sums over copies take at least, without updates. [s]

    Of every worker: until the first message comes, then what it does or sends, then the way back of
    the last gradient. With one chunk also the rounds of a microbatch to the last worker and back,
    of which it holds a limited number at a time.
    """
    count = rules.num_microbatches
    back = 2 if rules.pace[1] >= 0.0 else 1
    longest_s = head_s = tail_s = round_s = 0.0
    if rules.num_chunks == 1:
        for worker in range(num_workers):
            round_s += _around_s(room, worker, num_workers, back)
    for worker in range(num_workers):
        forward_s, back_s, down_s, up_s = _work_of(rules, num_workers, worker, back, room)
        own_s, sent_s = forward_s + back_s, max(down_s, up_s)
        hold_s = 0.0
        if rules.is_blocking and worker > 0:  # the last send is part of the way back
            hold_s = room.borders_s[worker - 1, 2] + room.borders_s[worker - 1, 3]
        around_s = head_s + tail_s
        busy_s = count * own_s - hold_s
        longest_s = max(
            longest_s,
            around_s + room.sums_s[0] + busy_s,
            head_s + room.sums_s[worker] + busy_s,
            head_s + count * sent_s,
        )
        if rules.num_chunks == 1:
            held = num_held(rules, num_workers, worker)
            rounds = (count - 1) // held + 1
            longest_s = max(
                longest_s,
                around_s + round_s + (count - 1) * sent_s,
                around_s + round_s + (count - held) * forward_s + (count - 1) * back_s,
                around_s + rounds * round_s + (count - 1 - (rounds - 1) * held) * back_s,
            )
            if back == 2:
                longest_s = max(longest_s, head_s + count * (own_s + room.passes_s[worker, 3]))
            round_s -= _around_s(room, worker, num_workers, back)
        if worker < num_workers - 1:
            head_s += room.passes_s[worker, 0]
            head_s += room.borders_s[worker, 0] + room.borders_s[worker, 1]
            tail_s += room.passes_s[worker, back]
            tail_s += room.borders_s[worker, 2] + room.borders_s[worker, 3]
    return longest_s


@inner_kernel
def rest_s(rules: TimingRules, num_workers: int, num_done: int, room: Room) -> float:
    """Least time of a pipeline of single chunks that has begun, as `least_s`. [s]

    ``num_done`` microbatches are through backward passes, ``room.done`` of each worker through
    forward ones, and workers are free when ``room.free_s`` says.
    """
    count = rules.num_microbatches
    back = 2 if rules.pace[1] >= 0.0 else 1
    longest_s = tail_s = 0.0
    for worker in range(num_workers):
        forward_s, back_s, _, _ = _work_of(rules, num_workers, worker, back, room)
        own_s = room.free_s[worker] + tail_s
        own_s += (count - room.done[worker]) * forward_s + (count - num_done) * back_s
        if rules.is_blocking and worker > 0:  # the last send is part of the way back
            own_s -= room.borders_s[worker - 1, 2] + room.borders_s[worker - 1, 3]
        longest_s = max(longest_s, own_s + room.sums_s[0], own_s - tail_s + room.sums_s[worker])
        if worker < num_workers - 1:
            tail_s += room.passes_s[worker, back]
            tail_s += room.borders_s[worker, 2] + room.borders_s[worker, 3]
    return longest_s


@inner_kernel
def _around_s(room: Room, worker: int, num_workers: int, back: int) -> float:
    """Passes of a microbatch by a worker of one chunk, and its messages to the next and back."""
    found_s = room.passes_s[worker, 0] + room.passes_s[worker, back]
    if worker < num_workers - 1:
        for part in range(4):
            found_s += room.borders_s[worker, part]
    return float(found_s)


@inner_kernel
def _work_of(
    rules: TimingRules, num_workers: int, worker: int, back: int, room: Room
) -> tuple[float, float, float, float]:
    """Times that a microbatch holds a worker up, forward and back, and is sent, down and up. [s]"""
    num_stages = num_workers * rules.num_chunks
    forward_s = back_s = down_s = up_s = 0.0
    for stage in range(worker, num_stages, num_workers):
        forward_s += room.passes_s[stage, 0]
        back_s += room.passes_s[stage, back]
        if stage < num_stages - 1:
            down_s += room.borders_s[stage, 0]
            if rules.is_blocking:
                forward_s += room.borders_s[stage, 0] + room.borders_s[stage, 1]
        if stage > 0:
            up_s += room.borders_s[stage - 1, 2]
            if rules.is_blocking:
                back_s += room.borders_s[stage - 1, 2] + room.borders_s[stage - 1, 3]
    return forward_s, back_s, down_s, up_s
