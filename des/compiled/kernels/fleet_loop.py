"""Compiled simulation of a fixed mixed pool, the events of `des.serving.fleet_engine`."""

import math

from des.base.jit import kernel, lean_kernel
from des.compiled.kernels.fleet_batches import (
    NONE,
    EngineNumbers,
    InstanceArrays,
    RequestArrays,
    begin_run,
    can_let_in,
    read_pieces,
    run_time,
    whole_within,
    write_run,
)


@lean_kernel
def fleet_arrive(
    e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int, one: int, now_s: float
) -> None:
    """Let a request wait at an instance; if it can be let in, cut the run."""
    r.follower[one] = NONE
    if q.num_waiting[i]:
        r.follower[q.last_waiting[i]] = one
    else:
        q.first_waiting[i] = one
    q.last_waiting[i] = one
    q.num_waiting[i] += 1
    if q.run_end_s[i] == math.inf:
        begin_run(e, r, q, i, now_s)
        return
    if q.num_pieces[i]:
        return
    start_s, num_writing, context = q.run_start_s[i], q.num_writing[i], q.context[i]
    num = whole_within(e, now_s - start_s, q.run_num[i] - 1, num_writing, context) + 1
    if num < q.run_num[i] and can_let_in(e, r, q, i, q.used[i] + num * num_writing):
        q.run_num[i] = num
        q.run_end_s[i] = start_s + run_time(e, num, num_writing, context)


@kernel
def run_fixed_pool(e: EngineNumbers, r: RequestArrays, q: InstanceArrays) -> None:
    """Simulate until every request is finished; ends of runs come before arrivals."""
    num_instances, next_one = len(q.used), 0
    while True:
        first = 0
        for i in range(1, num_instances):
            if q.run_end_s[i] < q.run_end_s[first]:
                first = i
        end_s = q.run_end_s[first]
        if next_one < len(r.arrival_s) and r.arrival_s[next_one] < end_s:
            emptiest, fewest = 0, 1 << 60
            for i in range(num_instances):
                num = q.num_waiting[i] + q.num_reading[i] + q.num_writing[i]
                if num < fewest:
                    emptiest, fewest = i, num
            fleet_arrive(e, r, q, emptiest, next_one, r.arrival_s[next_one])
            next_one += 1
        elif end_s == math.inf:
            return
        else:
            if q.num_writing[first]:
                write_run(e, r, q, first, end_s)
            if q.num_pieces[first]:
                read_pieces(r, q, first, end_s)
            begin_run(e, r, q, first, end_s)
