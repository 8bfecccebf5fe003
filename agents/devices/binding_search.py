"""Good bindings of places to GPUs of equal servers, in compiled code.

Equal servers with equal devices are best bound alike, so orders of the GPUs of one server are
searched first, the same in all; then of each server apart, as layers, borders and GPUs that stand
idle differ.
"""

from typing import NamedTuple

import numpy as np

from agents.devices.binding_bounds import ROUNDING, least_iteration_s
from agents.devices.binding_times import (
    BindingWork,
    BindingWorks,
    ServerGpus,
    iteration_s,
    step_s_of,
    work_at,
)
from des.base.jit import inner_kernel, kernel
from des.devices.rings import Real, Whole, bits

NUM_STARTS = 13
"""Orders of the GPUs of several servers that a search begins from."""


class Groups(NamedTuple):
    """Groups of options: the rows of all in a row, and where each group ends, (G,)."""

    rows: Whole
    ends: Whole


class Quickest(NamedTuple):
    """The quickest option of each group, its time [s], both (G,), and its binding, (G, n)."""

    row: Whole
    time_s: Real
    binding: Whole


@kernel
def quickest_bindings(
    works: BindingWorks, groups: Groups, gpus: ServerGpus, found: Quickest
) -> None:
    """Write the quickest of each group of options under `quick_binding`; the first of equals."""
    trial, begin = np.empty(found.binding.shape[1], dtype=np.int64), 0
    for group in range(groups.ends.size):
        found.row[group], found.time_s[group] = -1, np.inf
        for row in groups.rows[begin : groups.ends[group]]:
            least_s = found.time_s[group]
            time_s = quick_binding(work_at(works, row), gpus, trial, least_s)
            if time_s < least_s:
                found.row[group], found.time_s[group] = row, time_s
                found.binding[group] = trial
        begin = groups.ends[group]


@kernel
def quick_binding(
    work: BindingWork, gpus: ServerGpus, binding: Whole, limit_s: float = np.inf
) -> float:
    """Write a good binding to free GPUs and return its time. [s]

    From each order of `_write_start`, taken by all servers alike, two GPUs swap places in all of
    them (or a place gets an idle one) as long as that helps. From the best found, on one server two
    swaps are tried at once; on several, swaps in each apart. ``binding``, with a place for every
    free GPU of the servers, holds those in use first.

    That ends where no binding can be better. If none can be below a limit, it does not begin: the
    time is infinite and there is no binding.
    """
    least_s = least_iteration_s(work, gpus)
    if least_s * (1.0 - ROUNDING) >= limit_s:
        return np.inf
    enough_s, best_s = least_s * (1.0 + ROUNDING), np.inf
    is_alone, number = binding.size == gpus.free.size, 1
    order, trial = np.empty_like(gpus.free), np.empty_like(binding)
    for start in range(3 if is_alone else NUM_STARTS):
        if best_s <= enough_s:
            return best_s
        number = _write_start(work, gpus, start if is_alone else -start, number, order)
        for place in range(binding.size):
            trial[place] = order[place % order.size]
        found_s = iteration_s(work, gpus, trial)
        if found_s > enough_s:
            found_s = swapped(work, gpus, trial, found_s, order.size)
        if found_s < best_s:
            best_s = found_s
            binding[:] = trial
    if best_s <= enough_s:
        return best_s
    if is_alone:
        return _swap_twice(work, gpus, binding, best_s, enough_s)
    return swapped(work, gpus, binding, best_s, binding.size)


@kernel
def _write_start(work: BindingWork, gpus: ServerGpus, start: int, number: int, order: Whole) -> int:
    """Write an order of the GPUs of a server to begin from; return the next number of a sequence.

    The first has fast tensor groups first. On one server, fast groups of replicas follow, and the
    order of the numbers; below 0, for several, the last order is shuffled by the sequence.
    """
    if start == 0:
        _group(gpus, min(work.tensor, gpus.per_server), order)
    elif start == 1:
        _group(gpus, work.data, order)
        size = work.tensor * work.data
        for begin in range(0, size * work.pipeline, size):
            device = order[begin : begin + size].copy()
            for place in range(size):
                order[begin + place % work.data * work.tensor + place // work.data] = device[place]
    elif start == 2:
        order[:] = gpus.free
    else:
        for last in range(order.size - 1, 0, -1):
            number = number * 1103515245 + 12345 & 0x7FFFFFFF
            other = (number >> 8) % (last + 1)
            order[last], order[other] = order[other], order[last]
    return number


@inner_kernel
def _group(gpus: ServerGpus, size: int, order: Whole) -> None:
    """Write free GPUs as groups of a size, the one with the fastest ring first, then of the rest.

    GPUs that are left over come last.
    """
    left = at = 0
    for gpu in gpus.free:
        left |= 1 << gpu
    while left:
        best, best_s, group = left, np.inf, left if bits(left) >= size > 1 else 0
        while group:
            if bits(group) == size:
                step_s = step_s_of(gpus.wires, group, 1e6)
                if step_s < best_s:
                    best, best_s = group, step_s
            group = (group - 1) & left
        for gpu in gpus.free:
            if best >> gpu & 1:
                order[at] = gpu
                at += 1
        left ^= best


@inner_kernel
def swapped(
    work: BindingWork, gpus: ServerGpus, binding: Whole, best_s: float, period: int
) -> float:
    """Swap two GPUs of a server as long as that makes the time less; returns it. [s]

    The same is done every ``period`` places on: in all servers alike, or only in one.
    """
    improves, used = True, work.tensor * work.data * work.pipeline
    while improves:
        improves = False
        for one in range(min(used, period)):
            end = min((one // gpus.per_server + 1) * gpus.per_server, binding.size)
            for other in range(one + 1, end):
                _swap(binding, one, other, period)
                found_s = iteration_s(work, gpus, binding)
                if found_s < best_s * (1.0 - ROUNDING):
                    best_s, improves = found_s, True
                else:
                    _swap(binding, one, other, period)
    return best_s


@inner_kernel
def _swap(binding: Whole, one: int, other: int, period: int) -> None:
    for first in range(0, binding.size, period):
        here, there = first + one, first + other
        binding[here], binding[there] = binding[there], binding[here]


@inner_kernel
def _swap_twice(
    work: BindingWork, gpus: ServerGpus, binding: Whole, best_s: float, enough_s: float
) -> float:
    """Swap two GPUs, whatever that brings, and then as `swapped`, as long as both help. [s]"""
    improves, used = True, work.tensor * work.data * work.pipeline
    while improves and best_s > enough_s:
        improves = False
        for one in range(used):
            for other in range(one + 1, binding.size):
                _swap(binding, one, other, binding.size)
                found_s = swapped(work, gpus, binding, best_s, binding.size)
                if found_s < best_s:
                    best_s, improves = found_s, True
                else:
                    _swap(binding, one, other, binding.size)
    return best_s
