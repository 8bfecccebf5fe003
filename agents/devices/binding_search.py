"""Good bindings of places to GPUs of equal servers, and the best ones, in compiled code.

Equal servers with equal devices are best bound alike, so orders of the GPUs of one server are
searched first, the same in all; then of each server apart, as layers, borders and GPUs that stand
idle differ.
"""

from typing import NamedTuple

import numpy as np

from agents.devices.binding_bounds import least_iteration_s, least_step_s
from agents.devices.binding_times import (
    BindingWork,
    BindingWorks,
    ServerGpus,
    device_times_s,
    iteration_s,
    step_s_of,
    work_at,
)
from des.base.jit import kernel, lean_kernel
from des.devices.rings import Real, Whole, bits

ROUNDING = 1e-12
"""Relative slack by which rounding may lift a bound above its value."""

NUM_STARTS = 13
"""Orders of the GPUs of several servers that a search begins from."""

MOST_ORDERS = 20_000
"""Most bindings of several servers of which all are looked at: those of 3 servers of 4 GPUs."""


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
            found_s = _swapped(work, gpus, trial, found_s, order.size)
        if found_s < best_s:
            best_s = found_s
            binding[:] = trial
    if best_s <= enough_s:
        return best_s
    if is_alone:
        return _swapped_twice(work, gpus, binding, best_s, enough_s)
    return _swapped(work, gpus, binding, best_s, binding.size)


@kernel
def _write_start(work: BindingWork, gpus: ServerGpus, start: int, number: int, order: Whole) -> int:
    """Write an order of the GPUs of a server to begin from; return the next number of a sequence.

    The first has fast tensor groups first. On one server, fast groups of replicas follow, and the
    order of the numbers; below 0, for several, the last order is shuffled by the sequence.
    """
    if start == 0:
        _grouped(gpus, min(work.tensor, gpus.per_server), order)
    elif start == 1:
        _grouped(gpus, work.data, order)
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


@lean_kernel
def _grouped(gpus: ServerGpus, size: int, order: Whole) -> None:
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


@lean_kernel
def _swapped(
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


@lean_kernel
def _swap(binding: Whole, one: int, other: int, period: int) -> None:
    for first in range(0, binding.size, period):
        here, there = first + one, first + other
        binding[here], binding[there] = binding[there], binding[here]


@lean_kernel
def _swapped_twice(
    work: BindingWork, gpus: ServerGpus, binding: Whole, best_s: float, enough_s: float
) -> float:
    """Swap two GPUs, whatever that brings, and then as `_swapped`, as long as both help. [s]"""
    improves, used = True, work.tensor * work.data * work.pipeline
    while improves and best_s > enough_s:
        improves = False
        for one in range(used):
            for other in range(one + 1, binding.size):
                _swap(binding, one, other, binding.size)
                found_s = _swapped(work, gpus, binding, best_s, binding.size)
                if found_s < best_s:
                    best_s, improves = found_s, True
                else:
                    _swap(binding, one, other, binding.size)
    return best_s


@kernel
def best_binding(work: BindingWork, gpus: ServerGpus, limit_s: float, binding: Whole) -> float:
    """Write the best binding and return its time, if that is below a limit; else infinity. [s]

    Of all bindings, if they are on one server or `MOST_ORDERS` at most; else of all that servers
    take alike, from the best of which two GPUs of a server swap as long as that helps.
    """
    used, num_orders = work.tensor * work.data * work.pipeline, 1.0
    num_servers = (used + gpus.per_server - 1) // gpus.per_server
    for each in range(2, gpus.per_server + 1):
        num_orders *= float(each) ** num_servers
    if num_servers == 1 or num_orders <= MOST_ORDERS:
        return _best_in_order(work, gpus, limit_s, binding, False)
    if least_iteration_s(work, gpus) * (1.0 + ROUNDING) >= limit_s:
        return np.inf
    best_s = _best_in_order(work, gpus, np.inf, binding, True)
    for place in range(used, binding.size):
        binding[place] = binding[place - gpus.per_server]
    best_s = _swapped(work, gpus, binding, best_s, binding.size)
    return best_s if best_s < limit_s else np.inf


@kernel
def _best_in_order(
    work: BindingWork, gpus: ServerGpus, limit_s: float, binding: Whole, is_alike: bool
) -> float:
    """Write the best binding below a limit, servers alike or not; return its time or infinity. [s]

    Depth first over the places, a GPU each. Where a device is complete, the branch ends if devices
    that are left cannot make it quicker than the limit, each with the fastest ring of all.
    """
    used, size = work.tensor * work.data * work.pipeline, work.tensor * work.data
    sums = _least_rest(work, gpus)
    trial, choice = np.zeros(used, dtype=np.int64), np.full(used, -1)
    taken = np.zeros(used // gpus.per_server + 1, dtype=np.int64)
    place, best_s = 0, np.inf
    while place >= 0:
        server = place // gpus.per_server
        if choice[place] >= 0:
            taken[server] ^= 1 << trial[place]
        choice[place] += 1
        if choice[place] == gpus.free.size:
            choice[place] = -1
            place -= 1
            continue
        trial[place] = gpus.free[choice[place]]
        may_be = not taken[server] >> trial[place] & 1
        taken[server] ^= 1 << trial[place]
        if not may_be or not _is_first(work, gpus, trial, place, is_alike):
            continue
        if (place + 1) % size == 0:
            bound_s = _bound_s(work, gpus, trial, place // size, sums)
            if bound_s >= limit_s:
                continue
            if place + 1 == used:
                best_s = limit_s = bound_s
                binding[:used] = trial
                continue
        place += 1
    return best_s


@lean_kernel
def _is_first(
    work: BindingWork, gpus: ServerGpus, trial: Whole, place: int, is_alike: bool
) -> bool:
    """Whether a binding is the first of those that are as quick, and servers are alike if asked.

    Ranks of all tensor groups may change places together, and so may replicas of all devices: on
    the first device the lowest GPU has the first place, and those next to and below it rise.
    """
    gpu, size = trial[place], work.tensor * work.data
    if is_alike and place >= gpus.per_server:
        return bool(gpu == trial[place - gpus.per_server])
    if place == 0 or place >= size or size > gpus.per_server:
        return True
    if gpu < trial[0] or (place < work.tensor and gpu < trial[place - 1]):
        return False
    return place % work.tensor != 0 or bool(gpu > trial[place - work.tensor])


@lean_kernel
def _bound_s(work: BindingWork, gpus: ServerGpus, trial: Whole, device: int, sums: Real) -> float:
    """Least time with some GPUs for devices up to one, whose sums (5, p + 1) are written. [s]"""
    device_s, hop_s, wire_s, gradients_s = device_times_s(work, gpus, trial, device)
    here = device + 1
    sums[0, here] = max(sums[0, device], device_s, wire_s)
    sums[1, here] = sums[1, device] + (device_s + 2.0 * hop_s)
    sums[2, here] = max(sums[2, device], gradients_s)
    bound_s = work.fill * max(sums[0, here], sums[3, here])
    bound_s += sums[1, here] + sums[4, here]
    return float(bound_s + sums[2, here])


@kernel
def _least_rest(work: BindingWork, gpus: ServerGpus) -> Real:
    """Sums over devices before 0, 1, ... (5, p + 1), still 0, and over those from there on.

    The slowest device or wire, all of them, and the longest sum of gradients of those before; the
    slowest and all of the others at best.
    """
    step_s = least_step_s(gpus, work.tensor, work.tensor_bytes)
    sums = np.zeros((5, work.pipeline + 1))
    for device in range(work.pipeline - 1, -1, -1):
        device_s = work.compute_s[device] + work.tensor_steps[device] * step_s
        sums[3, device] = max(sums[3, device + 1], device_s)
        sums[4, device] = sums[4, device + 1] + device_s * (1.0 - ROUNDING)
    return sums
