"""Iteration time as a function of one domain's local plan, and the best local plan there is.

A pipeline of stages as slow as the slowest device of this domain takes, for ``m`` microbatches,

    T = (m - 1 + others) max(d_1, ..., d_p, w_2, ..., w_p) + d_1 + ... + d_p + 2 (h_2 + ... + h_p)
        + max(g_1, ..., g_p)

- ``d_i`` both passes of a microbatch on device ``i``: its FLOPs over its speed, and four ring
  all-reduces a layer over its slowest tensor group (`des.costs.stage_times.tensor_parallel_s`),
- ``h_i`` a message from device ``i - 1``, ``w_i`` what its wire is busy, both over the slowest pair
  of partners (`des.costs.local_borders.local_message_s`), forward and back as a gradient,
- ``g_i`` the ring all-reduce of device ``i``'s gradients over its slowest group of replicas, which
  is exposed: `des` starts it when the last backward pass ends, if a stage is one bucket,
- ``others`` stages of other domains. For equal devices on free links this is the makespan of 1F1B,
  ``(m + p - 1) d``.

What is minimised is T over the sequences of an iteration. Pairs and rings do not share wires here:
two groups whose rings pass the same link between processors both get all of it.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from agents.hi_ppo.local.alike_gpus import DeviceTimes, alike_times, pipelined_s
from agents.hi_ppo.local.case import DomainCase, LocalCase, ServersCase
from agents.hi_ppo.local.option_rows import LocalOption
from des import Domain, Nodes
from des.costs.local_borders import local_message_s
from des.costs.message_times import corrected_inside
from des.costs.node_collectives import group_all_reduce_s
from des.costs.node_groups import data_group
from des.costs.stage_times import compute_rate_flops_per_s, tensor_parallel_s
from des.job.transformer import GRADIENT_BYTES
from des.job.workload import total
from des.plan.plan import split_evenly


def seconds_per_sequence(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> float:
    """Time of an iteration over its sequences, by the formulas of `des`. [s]

    For GPUs that are known one by one the compiled code does the same; this is what it is checked
    against. Of GPUs that are alike one of each kind is looked at.

    Raises
    ------
    ValueError
        If the binding does not name a free GPU for each place, each once.
    """
    shape = option.parallelism
    if len(binding) != shape.num_gpus or not set(binding) <= set(case.free_gpus):
        raise ValueError(
            f"binding: must name {shape.num_gpus} of the free GPUs {case.free_gpus}, got {binding}"
        )
    if len(set(binding)) < len(binding):
        raise ValueError(f"binding: must name each GPU once, got {binding}")
    return pipelined_s(case, option, device_times(case, option, binding)) / case.job.num_sequences


def device_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of the devices of a domain, on the GPUs that they are bound to if these are known."""
    if isinstance(case, LocalCase):
        return _bound_times(case, option, binding)
    return alike_times(case, option)


def _bound_times(case: DomainCase, option: LocalOption, binding: tuple[int, ...]) -> DeviceTimes:
    """Times of devices whose GPUs are known one by one."""
    shape = option.parallelism
    places = np.array(binding).reshape(shape.pipeline, shape.data, shape.tensor)
    workload = case.job.workload(option.microbatch_size, option.recomputation)
    rate = compute_rate_flops_per_s(case.domain, case.corrections, shape)
    sums, first = workload.sums_before, case.first_layer
    passes_s, hops_s, gradient_s = [], [], []
    for device, num_layers in enumerate(split_evenly(case.num_layers, shape.pipeline)):
        forward_flops, backward_flops, num_parameters = (
            total(figure, first, num_layers)
            for figure in (sums.forward_flops, sums.backward_flops, sums.num_parameters)
        )
        exchange_s = max(
            tensor_parallel_s(workload, joined, shape, case.corrections)
            for joined in {joined_by(case, group) for group in places[device]}
        )
        within_s = num_layers * exchange_s
        passes_s.append((forward_flops / rate + within_s, backward_flops / rate + within_s))
        held_bytes = GRADIENT_BYTES * num_parameters / shape.tensor
        replicas = {joined_by(case, group) for group in places[device].T}
        gradient_s.append(
            max(
                group_all_reduce_s(
                    held_bytes, data_group(corrected_inside(one, case.corrections), shape, device)
                )
                for one in replicas
            )
        )
        borders = _borders(case, places[device - 1], places[device]) if device > 0 else ()
        messages = [
            local_message_s(workload, joined, shape, case.corrections, device=device - 1)
            for joined in borders
        ]
        if messages:
            on_wire_s = max(one.transfer_s for one in messages)
            whole_s = max(one.transfer_s + one.latency_s for one in messages)
            hops_s.append((on_wire_s, whole_s - on_wire_s))
        first += num_layers
    forward_s, backward_s = np.array(passes_s).T
    transfer_s, latency_s = np.array(hops_s).reshape(-1, 2).T
    return DeviceTimes(forward_s, backward_s, transfer_s, latency_s, max(gradient_s))


def _borders(case: LocalCase, before: np.ndarray, behind: np.ndarray) -> set[Domain]:
    """Return the domain with the wires of the pairs between two devices, for each kind of them."""
    if case.num_servers > 1 and is_border(case, before, behind):
        return {border_domain(case, before, behind)}
    pairs = np.column_stack((before.ravel(), behind.ravel()))
    return {joined_by(case, pair) for pair in pairs}


def is_border(case: LocalCase, before: np.ndarray, behind: np.ndarray) -> bool:
    """Whether devices in a row, which fill servers without a rest, lie on different servers."""
    per_server = case.gpus.num_gpus
    return bool(before.flat[-1] // per_server != behind.flat[0] // per_server)


def joined_by(case: DomainCase, group: np.ndarray) -> Domain:
    """Return the domain with the inner network that the best ring of some GPUs has.

    `des` reckons with one figure per domain; this is how it gets that of a binding. A GPU alone has
    the network of the domain, which it does not use; so have GPUs that are not known one by one,
    and those of several servers.
    """
    if len(group) == 1 or not isinstance(case, LocalCase | ServersCase):
        return case.domain
    gpus = case.gpus if isinstance(case, LocalCase) else case.server
    sets = sets_of(group, gpus.num_gpus)
    if len(sets) > 1 and not isinstance(case, LocalCase):
        return case.domain
    wires = gpus.wires
    rings = [
        (float(wires.ring_bandwidth_bytes_per_s[each]), -float(wires.ring_latency_s[each]))
        for each in sets.values()
        if each.bit_count() > 1
    ]
    joined = case.domain if not rings else _with_network(case.domain, *min(rings))
    return joined if len(sets) == 1 else _with_cards(joined, 2**gpus.num_gpus - 1)


def sets_of(group: np.ndarray, gpus_per_server: int) -> dict[int, int]:
    """Sets of GPUs of a group, by server, with a bit for the place of each in its server."""
    found: dict[int, int] = {}
    for gpu in group.tolist():
        number, place = divmod(gpu, gpus_per_server)
        found[number] = found.get(number, 0) | 1 << place
    return found


def card_shares(nodes: Nodes) -> np.ndarray:
    """Parts that sets of GPUs of a node get of an even share of its cards (2**n,).

    All 1 where cards are not known one by one, or not all of the node's.
    """
    server = nodes.server
    if server is None or len(server.near_nics) != nodes.nics_per_node:
        return np.ones(1 << nodes.gpus_per_node)
    return server.nic_shares


@lru_cache(maxsize=4096)
def _with_network(domain: Domain, bandwidth_bytes_per_s: float, negative_s: float) -> Domain:
    return replace(
        domain,
        intra_bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        intra_latency_s=-negative_s,
    )


def _with_cards(domain: Domain, *senders: int) -> Domain:
    """Return the domain with the cards that the worst of some sets of GPUs of a node get."""
    nodes = domain.nodes
    assert nodes is not None
    share = float(card_shares(nodes)[list(senders)].min())
    bandwidth = nodes.nic_bandwidth_bytes_per_s * share
    return replace(domain, nodes=replace(nodes, nic_bandwidth_bytes_per_s=bandwidth))


def border_domain(case: LocalCase, before: np.ndarray, behind: np.ndarray) -> Domain:
    """Return the domain with the wires of a border between devices on different servers.

    ``before`` and ``behind`` (data, tensor) are the GPUs of the two devices; cards are those of the
    worst of their servers, and the inner network that of their slowest tensor group.
    """
    joined = [joined_by(case, group) for group in (*before, *behind)]
    slowest = min(joined, key=_speed)
    devices = (before.ravel(), behind.ravel())
    sets = (sets_of(device, case.gpus.num_gpus) for device in devices)
    inner = replace(
        case.domain,
        intra_bandwidth_bytes_per_s=slowest.intra_bandwidth_bytes_per_s,
        intra_latency_s=slowest.intra_latency_s,
    )
    return _with_cards(inner, *(each for found in sets for each in found.values()))


def _speed(domain: Domain) -> tuple[float, float]:
    return domain.intra_bandwidth_bytes_per_s, -domain.intra_latency_s
