"""Orders of the workers of one pipeline as arrays: those of `des.schedules`, made in a loop.

A row of a worker is kind (`F` or `B` by number), chunk and microbatch.
"""

import numpy as np

from des.base.jit import inner_kernel, lean_kernel

F, B = range(2)
"""Kinds of passes by number: forward and whole backward."""


@lean_kernel
def write_interleaved(
    orders: np.ndarray, num_workers: int, num_chunks: int, num_microbatches: int, group_size: int
) -> int:
    """Write orders of `des.schedules.interleaved.interleaved_1f1b`; returns rows of a worker."""
    rest = num_microbatches % group_size
    whole = num_microbatches
    if rest < num_workers:
        whole = -(-num_microbatches // group_size) * group_size
    num_passes = whole * num_chunks
    for worker in range(num_workers):
        warm_up = 2 * (num_workers - 1 - worker) + (num_chunks - 1) * group_size
        at = 0
        for forward in range(min(warm_up, num_passes)):
            at = _put_nth(orders, worker, at, F, forward, whole, num_chunks, group_size)
            at -= orders[worker, at - 1, 2] >= num_microbatches
        for backward in range(num_passes):
            forward = warm_up + backward
            if forward < num_passes:
                at = _put_nth(orders, worker, at, F, forward, whole, num_chunks, group_size)
                at -= orders[worker, at - 1, 2] >= num_microbatches
            at = _put_nth(orders, worker, at, B, backward, whole, num_chunks, group_size)
            at -= orders[worker, at - 1, 2] >= num_microbatches
    return 2 * num_chunks * num_microbatches


@inner_kernel
def _put_nth(
    orders: np.ndarray,
    worker: int,
    at: int,
    kind: int,
    nth: int,
    num_microbatches: int,
    num_chunks: int,
    group_size: int,
) -> int:
    """Put down the nth forward or backward pass: a group of microbatches chunk by chunk."""
    first = nth // (group_size * num_chunks) * group_size
    size = min(group_size, num_microbatches - first)
    within = nth - first * num_chunks
    chunk = within // size
    if kind == B:
        chunk = num_chunks - 1 - chunk
    return _put(orders, worker, at, kind, chunk, first + within % size)


@inner_kernel
def _put(orders: np.ndarray, worker: int, at: int, kind: int, chunk: int, microbatch: int) -> int:
    orders[worker, at, 0] = kind
    orders[worker, at, 1] = chunk
    orders[worker, at, 2] = microbatch
    return at + 1
