"""Times of options before they are bound, in compiled code: all groups have the best rings.

An estimate is the time of `agents.devices.binding_times` if all groups of an option could have the
best disjoint rings at once, its neighbours the best pair, and its cards were shared evenly. The
bound gives each group the best ring that any could have: no binding is quicker.
"""

from typing import NamedTuple

import numpy as np

from agents.devices.binding_times import (
    BindingWork,
    BindingWorks,
    ServerGpus,
    crossing_s,
    gather_s_of,
    step_s_of,
    summed_s,
    work_at,
)
from des.base.jit import inner_kernel, kernel, lean_kernel
from des.devices.rings import Real, bits

PARTS = ("total", "compute", "tensor", "hop", "crossing", "gradient", "slowest")
"""Columns of `estimates`, all in seconds.

The whole; what remains of it with free links; what rings of tensor groups, all hops, those between
servers, and sums of gradients add; and the slowest device or wire.
"""


ROUNDING = 1e-12
"""Relative slack by which rounding may lift a bound above its value."""


class BestGroups(NamedTuple):
    """Figures of the best disjoint rings of GPUs, those of `GpuTopology.best_groups`."""

    bytes_per_s: Real
    latency_s: Real


@kernel
def estimates(works: BindingWorks, gpus: ServerGpus, groups: BestGroups) -> Real:
    """Return the estimate of every option and its parts (N, 7), see `PARTS`. [s]"""
    found = np.empty((works.tensor.size, len(PARTS)))
    for row in range(works.tensor.size):
        work, gradients_s = work_at(works, row), 0.0
        num_groups = min(work.data * work.pipeline, gpus.free.size // work.tensor)
        step_s = 0.0
        if work.tensor <= gpus.per_server:
            step_s = _group_step_s(groups, work.tensor, num_groups, work.tensor_bytes)
        for device in range(work.pipeline):
            gradients_s = max(gradients_s, _best_gradients_s(work, gpus, groups, device))
        found[row] = _parts_s(work, gpus, step_s, gradients_s)
    return found


@inner_kernel
def _parts_s(
    work: BindingWork, gpus: ServerGpus, step_s: float, gradients_s: float
) -> tuple[float, float, float, float, float, float, float]:
    """Time of an option and its parts, see `PARTS`, by a step in tensor groups and its sums. [s]"""
    size, gather_s = work.tensor * work.data, (work.tensor - 1) * step_s
    if work.tensor > gpus.per_server:
        gather_s = gather_s_of(work, gpus, (1 << gpus.per_server) - 1)
    inside_s = inside_wire_s = 0.0
    if size < gpus.per_server:
        inside_s, inside_wire_s = _least_hop_s(work, gpus)
    outside_s, outside_wire_s = crossing_s(work, gpus, 1.0, gather_s)
    slowest_s = compute_s = sums_s = slowest_work_s = slowest_sum_s = hops_s = crossings_s = 0.0
    for device in range(work.pipeline):
        sum_s, work_s = work.tensor_steps[device] * step_s, work.compute_s[device]
        compute_s, sums_s = compute_s + work_s, sums_s + sum_s
        slowest_work_s, slowest_sum_s = max(slowest_work_s, work_s), max(slowest_sum_s, sum_s)
        slowest_s = max(slowest_s, work_s + sum_s)
        if device > 0 and device * size % gpus.per_server:
            hops_s, slowest_s = hops_s + 2.0 * inside_s, max(slowest_s, inside_wire_s)
        elif device > 0:
            crossings_s, slowest_s = crossings_s + 2.0 * outside_s, max(slowest_s, outside_wire_s)
    hops_s += crossings_s
    return (
        work.fill * slowest_s + compute_s + sums_s + hops_s + gradients_s,
        work.fill * slowest_work_s + compute_s,
        work.fill * slowest_sum_s + sums_s,
        hops_s,
        crossings_s,
        gradients_s,
        slowest_s,
    )


@inner_kernel
def _best_gradients_s(
    work: BindingWork, gpus: ServerGpus, groups: BestGroups, device: int
) -> float:
    """Sum of the gradients of a device with the best disjoint rings."""
    if work.data == 1:
        return 0.0
    if work.tensor * work.data <= gpus.per_server:
        count = min(work.tensor * work.pipeline, gpus.free.size // work.data)
        return work.data_steps * _group_step_s(groups, work.data, count, work.data_bytes[device])
    ranks = max(1, gpus.per_server // work.tensor)
    place = _row_of(ranks), gpus.per_server // ranks
    return summed_s(work, gpus, device, groups.latency_s[place], groups.bytes_per_s[place])


@inner_kernel
def _group_step_s(groups: BestGroups, size: int, count: int, num_bytes: float) -> float:
    """One step of the slowest of some disjoint rings of a size, the best there are."""
    place = _row_of(size), count
    return float(groups.latency_s[place] + num_bytes / groups.bytes_per_s[place])


@inner_kernel
def _row_of(size: int) -> int:
    """Place of a power of two in `des.devices.gpus.GROUP_SIZES`."""
    row = 0
    while size >> row > 1:
        row += 1
    return row


@lean_kernel
def least_iteration_s(work: BindingWork, gpus: ServerGpus) -> float:
    """Lower bound on the time of any binding: every group, pair and card is the best. [s]"""
    step_s = least_step_s(gpus, work.tensor, work.tensor_bytes)
    return _parts_s(work, gpus, step_s, _least_gradients_s(work, gpus))[0]


@inner_kernel
def least_step_s(gpus: ServerGpus, size: int, num_bytes: float) -> float:
    """One step of the quickest ring of that many free GPUs of a server, or of all; 0 of one."""
    size = min(size, gpus.per_server)
    if size == 1:
        return 0.0
    everywhere, step_s = 0, np.inf
    for gpu in gpus.free:
        everywhere |= 1 << gpu
    group = everywhere
    while group:
        if bits(group) == size:
            step_s = min(step_s, step_s_of(gpus.wires, group, num_bytes))
        group = (group - 1) & everywhere
    return step_s


@inner_kernel
def _least_gradients_s(work: BindingWork, gpus: ServerGpus) -> float:
    """Sum of the gradients of the largest device with the best rings of the servers."""
    most = 0
    for device in range(work.pipeline):
        if work.data_bytes[device] > work.data_bytes[most]:
            most = device
    if work.data == 1 or work.tensor * work.data <= gpus.per_server:
        return work.data_steps * least_step_s(gpus, work.data, work.data_bytes[most])
    rate, inner_s, ranks = np.inf, 0.0, max(1, gpus.per_server // work.tensor)
    if ranks > 1:
        rate, inner_s = 0.0, np.inf
        for ring in range(1, 1 << gpus.per_server):
            if bits(ring) == ranks:
                rate = max(rate, gpus.wires.ring_bandwidth_bytes_per_s[ring])
                inner_s = min(inner_s, gpus.wires.ring_latency_s[ring])
    return summed_s(work, gpus, most, inner_s, rate)


@inner_kernel
def _least_hop_s(work: BindingWork, gpus: ServerGpus) -> tuple[float, float]:
    """Time of a message between the best pair of GPUs, and of its wire alone; 0 of one device."""
    if work.pipeline == 1:
        return 0.0, 0.0
    message_s = transfer_s = np.inf
    for one in gpus.free:
        for other in gpus.free:
            if one != other:
                wire_s = work.message_bytes / gpus.wires.bandwidth_bytes_per_s[one, other]
                message_s = min(message_s, wire_s + gpus.wires.latency_s[one, other])
                transfer_s = min(transfer_s, wire_s)
    return message_s, transfer_s
