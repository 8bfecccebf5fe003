"""Compiled ends of iterations: tokens that are written, prompts that are read, gaps.

The rules are those of `des.serving.fleet_instance`.
"""

import math

from des.base.jit import lean_kernel
from des.compiled.kernels.fleet_batches import (
    NONE,
    EngineNumbers,
    InstanceArrays,
    Progress,
    RequestArrays,
    first_time,
)
from des.serving.gaps import NUM_BINS, RATIO, SHORTEST_S

_LOG_RATIO = math.log(RATIO)


@lean_kernel
def close_pause(r: RequestArrays, one: int, now_s: float) -> None:
    """Count a pause between two tokens as a gap."""
    if r.last_token_s[one] >= 0:
        r.longest_gap_s[one] = max(r.longest_gap_s[one], now_s - r.last_token_s[one])
        r.last_token_s[one] = -1.0


@lean_kernel
def count_gaps(q: InstanceArrays, i: int, num: int, gap_s: float) -> None:
    """Count equal gaps, see `des.serving.gaps`."""
    bin_number = 0
    if gap_s > SHORTEST_S:
        bin_number = min(int(math.log(gap_s / SHORTEST_S) / _LOG_RATIO), NUM_BINS - 1)
    q.gap_counts[i, bin_number] += num
    q.gap_sum_s[i] += num * gap_s
    q.num_gaps[i] += num


@lean_kernel
def finish(
    r: RequestArrays, q: InstanceArrays, p: Progress, i: int, one: int, now_s: float
) -> None:
    """End a request."""
    r.end_s[one] = now_s
    q.used[i] -= r.held[one]
    p.counts[0] += 1
    p.counts[1] += r.output[one]
    in_time = r.first_token_s[one] - r.arrival_s[one] <= p.ttft_s
    p.counts[2] += int(in_time and r.longest_gap_s[one] <= p.gap_s)


@lean_kernel
def write_run(
    e: EngineNumbers, r: RequestArrays, q: InstanceArrays, p: Progress, i: int, now_s: float
) -> None:
    """Write the tokens of a run; finished requests leave."""
    num, num_writing, start_s = q.run_num[i], q.num_writing[i], q.run_start_s[i]
    if q.num_pieces[i]:
        first_s = last_s = now_s - start_s
        count_gaps(q, i, num_writing, first_s)
    else:
        first_s = first_time(e, num_writing, q.context[i])
        last_s = first_time(e, num_writing, q.context[i] + (num - 1) * num_writing)
        count_gaps(q, i, num_writing * num, (first_s + last_s) / 2)
    q.used[i] += num * num_writing
    q.context[i] += num * num_writing
    num_left = 0
    for place in range(num_writing):
        one = q.writing[i, place]
        r.written[one] += num
        r.held[one] += num
        r.longest_gap_s[one] = max(r.longest_gap_s[one], last_s)
        close_pause(r, one, start_s + first_s)
        if r.written[one] < r.output[one]:
            q.writing[i, num_left] = one
            num_left += 1
        else:
            q.context[i] -= r.held[one]
            finish(r, q, p, i, one, now_s)
    q.num_writing[i] = num_left


@lean_kernel
def take_read(r: RequestArrays, q: InstanceArrays, i: int, place: int) -> int:
    """Read a piece of the first prompt; return the request if all of it is read, or -1."""
    one = q.first_reading[i]
    piece = q.pieces[i, place]
    r.to_read[one] -= piece
    q.due[i] -= piece
    if r.to_read[one]:
        return NONE
    q.first_reading[i] = r.follower[one]
    q.num_reading[i] -= 1
    return int(one)


@lean_kernel
def write_first(
    r: RequestArrays, q: InstanceArrays, p: Progress, i: int, one: int, now_s: float
) -> bool:
    """Write the token that ends the prompt; return whether more are to come."""
    r.written[one] += 1
    if math.isnan(r.first_token_s[one]):
        r.first_token_s[one] = now_s
        r.prompt_instance[one] = q.number[i]
    close_pause(r, one, now_s)
    if r.written[one] == r.output[one]:
        finish(r, q, p, i, one, now_s)
        return False
    return True


@lean_kernel
def stay_and_write(r: RequestArrays, q: InstanceArrays, i: int, one: int) -> None:
    """Write on at the instance that has read the prompt."""
    r.token_instance[one] = q.number[i]
    q.writing[i, q.num_writing[i]] = one
    q.num_writing[i] += 1
    q.context[i] += r.held[one]
