"""Times of bindings of places to GPUs of equal servers, in compiled code.

A binding names a GPU for every place: devices in a row, each with its replicas, each with its
tensor group, so place ``(device * data + replica) * tensor + rank``. Devices fill servers without a
rest, in order: some whole devices a server, or some whole servers a device; a binding names the GPU
within its server. A pipeline of ``m`` microbatches, with ``others`` stages as slow as its slowest
device elsewhere, takes

    T = (m - 1 + others) max(d_1, ..., d_p, w_2, ..., w_p) + d_1 + ... + d_p + 2 (h_2 + ... + h_p)
        + max(g_1, ..., g_p)

- ``d_i`` both passes of a microbatch on device ``i``: its FLOPs over its speed, and four ring
  all-reduces a layer over its slowest tensor group (`des.costs.stage_times.tensor_parallel_s`),
- ``h_i`` a message from device ``i - 1``, ``w_i`` what its wire is busy, both over the slowest pair
  of partners (`des.costs.local_borders.local_message_s`), forward and back as a gradient,
- ``g_i`` the ring all-reduce of device ``i``'s gradients over its slowest group of replicas, which
  is exposed: `des` starts it when the last backward pass ends, if a stage is one bucket.

For equal devices on free links this is the makespan of 1F1B, ``(m + p - 1) d``. Pairs and rings do
not share wires here: two groups whose rings pass the same link between processors both get all of
it.
"""

from typing import NamedTuple

import numpy as np

from des.base.jit import inner_kernel, kernel, lean_kernel
from des.base.node_arithmetic import (
    cards_bytes_per_s,
    message_to_node_s,
    ring_over_nodes_s,
    tree_over_nodes_s,
)
from des.devices.rings import Real, Whole, Wires


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


class BindingWorks(NamedTuple):
    """All options of a case, one per row: numbers of `BindingWork` are (N,), its arrays (N, D)."""

    tensor: Whole
    data: Whole
    pipeline: Whole
    compute_s: Real
    tensor_steps: Real
    data_bytes: Real
    message_bytes: Real
    fill: Whole


class ServerGpus(NamedTuple):
    """GPUs of each of some equal servers, their wires, and the network cards of a server.

    ``free`` are the numbers of the GPUs that may be used, of several servers all. ``card_shares``
    (2**n,) is the part that the GPUs of a set, when all of them send, get of an even share of all
    cards: less than 1 where some cards serve more of them than others.
    """

    free: Whole
    wires: Wires
    per_server: int
    num_cards: int
    card_bytes_per_s: float
    card_latency_s: float
    card_shares: Real


@kernel
def work_at(works: BindingWorks, row: int) -> BindingWork:
    """One of the options."""
    tensor, data, message_bytes = works.tensor[row], works.data[row], works.message_bytes[row]
    return BindingWork(
        tensor,
        data,
        works.pipeline[row],
        works.compute_s[row],
        works.tensor_steps[row],
        message_bytes / tensor,
        2 * (data - 1),
        works.data_bytes[row],
        message_bytes,
        works.fill[row],
    )


@lean_kernel
def iteration_s(work: BindingWork, gpus: ServerGpus, binding: Whole) -> float:
    """Time of an iteration. [s]"""
    slowest_s = total_s = exchange_s = 0.0
    for device in range(work.pipeline):
        device_s, hop_s, wire_s, sum_s = device_times_s(work, gpus, binding, device)
        slowest_s = max(slowest_s, device_s, wire_s)
        total_s += device_s + 2.0 * hop_s
        exchange_s = max(exchange_s, sum_s)
    return work.fill * slowest_s + total_s + exchange_s


@kernel
def device_table(work: BindingWork, gpus: ServerGpus, binding: Whole) -> Real:
    """Return the `device_times_s` of all devices (p, 4)."""
    found = np.empty((work.pipeline, 4))
    for device in range(work.pipeline):
        found[device] = device_times_s(work, gpus, binding, device)
    return found


@inner_kernel
def device_times_s(
    work: BindingWork, gpus: ServerGpus, binding: Whole, device: int
) -> tuple[float, float, float, float]:
    """Times of a device: passes, a message from the device before, its wire, gradients. [s]"""
    message_s, wire_s = _border_s(work, gpus, binding, device)
    gradients_s = _gradients_s(work, gpus, binding, device)
    return _passes_s(work, gpus.wires, binding, device), message_s, wire_s, gradients_s


@inner_kernel
def _set_of(binding: Whole, begin: int, end: int, stride: int) -> int:
    """GPUs of places that lie ``stride`` apart, as a set of bits."""
    found = 0
    for place in range(begin, end, stride):
        found |= 1 << binding[place]
    return found


@inner_kernel
def step_s_of(wires: Wires, ring: int, num_bytes: float) -> float:
    """One step of the best ring of a set of GPUs."""
    bandwidth = wires.ring_bandwidth_bytes_per_s[ring]
    return float(wires.ring_latency_s[ring] + num_bytes / bandwidth)


@inner_kernel
def _passes_s(work: BindingWork, wires: Wires, binding: Whole, device: int) -> float:
    """Both passes of a microbatch on a device, with the rings of its slowest tensor group."""
    step_s, size = 0.0, work.tensor * work.data
    if work.tensor > 1:
        for begin in range(device * size, (device + 1) * size, work.tensor):
            ring = _set_of(binding, begin, begin + work.tensor, 1)
            step_s = max(step_s, step_s_of(wires, ring, work.tensor_bytes))
    return float(work.compute_s[device] + work.tensor_steps[device] * step_s)


@inner_kernel
def _border_s(
    work: BindingWork, gpus: ServerGpus, binding: Whole, device: int
) -> tuple[float, float]:
    """Time of a message from the device before one, and of its slowest wire alone."""
    size, message_s, transfer_s = work.tensor * work.data, 0.0, 0.0
    if device == 0:
        return message_s, transfer_s
    if device * size % gpus.per_server:
        for place in range(device * size, (device + 1) * size):
            here, before = binding[place], binding[place - size]
            wire_s = work.message_bytes / gpus.wires.bandwidth_bytes_per_s[here, before]
            message_s = max(message_s, wire_s + gpus.wires.latency_s[here, before])
            transfer_s = max(transfer_s, wire_s)
        return message_s, transfer_s
    senders, width = min(size, gpus.per_server), min(work.tensor, gpus.per_server)
    share, gather_s = 1.0, 0.0
    for begin in range((device - 1) * size, (device + 1) * size, senders):
        sending = _set_of(binding, begin, begin + senders, 1)
        share = min(share, gpus.card_shares[sending])
        for first in range(begin, begin + senders, width):
            ring = _set_of(binding, first, first + width, 1)
            gather_s = max(gather_s, gather_s_of(work, gpus, ring))
    return crossing_s(work, gpus, share, gather_s)


@inner_kernel
def crossing_s(
    work: BindingWork, gpus: ServerGpus, share: float, gather_s: float
) -> tuple[float, float]:
    """Time of a message to another server, and of its wire alone, at a share of its cards."""
    senders = min(work.tensor * work.data, gpus.per_server)
    rate = cards_bytes_per_s(gpus.num_cards, gpus.card_bytes_per_s, 1, senders) * share
    wire_s, flight_s = message_to_node_s(
        work.message_bytes, work.tensor, rate, gpus.card_latency_s, gather_s
    )
    return wire_s + flight_s, wire_s


@inner_kernel
def gather_s_of(work: BindingWork, gpus: ServerGpus, ring: int) -> float:
    """Time until a tensor group has gathered a message; of several servers each has the ring."""
    num_servers = work.tensor // gpus.per_server
    if num_servers <= 1:
        return float((work.tensor - 1) * step_s_of(gpus.wires, ring, work.tensor_bytes))
    rate = min(_out_bytes_per_s(gpus, gpus.per_server, 1), _bandwidth(gpus, ring))
    latencies_s = gpus.wires.ring_latency_s[ring], gpus.card_latency_s
    return ring_over_nodes_s(work.message_bytes, work.tensor, num_servers, latencies_s, rate)


@inner_kernel
def _bandwidth(gpus: ServerGpus, ring: int) -> float:
    return float(gpus.wires.ring_bandwidth_bytes_per_s[ring])


@inner_kernel
def _out_bytes_per_s(gpus: ServerGpus, num_ranks: int, num_groups: int) -> float:
    """Bandwidth out of a server for the ranks of a group, all of its GPUs sending."""
    rate = cards_bytes_per_s(gpus.num_cards, gpus.card_bytes_per_s, num_ranks, num_groups)
    return float(rate * gpus.card_shares[-1])


@inner_kernel
def _gradients_s(work: BindingWork, gpus: ServerGpus, binding: Whole, device: int) -> float:
    """Sum of the gradients of a device, over the slowest group of its replicas."""
    size, per_server = work.tensor * work.data, gpus.per_server
    if work.data == 1 or size <= per_server:
        step_s, begin = 0.0, device * size
        for rank in range(work.tensor if work.data > 1 else 0):
            ring = _set_of(binding, begin + rank, begin + size, work.tensor)
            step_s = max(step_s, step_s_of(gpus.wires, ring, work.data_bytes[device]))
        return work.data_steps * step_s
    rate, inner_s = np.inf, 0.0
    for begin in range(device * size, (device + 1) * size, per_server):
        for rank in range(work.tensor if work.tensor < per_server else 0):
            ring = _set_of(binding, begin + rank, begin + per_server, work.tensor)
            bandwidth, latency_s = _bandwidth(gpus, ring), gpus.wires.ring_latency_s[ring]
            if bandwidth < rate or (bandwidth == rate and latency_s > inner_s):
                rate, inner_s = bandwidth, latency_s
    return summed_s(work, gpus, device, inner_s, rate)


@inner_kernel
def summed_s(
    work: BindingWork, gpus: ServerGpus, device: int, inner_s: float, inner_bytes_per_s: float
) -> float:
    """Sum of the gradients of a device of several servers, of ring and tree the quicker.

    As `des.costs.node_collectives.group_all_reduce_s`, with the slowest rings inside servers.
    """
    ranks = max(1, gpus.per_server // work.tensor)
    num_servers, payload_bytes = work.data // ranks, work.data_bytes[device] * work.data
    pace = _out_bytes_per_s(gpus, ranks, min(work.tensor, gpus.per_server))
    if ranks > 1:
        pace = min(pace, inner_bytes_per_s)
    latencies_s = inner_s, gpus.card_latency_s
    ring_s = ring_over_nodes_s(payload_bytes, work.data, num_servers, latencies_s, pace)
    tree_s = tree_over_nodes_s(payload_bytes, ranks, num_servers, latencies_s, pace)
    return float(min(2.0 * ring_s, tree_s))
