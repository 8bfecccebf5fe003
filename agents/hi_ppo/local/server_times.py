"""Times of options over several servers, in compiled code: borders, sums and whole iterations.

Servers are alike and devices fill them without a rest, in order: some whole devices a server, or
some whole servers a device. A binding names for each place the GPU within its server, so the costs
inside a server are those of `agents.hi_ppo.local.binding`. Those between servers are here, with the
arithmetic of `des.costs.local_borders` and `des.costs.node_collectives`.
"""

from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.binding import (
    BindingWork,
    device_s_of,
    exchange_s_of,
    hop_s_of,
    least_hop_s,
    least_step_s,
    step_s_of,
)
from des.base.jit import lean_kernel
from des.devices.rings import Real, Whole, Wires, bits


class WaysOut(NamedTuple):
    """Network cards of equal servers of ``gpus_per_server`` GPUs each.

    ``share`` (2**n,) is the part that the GPUs of a set, when all of them send, get of an even
    share of all cards: less than 1 where some cards serve more of them than others.
    """

    gpus_per_server: int
    num_cards: int
    card_bytes_per_s: float
    latency_s: float
    share: Real


@lean_kernel
def servers_iteration_s(work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole) -> float:
    """Time of an iteration, see `agents.hi_ppo.local.times`. [s]"""
    slowest_s = total_s = exchange_s = 0.0
    for device in range(work.pipeline):
        device_s = device_s_of(work, wires, binding, device)
        hop_s, transfer_s = border_s_of(work, wires, ways, binding, device)
        slowest_s = max(slowest_s, device_s, transfer_s)
        total_s += device_s + 2.0 * hop_s
        exchange_s = max(exchange_s, gradients_s_of(work, wires, ways, binding, device))
    return work.fill * slowest_s + total_s + exchange_s


@lean_kernel
def border_s_of(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, device: int
) -> tuple[float, float]:
    """Time of a message from the device before one, and of its slowest wire alone."""
    size = work.tensor * work.data
    if device == 0 or device * size % ways.gpus_per_server:
        return hop_s_of(work, wires, binding, device)
    senders, width = min(size, ways.gpus_per_server), min(work.tensor, ways.gpus_per_server)
    share, gather_s, ring = 1.0, 0.0, 0
    for begin in range((device - 1) * size, (device + 1) * size, senders):
        sending = 0
        for first in range(begin, begin + senders, width):
            ring = 0
            for place in range(first, first + width):
                ring |= 1 << binding[place]
            sending |= ring
            gather_s = max(gather_s, gather_s_of(work, wires, ways, ring))
        share = min(share, ways.share[sending])
    return crossing_s(work, ways, share, gather_s)


@lean_kernel
def crossing_s(
    work: BindingWork, ways: WaysOut, share: float, gather_s: float
) -> tuple[float, float]:
    """Time of a message to another server, and of its wire alone, as `border_s_of`.

    Whole, or in parts that a tensor group gathers where that is quicker.
    """
    senders = min(work.tensor * work.data, ways.gpus_per_server)
    rate = min(1.0, ways.num_cards / senders) * ways.card_bytes_per_s * share
    whole_s, part_s = work.message_bytes / rate, work.message_bytes / work.tensor / rate
    if part_s + gather_s < whole_s:
        return part_s + (ways.latency_s + gather_s), part_s
    return whole_s + ways.latency_s, whole_s


@lean_kernel
def gather_s_of(work: BindingWork, wires: Wires, ways: WaysOut, ring: int) -> float:
    """Time until a tensor group has gathered a message; of several servers each has the ring."""
    num_servers = work.tensor // ways.gpus_per_server
    if num_servers <= 1:
        return float((work.tensor - 1) * step_s_of(wires, ring, work.tensor_bytes))
    rate = out_bytes_per_s(ways, ways.gpus_per_server, 1)
    rate = min(rate, wires.ring_bandwidth_bytes_per_s[ring])
    latency_s = _hops_s(ways, work.tensor, num_servers, wires.ring_latency_s[ring])
    return ring_s(work.message_bytes, work.tensor, latency_s, rate)


@lean_kernel
def ring_s(payload_bytes: float, num_ranks: int, latency_s: float, bytes_per_s: float) -> float:
    """Time of an all-gather in a ring: `des.costs.node_collectives.group_all_gather_s`."""
    return float(latency_s + (num_ranks - 1) * payload_bytes / num_ranks / bytes_per_s)


@lean_kernel
def _hops_s(ways: WaysOut, num_ranks: int, num_servers: int, inner_s: float) -> float:
    """Latency of all hops of a ring over servers but one."""
    return float((num_ranks - num_servers) * inner_s + (num_servers - 1) * ways.latency_s)


@lean_kernel
def out_bytes_per_s(ways: WaysOut, num_ranks: int, num_groups: int) -> float:
    """Bandwidth out of a server for the ranks of a group, all of its GPUs sending."""
    cards = min(float(num_ranks), ways.num_cards / num_groups)
    return float(cards * ways.card_bytes_per_s * ways.share[-1])


@lean_kernel
def gradients_s_of(
    work: BindingWork, wires: Wires, ways: WaysOut, binding: Whole, device: int
) -> float:
    """Sum of the gradients of a device, over the slowest group of its replicas."""
    size, per_server = work.tensor * work.data, ways.gpus_per_server
    if work.data == 1 or size <= per_server:
        return exchange_s_of(work, wires, binding, device)
    if work.tensor >= per_server:
        return summed_s(work, ways, device, 0.0, np.inf)
    rate, inner_s = np.inf, 0.0
    for begin in range(device * size, (device + 1) * size, per_server):
        for rank in range(work.tensor):
            ring = 0
            for place in range(begin + rank, begin + per_server, work.tensor):
                ring |= 1 << binding[place]
            bandwidth, latency_s = (
                wires.ring_bandwidth_bytes_per_s[ring],
                wires.ring_latency_s[ring],
            )
            if bandwidth < rate or (bandwidth == rate and latency_s > inner_s):
                rate, inner_s = bandwidth, latency_s
    return summed_s(work, ways, device, inner_s, rate)


@lean_kernel
def summed_s(
    work: BindingWork, ways: WaysOut, device: int, inner_s: float, inner_bytes_per_s: float
) -> float:
    """Sum of the gradients of a device of several servers, of ring and tree the quicker.

    As `des.costs.node_collectives.group_all_reduce_s`, with the slowest rings inside servers.
    """
    per_server = ways.gpus_per_server
    ranks = max(1, per_server // work.tensor)
    num_servers = work.data // ranks
    rate = out_bytes_per_s(ways, ranks, min(work.tensor, per_server))
    if ranks > 1:
        rate = min(rate, inner_bytes_per_s)
    payload_bytes = work.data_bytes[device] * work.data
    hops_s = _hops_s(ways, work.data, num_servers, inner_s)
    in_ring_s = 2.0 * ring_s(payload_bytes, work.data, hops_s, rate)
    depth = 0
    while num_servers > 1 << depth:
        depth += 1
    latency_s = (ranks - 1) * inner_s + depth * ways.latency_s
    return float(min(in_ring_s, 2.0 * (latency_s + payload_bytes / rate)))


@lean_kernel
def least_servers_s(work: BindingWork, wires: Wires, ways: WaysOut, gpus: Whole) -> float:
    """Lower bound on the time of any binding: every group, pair and card is the best. [s]

    ``gpus`` are the numbers of the GPUs in a server.
    """
    size, per_server = work.tensor * work.data, ways.gpus_per_server
    everywhere = (1 << per_server) - 1
    step_s = least_step_s(wires, everywhere, min(work.tensor, per_server), work.tensor_bytes)
    gather_s = (work.tensor - 1) * step_s
    if work.tensor > per_server:
        gather_s = gather_s_of(work, wires, ways, everywhere)
    inside_s, inside_wire_s = least_hop_s(work, wires, gpus) if size < per_server else (0.0, 0.0)
    outside_s, outside_wire_s = crossing_s(work, ways, 1.0, gather_s)
    slowest_s = total_s = 0.0
    most = 0
    for device in range(work.pipeline):
        device_s = work.compute_s[device] + work.tensor_steps[device] * step_s
        slowest_s, total_s = max(slowest_s, device_s), total_s + device_s
        if work.data_bytes[device] > work.data_bytes[most]:
            most = device
        if device > 0 and device * size % per_server:
            slowest_s, total_s = max(slowest_s, inside_wire_s), total_s + 2.0 * inside_s
        elif device > 0:
            slowest_s, total_s = max(slowest_s, outside_wire_s), total_s + 2.0 * outside_s
    exchange_s = _least_gradients_s(work, wires, ways, most)
    return work.fill * slowest_s + total_s + exchange_s


@lean_kernel
def _least_gradients_s(work: BindingWork, wires: Wires, ways: WaysOut, device: int) -> float:
    """Sum of the gradients of a device with the best rings of the servers."""
    per_server = ways.gpus_per_server
    everywhere = (1 << per_server) - 1
    if work.data == 1 or work.tensor * work.data <= per_server:
        step_s = least_step_s(wires, everywhere, work.data, work.data_bytes[device])
        return work.data_steps * step_s
    ranks = max(1, per_server // work.tensor)
    rate, inner_s = np.inf, 0.0
    if ranks > 1:
        rate, inner_s = 0.0, np.inf
        for ring in range(1, everywhere + 1):
            if bits(ring) == ranks:
                rate = max(rate, wires.ring_bandwidth_bytes_per_s[ring])
                inner_s = min(inner_s, wires.ring_latency_s[ring])
    return summed_s(work, ways, device, inner_s, rate)
