"""Compiled events of a fleet between two changes of it, those of `des.serving.fleet_engine`."""

import math
from typing import NamedTuple

from des.base.jit import kernel, lean_kernel
from des.compiled.kernels.fleet_batches import (
    NONE,
    Counts,
    EngineNumbers,
    InstanceArrays,
    Numbers,
    Progress,
    RequestArrays,
    begin_run,
    can_let_in,
    run_time,
    stay_and_write,
    take_read,
    whole_within,
    write_first,
    write_run,
)

NOTHING, IS_EMPTY, IS_HELD = 0, 1, 2
"""Ends of `run_until`: the bound, a draining instance is empty, a request finds no instance."""
_RUN_END, _SENT, _ARRIVAL = 1, 2, 4
"""Classes of events of equal times, see `des.serving.instance_life`."""


class FleetArrays(NamedTuple):
    """Members of both pools (2, I) by place, and how many (2,); places in use (I,), by number.

    ``state`` has the next arrival, the transfers under way, the places in use, and what `run_until`
    returns. Transfers (N,) are a heap by time and request; ``sender`` (N,) is the place.
    """

    members: Counts
    num_members: Counts
    live: Counts
    state: Counts
    sent_s: Numbers
    sent: Counts
    sender: Counts


class TransferNumbers(NamedTuple):
    """Sizes and rates of transfers of KV memory."""

    bytes_per_token: float
    bytes_per_s: float
    latency_s: float
    contend: bool


@lean_kernel
def push_sent(f: FleetArrays, time_s: float, one: int) -> None:
    """Add a transfer to the heap."""
    place = f.state[1]
    f.state[1] += 1
    while place > 0:
        above = (place - 1) >> 1
        above_s = f.sent_s[above]
        if above_s < time_s or (above_s == time_s and f.sent[above] < one):
            break
        f.sent_s[place], f.sent[place] = above_s, f.sent[above]
        place = above
    f.sent_s[place], f.sent[place] = time_s, one


@lean_kernel
def pop_sent(f: FleetArrays) -> int:
    """Take the first transfer off the heap."""
    first = f.sent[0]
    f.state[1] -= 1
    num = f.state[1]
    time_s, one = f.sent_s[num], f.sent[num]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= num:
            break
        right = below + 1
        if right < num and (
            f.sent_s[right] < f.sent_s[below]
            or (f.sent_s[right] == f.sent_s[below] and f.sent[right] < f.sent[below])
        ):
            below = right
        if time_s < f.sent_s[below] or (time_s == f.sent_s[below] and one < f.sent[below]):
            break
        f.sent_s[place], f.sent[place] = f.sent_s[below], f.sent[below]
        place = below
    f.sent_s[place], f.sent[place] = time_s, one
    return int(first)


@lean_kernel
def look_at_queue(
    e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int, now_s: float
) -> None:
    """Begin if the instance rests; cut a run if the first that waits can be let in."""
    if q.run_end_s[i] == math.inf:
        begin_run(e, r, q, i, now_s)
        return
    if q.num_pieces[i] or q.num_waiting[i] == 0:
        return
    start_s, num_writing, context = q.run_start_s[i], q.num_writing[i], q.context[i]
    num = whole_within(e, now_s - start_s, q.run_num[i] - 1, num_writing, context) + 1
    if num < q.run_num[i] and can_let_in(e, r, q, i, q.used[i] + num * num_writing):
        q.run_num[i] = num
        q.run_end_s[i] = start_s + run_time(e, num, num_writing, context)


@lean_kernel
def place_request(
    e: EngineNumbers,
    r: RequestArrays,
    q: InstanceArrays,
    f: FleetArrays,
    pool: int,
    one: int,
    now_s: float,
) -> bool:
    """Let a request arrive at an instance of a pool; return whether there is one."""
    best, least = NONE, 1 << 60
    for place in range(f.num_members[pool]):
        i = f.members[pool, place]
        load = q.due[i] if q.sends[i] else q.num_waiting[i] + q.num_reading[i] + q.num_writing[i]
        if load < least:
            best, least = i, load
    if best == NONE:
        return False
    r.follower[one] = NONE
    if q.num_waiting[best]:
        r.follower[q.last_waiting[best]] = one
    else:
        q.first_waiting[best] = one
    q.last_waiting[best] = one
    q.num_waiting[best] += 1
    q.due[best] += r.to_read[one]
    if r.to_read[one] == 0:
        r.token_instance[one] = q.number[best]
    look_at_queue(e, r, q, best, now_s)
    return True


@lean_kernel
def is_drained(q: InstanceArrays, i: int) -> bool:
    """Whether a draining instance has nothing left."""
    return bool(
        q.drains[i] and q.run_end_s[i] == math.inf and q.num_waiting[i] == 0 and q.leaving[i] == 0
    )


@lean_kernel
def read_and_send(
    r: RequestArrays,
    q: InstanceArrays,
    f: FleetArrays,
    t: TransferNumbers,
    p: Progress,
    i: int,
    now_s: float,
) -> None:
    """Read the pieces of an iteration; requests that are read write on, or their KV is sent."""
    for place in range(q.num_pieces[i]):
        one = take_read(r, q, i, place)
        if one == NONE:
            break
        if not write_first(r, q, p, i, one, now_s):
            continue
        if not q.sends[i]:
            stay_and_write(r, q, i, one)
            continue
        time_s = t.bytes_per_token * r.held[one] / t.bytes_per_s
        start_s = max(now_s, q.sender_free_s[i]) if t.contend else now_s
        q.sender_free_s[i] = start_s + time_s
        r.last_token_s[one] = now_s
        q.leaving[i] += r.held[one]
        f.sender[one] = i
        push_sent(f, start_s + time_s + t.latency_s, one)


@kernel
def run_until(
    e: EngineNumbers,
    r: RequestArrays,
    q: InstanceArrays,
    f: FleetArrays,
    t: TransferNumbers,
    p: Progress,
    bound_s: float,
    bound_class: int,
) -> float:
    """Simulate up to an event of a time and a class, or until something is to be done; its time.

    ``state[3]`` says what is to be done, ``state[4]`` at which place and ``state[5]`` with which
    request, which has yet to be placed in the last pool (or in the first, where it is held).
    """
    f.state[3] = NOTHING
    last_pool = 1 if len(f.num_members) > 1 else 0
    while True:
        first, end_s = NONE, math.inf
        for place in range(f.state[2]):
            i = f.live[place]
            if q.run_end_s[i] < end_s:
                first, end_s = i, q.run_end_s[i]
        now_s, what = end_s, _RUN_END
        if f.state[1] and f.sent_s[0] < now_s:
            now_s, what = f.sent_s[0], _SENT
        if f.state[0] < len(r.arrival_s) and r.arrival_s[f.state[0]] < now_s:
            now_s, what = r.arrival_s[f.state[0]], _ARRIVAL
        if now_s > bound_s or (now_s == bound_s and what >= bound_class) or now_s == math.inf:
            return now_s
        if what == _RUN_END:
            q.busy_s[first] += now_s - q.run_start_s[first]
            if q.num_writing[first]:
                write_run(e, r, q, p, first, now_s)
            if q.num_pieces[first]:
                read_and_send(r, q, f, t, p, first, now_s)
            begin_run(e, r, q, first, now_s)
            if is_drained(q, first):
                f.state[3], f.state[4], f.state[5] = IS_EMPTY, first, NONE
                return now_s
        elif what == _ARRIVAL:
            one = f.state[0]
            f.state[0] += 1
            if not place_request(e, r, q, f, 0, one, now_s):
                f.state[3], f.state[4], f.state[5] = IS_HELD, 0, one
                return now_s
        else:
            one = pop_sent(f)
            i = f.sender[one]
            q.used[i] -= r.held[one]
            q.leaving[i] -= r.held[one]
            look_at_queue(e, r, q, i, now_s)
            if is_drained(q, i):
                f.state[3], f.state[4], f.state[5] = IS_EMPTY, i, one
                return now_s
            if not place_request(e, r, q, f, last_pool, one, now_s):
                f.state[3], f.state[4], f.state[5] = IS_HELD, last_pool, one
                return now_s


@kernel
def place_now(
    e: EngineNumbers,
    r: RequestArrays,
    q: InstanceArrays,
    f: FleetArrays,
    pool: int,
    one: int,
    now_s: float,
) -> bool:
    """Do what `place_request` does, for callers that are not compiled."""
    return place_request(e, r, q, f, pool, one, now_s)
