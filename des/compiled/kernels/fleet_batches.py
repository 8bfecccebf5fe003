"""Compiled rules of an instance with continuous batching, those of `des.serving.fleet_instance`."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from des.base.jit import lean_kernel
from des.serving.batch_times import STEP_REQUESTS

Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
NONE = -1
"""End of a list of requests."""


class EngineNumbers(NamedTuple):
    """Times and limits of an engine, see `des.serving.batch_times.BatchTimes`."""

    base_s: float
    per_prompt_token_s: float
    per_prompt_context_s: float
    per_request_s: float
    per_context_s: float
    per_square_request_s: float
    per_mean_context_s: float
    above_256_s: float
    kv_capacity_tokens: int
    max_batch_size: int
    chunk_tokens: int


class RequestArrays(NamedTuple):
    """Requests (N,): what they are, their state, and the next of the list that each is in."""

    arrival_s: Numbers
    prompt: Counts
    output: Counts
    to_read: Counts
    held: Counts
    written: Counts
    restarts: Counts
    follower: Counts
    first_token_s: Numbers
    end_s: Numbers
    last_token_s: Numbers
    longest_gap_s: Numbers
    prompt_instance: Counts
    token_instance: Counts


class InstanceArrays(NamedTuple):
    """Places (I,) of instances: requests that wait and are read, and the run that is under way.

    ``writing`` and ``pieces`` are (I, batch), ``gap_counts`` is (I, bins), ``number`` is that of
    the instance that has the place. ``sends`` and ``drains`` are 0 or 1.
    """

    number: Counts
    sends: Counts
    drains: Counts
    first_waiting: Counts
    last_waiting: Counts
    num_waiting: Counts
    first_reading: Counts
    last_reading: Counts
    num_reading: Counts
    writing: Counts
    num_writing: Counts
    pieces: Counts
    num_pieces: Counts
    used: Counts
    context: Counts
    run_num: Counts
    due: Counts
    leaving: Counts
    num_gaps: Counts
    gap_counts: Counts
    run_start_s: Numbers
    run_end_s: Numbers
    busy_s: Numbers
    gap_sum_s: Numbers
    sender_free_s: Numbers


class Progress(NamedTuple):
    """Counts (3,): finished requests, tokens of them, good ones; limits of good ones."""

    counts: Counts
    ttft_s: float
    gap_s: float


@lean_kernel
def first_time(e: EngineNumbers, num: int, context: int) -> float:
    """Time of an iteration that only decodes, see `BatchTimes.first_s`. [s]"""
    if num == 0:
        return e.base_s
    return (
        e.base_s
        + (e.per_request_s + e.per_square_request_s * num) * num
        + e.per_context_s * context
        + e.per_mean_context_s * (context / num)
        + (e.above_256_s if num > STEP_REQUESTS else 0.0)
    )


@lean_kernel
def run_time(e: EngineNumbers, num: int, num_writing: int, context: int) -> float:
    """Time of a run, see `BatchTimes.run_s`. [s]"""
    growth_s = e.per_context_s * num_writing + e.per_mean_context_s
    return num * first_time(e, num_writing, context) + growth_s * (num * (num - 1) / 2)


@lean_kernel
def whole_within(
    e: EngineNumbers, elapsed_s: float, most: int, num_writing: int, context: int
) -> int:
    """Whole iterations of a run within a time, see `BatchTimes.num_within`."""
    half_s = (e.per_context_s * num_writing + e.per_mean_context_s) / 2
    linear_s = first_time(e, num_writing, context) - half_s
    root = math.sqrt(linear_s * linear_s + 4.0 * half_s * elapsed_s)
    num = min(int(2.0 * elapsed_s / (linear_s + root)), most)
    while num > 0 and run_time(e, num, num_writing, context) > elapsed_s:
        num -= 1
    while num < most and run_time(e, num + 1, num_writing, context) <= elapsed_s:
        num += 1
    return num


@lean_kernel
def can_let_in(e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int, used: int) -> bool:
    """Whether the first request that waits can be let in."""
    num = q.num_reading[i] + q.num_writing[i]
    needed = used + r.held[q.first_waiting[i]] + num + 1
    return bool(num < e.max_batch_size and needed <= e.kv_capacity_tokens)


@lean_kernel
def let_requests_in(e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int) -> None:
    """Let requests in while they fit."""
    while q.num_waiting[i] and can_let_in(e, r, q, i, q.used[i]):
        one = q.first_waiting[i]
        q.first_waiting[i] = r.follower[one]
        q.num_waiting[i] -= 1
        q.used[i] += r.held[one]
        r.follower[one] = NONE
        if r.to_read[one] == 0:
            q.writing[i, q.num_writing[i]] = one
            q.num_writing[i] += 1
            q.context[i] += r.held[one]
            continue
        if q.num_reading[i]:
            r.follower[q.last_reading[i]] = one
        else:
            q.first_reading[i] = one
        q.last_reading[i] = one
        q.num_reading[i] += 1


@lean_kernel
def give_up_last(
    e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int, now_s: float
) -> None:
    """Give up the last that write until each of the others has room for a token."""
    while q.num_writing[i] and e.kv_capacity_tokens - q.used[i] < q.num_writing[i]:
        q.num_writing[i] -= 1
        one = q.writing[i, q.num_writing[i]]
        q.context[i] -= r.held[one]
        q.used[i] -= r.held[one]
        r.restarts[one] += 1
        if r.last_token_s[one] < 0:
            r.last_token_s[one] = now_s
        r.to_read[one] = r.held[one] = r.prompt[one] + r.written[one]
        q.due[i] += r.to_read[one]
        r.follower[one] = q.first_waiting[i]
        if q.num_waiting[i] == 0:
            r.follower[one] = NONE
            q.last_waiting[i] = one
        q.first_waiting[i] = one
        q.num_waiting[i] += 1


@lean_kernel
def begin_run(e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int, now_s: float) -> None:
    """Begin the next run, or rest."""
    let_requests_in(e, r, q, i)
    give_up_last(e, r, q, i, now_s)
    num_writing = q.num_writing[i]
    q.num_pieces[i] = 0
    q.run_start_s[i] = now_s
    if q.num_reading[i]:
        q.run_num[i] = 1
        q.run_end_s[i] = now_s + mix_time(e, r, q, i)
    elif num_writing:
        num = (e.kv_capacity_tokens - q.used[i]) // num_writing
        for place in range(num_writing):
            one = q.writing[i, place]
            num = min(num, r.output[one] - r.written[one])
        q.run_num[i] = num
        q.run_end_s[i] = now_s + run_time(e, num, num_writing, q.context[i])
    else:
        q.run_end_s[i] = math.inf


@lean_kernel
def mix_time(e: EngineNumbers, r: RequestArrays, q: InstanceArrays, i: int) -> float:
    """Choose pieces of the prompts that are read; return the time of the iteration. [s]"""
    budget = e.chunk_tokens - q.num_writing[i]
    tokens, products = 0, 0.0
    one = q.first_reading[i]
    for place in range(q.num_reading[i]):
        piece = min(r.to_read[one], budget - tokens)
        if piece <= 0:
            break
        before = r.held[one] - r.to_read[one]
        products += piece * (before + piece / 2)
        tokens += piece
        q.pieces[i, place] = piece
        q.num_pieces[i] += 1
        one = r.follower[one]
    return (
        first_time(e, q.num_writing[i], q.context[i])
        + e.per_prompt_token_s * tokens
        + e.per_prompt_context_s * products
    )
