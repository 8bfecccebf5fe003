"""Estimates of options before they are bound, in compiled code: all have the best groups and cards.

An estimate is the time of `agents.hi_ppo.local.times` if all groups of an option could have the
best disjoint rings at once, its neighbours the best pair, and its cards were shared evenly.
"""

from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.binding import BindingWork, least_hop_s
from agents.hi_ppo.local.quickest import BindingWorks, work_at
from agents.hi_ppo.local.server_times import WaysOut, crossing_s, gather_s_of, summed_s
from des.base.jit import kernel, lean_kernel
from des.devices.rings import Real, Whole, Wires

PARTS = ("total", "compute", "tensor", "hop", "crossing", "gradient", "slowest")
"""Columns of `estimates`, all in seconds.

The whole; what remains of it with free links; what rings of tensor groups, all hops, those between
servers, and sums of gradients add; and the slowest device or wire.
"""


class GpuNetwork(NamedTuple):
    """GPUs of a case: the free ones of a server, their wires, and its ways out.

    ``group_bytes_per_s`` and ``group_latency_s`` are the `GpuTopology.best_groups`.
    """

    free: Whole
    wires: Wires
    group_bytes_per_s: Real
    group_latency_s: Real
    ways: WaysOut


@kernel
def estimates(works: BindingWorks, network: GpuNetwork) -> Real:
    """Return the estimate of every option and its parts (N, 7), see `PARTS`. [s]"""
    found = np.empty((works.tensor.size, len(PARTS)))
    for row in range(works.tensor.size):
        _estimate(work_at(works, row), network, found[row])
    return found


@lean_kernel
def _estimate(work: BindingWork, network: GpuNetwork, parts: Real) -> None:
    """Write the estimate of an option and its parts."""
    size, per_server = work.tensor * work.data, network.ways.gpus_per_server
    step_s, gather_s = _tensor_s(work, network)
    inside_s = inside_wire_s = 0.0
    if size < per_server:
        inside_s, inside_wire_s = least_hop_s(work, network.wires, network.free)
    outside_s, outside_wire_s = crossing_s(work, network.ways, 1.0, gather_s)
    slowest_s = compute_s = sums_s = exchange_s = 0.0
    slowest_work_s = slowest_sum_s = hops_s = crossings_s = 0.0
    for device in range(work.pipeline):
        sum_s, work_s = work.tensor_steps[device] * step_s, work.compute_s[device]
        compute_s, sums_s = compute_s + work_s, sums_s + sum_s
        slowest_work_s, slowest_sum_s = max(slowest_work_s, work_s), max(slowest_sum_s, sum_s)
        slowest_s = max(slowest_s, work_s + sum_s)
        if device > 0 and device * size % per_server:
            hops_s, slowest_s = hops_s + 2.0 * inside_s, max(slowest_s, inside_wire_s)
        elif device > 0:
            crossings_s, slowest_s = crossings_s + 2.0 * outside_s, max(slowest_s, outside_wire_s)
        exchange_s = max(exchange_s, _gradients_s(work, network, device))
    hops_s += crossings_s
    parts[0] = work.fill * slowest_s + compute_s + sums_s + hops_s + exchange_s
    parts[1] = work.fill * slowest_work_s + compute_s
    parts[2] = work.fill * slowest_sum_s + sums_s
    parts[3], parts[4], parts[5], parts[6] = hops_s, crossings_s, exchange_s, slowest_s


@lean_kernel
def _tensor_s(work: BindingWork, network: GpuNetwork) -> tuple[float, float]:
    """Step of the rings of tensor groups, and time in which one gathers a message."""
    per_server = network.ways.gpus_per_server
    if work.tensor > per_server:
        gather_s = gather_s_of(work, network.wires, network.ways, (1 << per_server) - 1)
        return 0.0, gather_s
    count = min(work.data * work.pipeline, network.free.size // work.tensor)
    step_s = _step_s(network, work.tensor, count, work.tensor_bytes)
    return step_s, (work.tensor - 1) * step_s


@lean_kernel
def _gradients_s(work: BindingWork, network: GpuNetwork, device: int) -> float:
    """Sum of the gradients of a device."""
    if work.data == 1:
        return 0.0
    num_free, per_server = network.free.size, network.ways.gpus_per_server
    if work.tensor * work.data <= per_server:
        count = min(work.tensor * work.pipeline, num_free // work.data)
        return work.data_steps * _step_s(network, work.data, count, work.data_bytes[device])
    ranks = max(1, per_server // work.tensor)
    row = _row_of(ranks)
    latency_s = network.group_latency_s[row, per_server // ranks]
    bandwidth = network.group_bytes_per_s[row, per_server // ranks]
    return summed_s(work, network.ways, device, latency_s, bandwidth)


@lean_kernel
def _step_s(network: GpuNetwork, size: int, count: int, num_bytes: float) -> float:
    """One step of the slowest of some disjoint rings of a size, the best there are."""
    row = _row_of(size)
    bandwidth = network.group_bytes_per_s[row, count]
    return float(network.group_latency_s[row, count] + num_bytes / bandwidth)


@lean_kernel
def _row_of(size: int) -> int:
    """Place of a power of two in `des.devices.gpus.GROUP_SIZES`."""
    row = 0
    while size >> row > 1:
        row += 1
    return row
