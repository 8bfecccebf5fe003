"""The best binding of places to GPUs of equal servers, by branch and bound in compiled code."""

import numpy as np

from agents.devices.binding_bounds import ROUNDING, least_iteration_s, least_step_s
from agents.devices.binding_search import swapped
from agents.devices.binding_times import BindingWork, ServerGpus, device_times_s
from des.base.jit import inner_kernel, kernel
from des.devices.rings import Real, Whole

MOST_ORDERS = 20_000
"""Most bindings of several servers of which all are looked at: those of 3 servers of 4 GPUs."""


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
    best_s = swapped(work, gpus, binding, best_s, binding.size)
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


@inner_kernel
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


@inner_kernel
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
