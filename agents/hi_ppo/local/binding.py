"""Bindings of places to physical GPUs: their times, and quick ones.

A binding names a GPU for every place: devices in a row, each with its replicas, each with its
tensor group, so place ``(device * data + replica) * tensor + rank``. What a binding costs is in
`agents.hi_ppo.local.times`; here is the same arithmetic in compiled code.
"""

from typing import NamedTuple

import numpy as np

from des.base.jit import kernel, lean_kernel
from des.devices.rings import Real, Whole, Wires, bits

ROUNDING = 1e-12
"""Relative slack by which rounding may lift a bound above its value."""


class BindingWork(NamedTuple):
    """One option in numbers; arrays hold one item per device, ``pipeline`` or more.

    ``tensor_steps`` of ``tensor_bytes`` are what a microbatch takes in rings over tensor groups;
    ``data_steps`` of ``data_bytes`` those over the replicas in an iteration. ``fill`` is the number
    of times that the slowest device counts, in addition to once for each device.
    """

    tensor: int
    data: int
    pipeline: int
    compute_s: Real
    tensor_steps: Real
    tensor_bytes: float
    data_steps: int
    data_bytes: Real
    message_bytes: float
    fill: int


@lean_kernel
def iteration_s(work: BindingWork, wires: Wires, binding: Whole) -> float:
    """Time of an iteration, see `agents.hi_ppo.local.times.iteration_s`. [s]"""
    slowest_s = total_s = exchange_s = 0.0
    for device in range(work.pipeline):
        device_s = device_s_of(work, wires, binding, device)
        hop_s, transfer_s = hop_s_of(work, wires, binding, device)
        slowest_s = max(slowest_s, device_s, transfer_s)
        total_s += device_s + 2.0 * hop_s
        exchange_s = max(exchange_s, exchange_s_of(work, wires, binding, device))
    return work.fill * slowest_s + total_s + exchange_s


@lean_kernel
def device_s_of(work: BindingWork, wires: Wires, binding: Whole, device: int) -> float:
    """Both passes of a microbatch on a device, with the rings of its slowest tensor group."""
    step_s = 0.0
    if work.tensor > 1:
        for replica in range(work.data):
            mask, begin = 0, (device * work.data + replica) * work.tensor
            for rank in range(work.tensor):
                mask |= 1 << binding[begin + rank]
            step_s = max(step_s, step_s_of(wires, mask, work.tensor_bytes))
    return float(work.compute_s[device] + work.tensor_steps[device] * step_s)


@lean_kernel
def exchange_s_of(work: BindingWork, wires: Wires, binding: Whole, device: int) -> float:
    """Sum of the gradients of a device, over the slowest ring of its replicas."""
    step_s = 0.0
    if work.data > 1:
        for rank in range(work.tensor):
            mask = 0
            for replica in range(work.data):
                mask |= 1 << binding[(device * work.data + replica) * work.tensor + rank]
            step_s = max(step_s, step_s_of(wires, mask, work.data_bytes[device]))
    return work.data_steps * step_s


@lean_kernel
def hop_s_of(work: BindingWork, wires: Wires, binding: Whole, device: int) -> tuple[float, float]:
    """Time of a message from the device before one, and of its slowest wire alone."""
    message_s = transfer_s = 0.0
    if device > 0:
        size = work.tensor * work.data
        for place in range(device * size, (device + 1) * size):
            here, before = binding[place], binding[place - size]
            wire_s = work.message_bytes / wires.bandwidth_bytes_per_s[here, before]
            message_s = max(message_s, wire_s + wires.latency_s[here, before])
            transfer_s = max(transfer_s, wire_s)
    return message_s, transfer_s


@lean_kernel
def step_s_of(wires: Wires, mask: int, num_bytes: float) -> float:
    """One step of the best ring of a set of GPUs."""
    bandwidth = wires.ring_bandwidth_bytes_per_s[mask]
    return float(wires.ring_latency_s[mask] + num_bytes / bandwidth)


@lean_kernel
def least_iteration_s(work: BindingWork, wires: Wires, free: Whole) -> float:
    """Lower bound on the time of any binding: every group and pair has the best wires. [s]"""
    everywhere = 0
    for gpu in free:
        everywhere |= 1 << gpu
    tensor_step_s = least_step_s(wires, everywhere, work.tensor, work.tensor_bytes)
    message_s, transfer_s = least_hop_s(work, wires, free)
    slowest_s, exchange_s, total_s = transfer_s, 0.0, 2.0 * (work.pipeline - 1) * message_s
    for device in range(work.pipeline):
        device_s = work.compute_s[device] + work.tensor_steps[device] * tensor_step_s
        slowest_s = max(slowest_s, device_s)
        total_s += device_s
        step_s = least_step_s(wires, everywhere, work.data, work.data_bytes[device])
        exchange_s = max(exchange_s, work.data_steps * step_s)
    return work.fill * slowest_s + total_s + exchange_s


@lean_kernel
def least_hop_s(work: BindingWork, wires: Wires, free: Whole) -> tuple[float, float]:
    """Time of a message between the best pair of GPUs, and of its wire alone; 0 of one device."""
    if work.pipeline == 1:
        return 0.0, 0.0
    message_s = transfer_s = np.inf
    for one in free:
        for other in free:
            if one != other:
                wire_s = work.message_bytes / wires.bandwidth_bytes_per_s[one, other]
                message_s = min(message_s, wire_s + wires.latency_s[one, other])
                transfer_s = min(transfer_s, wire_s)
    return message_s, transfer_s


@lean_kernel
def least_step_s(wires: Wires, everywhere: int, size: int, num_bytes: float) -> float:
    """One step of the quickest ring of that many GPUs of a set; 0 of a single one."""
    if size == 1:
        return 0.0
    step_s, group = np.inf, everywhere
    while group:
        if bits(group) == size:
            step_s = min(step_s, step_s_of(wires, group, num_bytes))
        group = (group - 1) & everywhere
    return step_s


@kernel
def quick_binding(
    work: BindingWork, wires: Wires, free: Whole, binding: Whole, limit_s: float = np.inf
) -> float:
    """Write a good binding to free GPUs and return its time. [s]

    Three starts: fast tensor groups first, fast groups of replicas first, and the order of the
    numbers. From each, two GPUs swap places (or a place gets an idle one) as long as that helps;
    from the best of them, two swaps at once. ``binding`` (len(free),) holds those in use first.

    That ends where no binding can be better. If none can be below a limit, it does not begin: the
    time is infinite and there is no binding.
    """
    least_s = least_iteration_s(work, wires, free)
    if least_s * (1.0 - ROUNDING) >= limit_s:
        return np.inf
    enough_s = least_s * (1.0 + ROUNDING)
    best_s, trial = np.inf, np.empty(free.size, dtype=np.int64)
    for start in range(3):
        if best_s <= enough_s:
            return best_s
        if start == 0:
            grouped(wires, free, work.tensor, trial)
        elif start == 1:
            grouped(wires, free, work.data, trial)
            _transpose(work, trial)
        else:
            trial[:] = free
        found_s = _descended(work, wires, trial, np.inf)
        if found_s < best_s:
            best_s = found_s
            binding[:] = trial
    used, improves = work.tensor * work.data * work.pipeline, True
    while improves and best_s > enough_s:
        improves = False
        for one in range(used):
            for other in range(one + 1, free.size):
                binding[one], binding[other] = binding[other], binding[one]
                found_s = _descended(work, wires, binding, best_s)
                if found_s < best_s:
                    best_s, improves = found_s, True
                else:
                    binding[one], binding[other] = binding[other], binding[one]
    return best_s


@lean_kernel
def _descended(work: BindingWork, wires: Wires, trial: Whole, below_s: float) -> float:
    """Swap GPUs as long as that makes a time that is below a limit; returns it.

    With an infinite limit the start counts. If no swap comes below, nothing has changed.
    """
    used = work.tensor * work.data * work.pipeline
    now_s = iteration_s(work, wires, trial) if below_s == np.inf else below_s
    improves = True
    while improves:
        improves = False
        for one in range(used):
            for other in range(one + 1, trial.size):
                trial[one], trial[other] = trial[other], trial[one]
                found_s = iteration_s(work, wires, trial)
                if found_s < now_s * (1.0 - ROUNDING):
                    now_s, improves = found_s, True
                else:
                    trial[one], trial[other] = trial[other], trial[one]
    return now_s


@lean_kernel
def grouped(wires: Wires, free: Whole, size: int, order: Whole) -> None:
    """Write free GPUs as groups of a size, the one with the fastest ring first, then of the rest.

    GPUs that are left over come last.
    """
    left = 0
    for gpu in free:
        left |= 1 << gpu
    at = 0
    while bits(left) >= size > 1:
        group, best, best_s = left, 0, np.inf
        while group:
            if bits(group) == size:
                step_s = step_s_of(wires, group, 1e6)
                if step_s < best_s:
                    best, best_s = group, step_s
            group = (group - 1) & left
        at = _written(best, order, at)
        left ^= best
    _written(left, order, at)


@lean_kernel
def _written(mask: int, order: Whole, at: int) -> int:
    for gpu in range(wide(mask)):
        if mask >> gpu & 1:
            order[at] = gpu
            at += 1
    return at


@lean_kernel
def wide(mask: int) -> int:
    """Bits up to the highest GPU of a set."""
    width = 0
    while mask >> width:
        width += 1
    return width


@kernel
def _transpose(work: BindingWork, order: Whole) -> None:
    """Turn groups of replicas in a row into places of devices."""
    size = work.tensor * work.data
    device = np.empty(size, dtype=np.int64)
    for begin in range(0, size * work.pipeline, size):
        device[:] = order[begin : begin + size]
        for rank in range(work.tensor):
            for replica in range(work.data):
                order[begin + replica * work.tensor + rank] = device[rank * work.data + replica]
