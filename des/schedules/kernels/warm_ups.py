"""Makespans of schedules that differ in their warm-ups alone. Stages S, candidates N."""

import numpy as np

from des.base.jit import inner_kernel, kernel
from des.schedules.kernels.board import FORWARD, Real, Whole

_BACKWARD = 1


@kernel
def warm_up_makespans(
    depths: Whole, num_microbatches: int, work_s: Real, transfer_s: Real, latency_s: Real
) -> Real:
    """Time candidates of `warm_up_then_alternate`, each as `timing_of` does, to the last bit.

    Parameters
    ----------
    depths
        Forwards that every stage begins with, (N, S), no stage fewer than the next.
    work_s
        Times of a forward and of a whole backward pass of every stage, (2, S).
    transfer_s, latency_s
        Of the border behind every stage but the last, down and up, (2, S - 1).

    Returns
    -------
    makespans
        (N,); infinite where stages wait for each other for ever. [s]
    """
    num_stages = work_s.shape[1]
    arrival_s = np.zeros((2, num_stages, num_microbatches))
    num_arrived = np.zeros((2, num_stages), np.int64)
    free_s, wire_free_s = np.empty(num_stages), np.empty((2, num_stages))
    num_done, found_s = np.empty(num_stages, np.int64), np.empty(len(depths))
    for candidate in range(len(depths)):
        num_arrived[:] = 0
        num_arrived[FORWARD, 0] = num_arrived[_BACKWARD, -1] = num_microbatches
        num_done[:], free_s[:], wire_free_s[:] = 0, 0.0, 0.0
        num_left = 2 * num_stages * num_microbatches
        while num_left:
            before = num_left
            for step in range(2 * num_stages):
                stage = min(step, 2 * num_stages - 1 - step)
                depth = depths[candidate, stage]
                while num_done[stage] < 2 * num_microbatches:
                    kind, microbatch = _pass_at(num_done[stage], depth, num_microbatches)
                    if microbatch >= num_arrived[kind, stage]:
                        break
                    num_done[stage] += 1
                    num_left -= 1
                    end_s = max(free_s[stage], arrival_s[kind, stage, microbatch])
                    end_s += work_s[kind, stage]
                    free_s[stage] = end_s
                    receiver = stage + 1 - 2 * kind
                    if 0 <= receiver < num_stages:
                        border = min(stage, receiver)
                        left_s = max(end_s, wire_free_s[kind, border]) + transfer_s[kind, border]
                        wire_free_s[kind, border] = left_s
                        arrival_s[kind, receiver, microbatch] = left_s + latency_s[kind, border]
                        num_arrived[kind, receiver] = microbatch + 1
            if num_left == before:
                free_s[:] = np.inf
                break
        found_s[candidate] = free_s.max()
    return found_s


@inner_kernel
def _pass_at(position: int, depth: int, num_microbatches: int) -> tuple[int, int]:
    """Kind and microbatch of a pass of `des.schedules.flush.warm_up_then_alternate`."""
    if position < depth:
        return FORWARD, position
    if position >= 2 * num_microbatches - depth:
        return _BACKWARD, position - num_microbatches
    pair, kind = divmod(position - depth, 2)
    return kind, pair + (depth if kind == FORWARD else 0)
