"""Figures of the layers, copies and wires of a site, and of the ways between sites."""

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from des import Corrections, Parallelism, Topology, UnreachableError, Workload
from des.costs.copy_waits import copy_waits_s
from des.costs.local_borders import local_message_s
from des.costs.memory import bytes_per_parameter
from des.costs.message_times import correct_inside, direct_links
from des.costs.node_collectives import group_ring_all_reduce_s, group_tree_all_reduce_s
from des.costs.node_groups import data_group, expert_data_group
from des.costs.outer_state import OUTER_STATE_BYTES
from des.costs.stage_times import compute_rate_flops_per_s, device_work
from des.costs.update_times import update_figures
from des.job.layer_sizes import expert_parameters
from des.plan.parallelism import UNSHARED
from des.plan.placement import Stage
from des.world.domain import Domain


def passes_before_s(
    workload: Workload, domain: Domain, parallelism: Parallelism | None, corrections: Corrections
) -> np.ndarray:
    """Times of F, B, D and W of a device, summed up before each layer, (4, L + 1). [s]

    Raises
    ------
    ValueError
        If the layers have no times for the workload, such as a profile without a point.
    """
    rate = compute_rate_flops_per_s(domain, corrections, parallelism)
    work, layer_s = device_work(workload, domain, parallelism, corrections)
    passes_s = np.array(work) / rate
    passes_s[:3] += np.arange(workload.num_layers + 1) * layer_s
    if parallelism is not None and (parallelism.context > 1 or parallelism.expert > 1):
        passes_s += _waits_of_layers(workload, domain, parallelism, corrections, rate)
    return passes_s


def _waits_of_layers(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    corrections: Corrections,
    rate_flops_per_s: float,
) -> np.ndarray:
    """Sums before each layer of what its passes wait for copies that share tokens or experts."""
    assert workload.shape is not None
    shape = workload.shape
    known: dict[bool, list[float]] = {}
    is_whole = workload.num_layers == shape.architecture.num_layers
    found = np.zeros((4, workload.num_layers + 1))
    for layer in range(workload.num_layers):
        kind = is_whole and shape.architecture.is_sparse(layer)  # layers of a kind are alike
        if kind in known:
            found[:, layer + 1] = known[kind]
            continue
        stage = Stage(index=0, domain=0, first_layer=layer, num_layers=1)
        waits_s = copy_waits_s(
            shape,
            domain,
            parallelism,
            stage,
            corrections=corrections,
            rate_flops_per_s=rate_flops_per_s,
            precision=workload.precision,
        )
        known[kind] = [waits_s[each] for each in ("F", "B", "D", "W")]
        found[:, layer + 1] = known[kind]
    return np.cumsum(found, axis=1)


def parameters_before(workload: Workload, parallelism: Parallelism) -> np.ndarray:
    """Parameters before each layer: those that every copy has, and those of shared experts."""
    everything = np.array(workload.sums_before.num_parameters)
    experts = np.zeros_like(everything)
    if parallelism.expert > 1:
        assert workload.shape is not None
        experts[1:] = np.cumsum(expert_parameters(workload.shape))
    return np.array([everything - experts, experts], float)


def outer_state_before_bytes(parameters: np.ndarray, parallelism: Parallelism) -> np.ndarray:
    """State of an outer optimiser before each layer, of a device, (L + 1,). [bytes]"""
    common, experts = parameters
    is_sharded = parallelism.shards("optimiser")
    copies = 1 if is_sharded else parallelism.copies
    expert_copies = 1 if is_sharded else parallelism.expert_copies
    found: np.ndarray = OUTER_STATE_BYTES * (copies * common + expert_copies * experts)
    return found


def state_before_bytes(
    parameters: np.ndarray, parallelism: Parallelism, gradient_bytes: int, num_replicas: int
) -> np.ndarray:
    """Model state of a device before each layer, (L + 1,), of `parameters_before`. [bytes]"""
    shards = num_replicas if parallelism.shards("optimiser") else 1
    found = np.zeros(parameters.shape[1])
    for held, of_experts in zip(parameters, (False, True), strict=True):
        each = bytes_per_parameter(parallelism, gradient_bytes, of_experts=of_experts)
        found += held * (each.weight + each.gradient + each.optimiser / shards)
    return found


def sums_and_updates_s(
    gradient_bytes: int,
    domain: Domain,
    division: Parallelism | None,
    corrections: Corrections,
    num_replicas: int,
    *,
    num_devices: int,
) -> np.ndarray:
    """Times of sums over the copies of devices and of updates, (devices, 11). [s]

    See `SiteFigures`; devices differ where the racks of a site have figures of their own.
    """
    num_kinds = num_devices if domain.has_priced_racks else 1
    settings = gradient_bytes, domain, division, corrections, num_replicas
    rows = [_sums_and_update_s(*settings, device=device) for device in range(num_kinds)]
    return np.repeat(rows, num_devices // num_kinds, axis=0)


def _sums_and_update_s(
    gradient_bytes: int,
    domain: Domain,
    division: Parallelism | None,
    corrections: Corrections,
    num_replicas: int,
    *,
    device: int,
) -> np.ndarray:
    inside, parallelism = correct_inside(domain, corrections), division or UNSHARED
    sums_s = np.zeros((2, 2, 2))
    sums_s[:, 1, 0] = np.inf
    groups = [(data_group(inside, parallelism, device), parallelism.tensor)]
    if parallelism.expert > 1:
        groups.append((expert_data_group(inside, parallelism, device), parallelism.expert_parts))
    else:
        sums_s[1, 1] = 0.0
    for place, (group, num_parts) in enumerate(groups):
        each_bytes = gradient_bytes / num_parts
        sums_s[place, 0] = _line(partial(group_ring_all_reduce_s, group=group))
        if group.num_nodes > 1 and num_replicas == 1 and not parallelism.shards("optimiser"):
            sums_s[place, 1] = _line(partial(group_tree_all_reduce_s, group=group))
        sums_s[place, :, 1] *= each_bytes
    each_s, floor_s = update_figures(gradient_bytes, domain, division, corrections)
    is_sharded = parallelism.shards("optimiser")
    each_s /= num_replicas if is_sharded else 1
    of_expert_s = each_s if is_sharded else each_s / (parallelism.expert_parts / parallelism.tensor)
    return np.array([*sums_s.ravel(), floor_s, each_s, of_expert_s])


def _line(time_s: Callable[[float], float]) -> tuple[float, float]:
    """Time for no bytes, and for each byte more, of what is linear in them. [s]"""
    start_s, some_bytes = time_s(0.0), 1e12
    return start_s, (time_s(some_bytes) - start_s) / some_bytes


def wires_s(
    workload: Workload, domain: Domain, parallelism: Parallelism, corrections: Corrections
) -> np.ndarray:
    """Transfer and latency from each device of a site to the next one, and to the first. [s]

    Shaped (2, devices, 2). Servers hold whole devices, or devices whole servers, so the way depends
    on the place in a server; from the first device to others it is one within it, and one beyond.
    Between racks with figures of their own all ways may differ.
    """
    found = np.zeros((2, parallelism.pipeline, 2))
    known: dict[tuple[int, int], tuple[float, float]] = {}
    per_server = 1 if domain.nodes is None else domain.nodes.gpus_per_node
    period = max(1, per_server // parallelism.gpus_per_device)
    if domain.has_priced_racks:
        period = parallelism.pipeline
    for device in range(parallelism.pipeline):
        for row, first, distance in ((0, device, 1), (1, 0, device)):
            if distance == 0 or first + distance >= parallelism.pipeline:
                continue
            place = first % period, min(distance, period)
            if place not in known:
                border = local_message_s(
                    workload, domain, parallelism, corrections, device=place[0], distance=place[1]
                )
                known[place] = border.transfer_s, border.latency_s
            found[row, device] = known[place]
    return found


def message_ways(
    hops: tuple[np.ndarray, np.ndarray], num_bytes: float, each_s: float
) -> np.ndarray:
    """Transfer and latency of a message between all sites, infinite where no path leads. [s]

    Of several hops the slowest is the transfer, and all else is latency; ``each_s`` is added to
    every hop of `hops_between`.
    """
    rates, latencies_s = hops
    with np.errstate(divide="ignore"):
        hops_s = num_bytes / rates + np.where(rates < np.inf, each_s, 0.0)
    return np.stack([hops_s[..., 0], latencies_s + hops_s[..., 1:].sum(axis=-1)], axis=-1)


def hops_between(topology: Topology, corrections: Corrections) -> tuple[np.ndarray, np.ndarray]:
    """Rates of the hops of all ways, slowest first and infinite where there are no more; latency.

    A rate of 0 stands for no way. [bytes/s, s]
    """
    direct, latencies_s = direct_links(topology, corrections)
    way_s, size, ends = latencies_s.copy(), topology.num_domains, list(topology.link_index)
    found: dict[tuple[int, int], list[float]] = {}
    for source, target in product(range(size), repeat=2):
        if source == target or (source, target) in topology.link_index:
            continue
        try:
            route = topology.route(source, target)
        except UnreachableError:
            found[source, target] = [0.0]
            continue
        hops = [ends[hop] for hop in route]
        found[source, target] = sorted(float(direct[hop]) for hop in hops)
        way_s[source, target] = sum(float(latencies_s[hop]) for hop in hops)
    rates = np.full((size, size, max(map(len, found.values()), default=1) + 1), np.inf)
    is_link = ~np.eye(size, dtype=np.bool_)
    for pair, own in found.items():
        is_link[pair] = False
        rates[pair][: len(own)] = own
    rates[is_link, 0] = direct[is_link]
    return rates, way_s
