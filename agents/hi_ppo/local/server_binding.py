"""Bindings of places to the GPUs of several equal servers, by search in compiled code.

A binding names for each place the GPU within its server, see `agents.hi_ppo.local.server_times`.
Equal servers with equal devices are best bound alike, so orders of the GPUs of one server are
searched first, the same in all; then of each server apart, as layers, borders and GPUs that stand
idle differ.
"""

import numpy as np

from agents.hi_ppo.local.binding import ROUNDING, BindingWork, grouped
from agents.hi_ppo.local.quickest import BindingWorks, work_at
from agents.hi_ppo.local.server_times import WaysOut, least_servers_s, servers_iteration_s
from des.base.jit import kernel, lean_kernel
from des.devices.rings import Whole, Wires

MOST_ORDERS = 20_000
"""Most bindings that are enumerated: those of 3 servers of 4 GPUs, and more of fewer GPUs."""


NUM_STARTS = 12
"""Orders of the GPUs of a server that a search begins from, besides a quick one."""


@kernel
def servers_binding(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, limit_s: float
) -> float:
    """Write a good binding and return its time. [s]

    From the `quick_binding` of the first server's devices, taken by all servers, two GPUs of a
    server swap places as long as that helps: first in all servers alike, then in each apart. That
    ends where no binding can be better. If none can be below a limit, the time is infinite.
    """
    per_server = ways.gpus_per_server
    least_s = least_servers_s(work, wires, ways, np.arange(per_server))
    if least_s * (1.0 - ROUNDING) >= limit_s:
        return np.inf
    enough_s = least_s * (1.0 + ROUNDING)
    best_s = _bound_alike(work, wires, ways, binding, enough_s)
    if best_s > enough_s:
        best_s = swapped_apart(work, wires, ways, binding, best_s)
    return best_s


@kernel
def _in_all(order: Whole, count: int) -> Whole:
    """Order of the GPUs of one server, as that of all places."""
    found = np.empty(count, dtype=np.int64)
    for place in range(count):
        found[place] = order[place % order.size]
    return found


@kernel
def _bound_alike(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, enough_s: float
) -> float:
    """Write a good binding that all servers take alike and return its time. [s]

    From fast tensor groups, and from `NUM_STARTS` orders that a fixed sequence of numbers shuffles,
    two GPUs swap places in all servers as long as that helps.
    """
    gpus, number, best_s = np.arange(ways.gpus_per_server), 1, np.inf
    order = np.empty_like(gpus)
    grouped(wires, gpus, min(work.tensor, ways.gpus_per_server), order)
    for _ in range(1 + NUM_STARTS):
        if best_s <= enough_s:
            break
        trial = _in_all(order, binding.size)
        found_s = servers_iteration_s(work, wires, ways, trial)
        if found_s > enough_s:
            found_s = _descended(work, wires, ways, trial, found_s)
        if found_s < best_s:
            best_s = found_s
            binding[:] = trial
        for last in range(order.size - 1, 0, -1):
            number = number * 1103515245 + 12345 & 0x7FFFFFFF
            other = (number >> 8) % (last + 1)
            order[last], order[other] = order[other], order[last]
    return best_s


@lean_kernel
def _descended(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, below_s: float
) -> float:
    """Swap two GPUs in all servers as long as that makes a time below a limit; returns it. [s]

    If no swap comes below, nothing has changed.
    """
    per_server, improves = ways.gpus_per_server, True
    while improves:
        improves = False
        for one in range(per_server):
            for other in range(one + 1, per_server):
                _swap_in_all(binding, per_server, one, other)
                found_s = servers_iteration_s(work, wires, ways, binding)
                if found_s < below_s * (1.0 - ROUNDING):
                    below_s, improves = found_s, True
                else:
                    _swap_in_all(binding, per_server, one, other)
    return below_s


@lean_kernel
def _swap_in_all(binding: Whole, per_server: int, one: int, other: int) -> None:
    for first in range(0, binding.size, per_server):
        here, there = first + one, first + other
        binding[here], binding[there] = binding[there], binding[here]


@lean_kernel
def swapped_apart(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, best_s: float
) -> float:
    """Swap two GPUs of one server as long as that makes the time less; returns it. [s]"""
    per_server, improves = ways.gpus_per_server, True
    used = work.tensor * work.data * work.pipeline
    while improves:
        improves = False
        for one in range(used):
            for other in range(one + 1, (one // per_server + 1) * per_server):
                binding[one], binding[other] = binding[other], binding[one]
                found_s = servers_iteration_s(work, wires, ways, binding)
                if found_s < best_s * (1.0 - ROUNDING):
                    best_s, improves = found_s, True
                else:
                    binding[one], binding[other] = binding[other], binding[one]
    return best_s


@kernel
def quickest_on_servers(
    works: BindingWorks, rows: Whole, wires: Wires, ways: WaysOut, binding: Whole
) -> tuple[int, float]:
    """Write the best of the `servers_binding` of some options; return which one, and its time. [s]

    The first of equals counts.
    """
    best, best_s, trial = -1, np.inf, np.empty_like(binding)
    for row in rows:
        found_s = servers_binding(work_at(works, row), wires, ways, trial, best_s)
        if found_s < best_s:
            best, best_s = row, found_s
            binding[:] = trial
    return best, best_s


@kernel
def listed_binding(
    work: BindingWork, wires: Wires, ways: WaysOut, limit_s: float, binding: Whole
) -> float:
    """Write the best of many bindings and return its time, if that is below a limit. [s]

    All of them, each server apart, if they are `MOST_ORDERS` at most; else all orders of the GPUs
    of a server that all servers take alike, the best of which `swapped_apart` begins from.
    """
    per_server, used = ways.gpus_per_server, work.tensor * work.data * work.pipeline
    if least_servers_s(work, wires, ways, np.arange(per_server)) * (1.0 + ROUNDING) >= limit_s:
        return np.inf
    num_servers, num_orders = (used + per_server - 1) // per_server, 1.0
    for _ in range(num_servers):
        for each in range(2, per_server + 1):
            num_orders *= each
    is_complete = num_orders <= MOST_ORDERS
    trial, best_s = _in_all(np.arange(per_server), binding.size), np.inf
    is_new = True
    while is_new:
        found_s = servers_iteration_s(work, wires, ways, trial)
        if found_s < best_s:
            best_s = found_s
            binding[:] = trial
        is_new = _next_order(trial[:per_server])
        if not is_complete:
            trial[:] = _in_all(trial[:per_server], trial.size)
        for first in range(per_server, num_servers * per_server, per_server):
            if is_complete and not is_new:
                is_new = _next_order(trial[first : first + per_server])
    if not is_complete:
        best_s = swapped_apart(work, wires, ways, binding, best_s)
    return best_s if best_s < limit_s else np.inf


@kernel
def _next_order(order: Whole) -> bool:
    """Write the next order of whole numbers, behind the last one the first; False then."""
    pivot = order.size - 2
    while pivot >= 0 and order[pivot] > order[pivot + 1]:
        pivot -= 1
    if pivot >= 0:
        other = order.size - 1
        while order[other] < order[pivot]:
            other -= 1
        order[pivot], order[other] = order[other], order[pivot]
    order[pivot + 1 :] = order[pivot + 1 :][::-1].copy()
    return pivot >= 0
