"""Figures of all sites under a setting, as the compiled loops of the search read them."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product

import numpy as np

from agents.search.kernels.records import SiteFigures
from agents.search.settings import BoundSetting, num_stages_of
from des import Corrections, Parallelism, Topology, UnreachableError, Workload
from des.costs.copy_waits import copy_waits_s
from des.costs.local_borders import local_message_s
from des.costs.memory import bytes_per_parameter
from des.costs.message_times import corrected, corrected_inside, hop_goodput_bytes_per_s
from des.costs.node_collectives import group_ring_all_reduce_s, group_tree_all_reduce_s
from des.costs.node_groups import data_group, expert_data_group
from des.costs.outer_state import OUTER_STATE_BYTES
from des.costs.stage_times import compute_rate_flops_per_s, device_work
from des.costs.update_times import update_figures
from des.job.layer_sizes import expert_parameters
from des.plan.placement import Stage
from des.world.domain import Domain


def site_figures(
    topology: Topology, workload: Workload, setting: BoundSetting, corrections: Corrections
) -> SiteFigures:
    """Return the figures of every site of a world for stages of a setting.

    Raises
    ------
    ValueError
        If the layers of a domain have no times for the workload, such as a profile without a point.
    """
    degrees = setting.degrees
    num_devices = [num_stages_of(domain, degrees) for domain in topology.domains]
    most = max(1, *num_devices)
    size, num_layers = topology.num_domains, workload.num_layers
    layers, wires_s = np.zeros((size, 7, num_layers + 1)), np.zeros((size, 2, most, 2))
    room_bytes, ends_s = np.ones(size), np.zeros((size, 11))
    for site, domain in enumerate(topology.domains):
        if num_devices[site] == 0:
            continue
        bare = replace(domain, name="site", gpu_price_usd_per_hour=None)
        shared = degrees.parallelism(num_devices[site])
        layers[site] = _of_layers(workload, bare, shared, corrections, setting.num_replicas)
        if setting.has_outer_state:
            layers[site, 4] += _outer_state(workload, shared)
        ends_s[site] = _of_ends(workload, bare, shared, corrections, setting.num_replicas)
        wires_s[site, :, : num_devices[site]] = _inside(workload, bare, shared, corrections)
        room_bytes[site] = domain.gpu_memory_bytes * degrees.num_gpus
    return SiteFigures(
        passes_s=np.ascontiguousarray(layers[:, :4]),
        state_bytes=np.ascontiguousarray(layers[:, 4]),
        kept_bytes=np.ascontiguousarray(layers[:, 5]),
        halved_bytes=np.ascontiguousarray(layers[:, 6]),
        room_bytes=room_bytes,
        parameters=_parameters(workload, degrees.parallelism(1)),
        sums_s=ends_s[:, :8].reshape(size, 2, 2, 2).copy(),
        update_s=np.ascontiguousarray(ends_s[:, 8:]),
        num_devices=np.array(num_devices, np.int64),
        inner_s=np.ascontiguousarray(wires_s[:, 0]),
        back_s=np.ascontiguousarray(wires_s[:, 1]),
        outer_s=message_ways(topology, corrections, workload.message_bytes),
    )


@lru_cache(maxsize=4096)
def _of_layers(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    corrections: Corrections,
    num_replicas: int,
) -> np.ndarray:
    """Sums over layers of times and bytes, see `SiteFigures`."""
    counts = np.arange(workload.num_layers + 1)
    rate = compute_rate_flops_per_s(domain, corrections, parallelism)
    work, layer_s = device_work(workload, domain, parallelism, corrections)
    passes_s = [np.array(each) / rate for each in work]
    for kind in (0, 1, 2):
        passes_s[kind] = passes_s[kind] + counts * layer_s
    if parallelism.context > 1 or parallelism.expert > 1:
        waits_s = _waits_of_layers(workload, domain, parallelism, corrections, rate)
        passes_s = [one + more for one, more in zip(passes_s, waits_s, strict=True)]
    sums = workload.sums_before
    common, experts = _parameters(workload, parallelism)
    shards = num_replicas if parallelism.shards("optimiser") else 1
    state = sum(
        np.array(held) * _state_bytes(workload, parallelism, shards, of_experts=of_experts)
        for held, of_experts in ((common, False), (experts, True))
    )
    rows = [*passes_s, state, sums.activation_bytes, sums.weight_input_bytes]
    return np.array([np.asarray(row, float) for row in rows])


def _waits_of_layers(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    corrections: Corrections,
    rate_flops_per_s: float,
) -> list[np.ndarray]:
    """Sums before each layer of what its passes wait for copies that share tokens or experts."""
    assert workload.shape is not None
    found = np.zeros((4, workload.num_layers + 1))
    for layer in range(workload.num_layers):
        stage = Stage(index=0, domain=0, first_layer=layer, num_layers=1)
        waits_s = copy_waits_s(
            workload.shape,
            domain,
            parallelism,
            stage,
            corrections=corrections,
            rate_flops_per_s=rate_flops_per_s,
        )
        found[:, layer + 1] = [waits_s[kind] for kind in ("F", "B", "D", "W")]
    return list(np.cumsum(found, axis=1))


def _parameters(workload: Workload, parallelism: Parallelism) -> np.ndarray:
    """Parameters before each layer: those that every copy has, and those of shared experts."""
    everything = np.array(workload.sums_before.num_parameters)
    experts = np.zeros_like(everything)
    if parallelism.expert > 1:
        assert workload.shape is not None
        experts[1:] = np.cumsum(expert_parameters(workload.shape))
    return np.array([everything - experts, experts])


def _outer_state(workload: Workload, parallelism: Parallelism) -> np.ndarray:
    """State of an outer optimiser before each layer, of a device. [bytes]"""
    common, experts = _parameters(workload, parallelism)
    copies = 1 if parallelism.shards("optimiser") else parallelism.copies
    expert_copies = 1 if copies == 1 else copies // parallelism.expert
    found: np.ndarray = OUTER_STATE_BYTES * (copies * common + expert_copies * experts)
    return found


def _state_bytes(
    workload: Workload, parallelism: Parallelism, num_shards: int, *, of_experts: bool
) -> float:
    one = bytes_per_parameter(parallelism, workload.gradient_bytes, of_experts=of_experts)
    return one.weight + one.gradient + one.optimiser / num_shards


@lru_cache(maxsize=4096)
def _of_ends(
    workload: Workload,
    domain: Domain,
    parallelism: Parallelism,
    corrections: Corrections,
    num_replicas: int,
) -> np.ndarray:
    """Times of sums over the copies of a device and of its update, see `SiteFigures`, in a row."""
    inside = corrected_inside(domain, corrections)
    sums_s = np.zeros((2, 2, 2))
    sums_s[:, 1, 0] = np.inf
    groups = [(data_group(inside, parallelism, 0), parallelism.tensor)]
    if parallelism.expert > 1:
        degree = parallelism.tensor * parallelism.expert
        groups.append((expert_data_group(inside, parallelism, 0), degree))
    else:
        sums_s[1, 1] = 0.0
    for place, (group, num_parts) in enumerate(groups):
        each_bytes = workload.gradient_bytes / num_parts
        sums_s[place, 0] = _line(partial(group_ring_all_reduce_s, group=group))
        if group.num_nodes > 1 and num_replicas == 1 and not parallelism.shards("optimiser"):
            sums_s[place, 1] = _line(partial(group_tree_all_reduce_s, group=group))
        sums_s[place, :, 1] *= each_bytes
    each_s, floor_s = update_figures(workload.gradient_bytes, domain, parallelism, corrections)
    is_sharded = parallelism.shards("optimiser")
    each_s /= num_replicas if is_sharded else 1
    of_expert_s = each_s if is_sharded else each_s / parallelism.expert
    return np.array([*sums_s.ravel(), floor_s, each_s, of_expert_s])


def _line(time_s: Callable[[float], float]) -> tuple[float, float]:
    """Time for no bytes, and for each byte more, of what is linear in them. [s]"""
    start_s, some_bytes = time_s(0.0), 1e12
    return start_s, (time_s(some_bytes) - start_s) / some_bytes


@lru_cache(maxsize=4096)
def _inside(
    workload: Workload, domain: Domain, parallelism: Parallelism, corrections: Corrections
) -> np.ndarray:
    """Transfer and latency from each device of a site to the next one, and to the first. [s]"""
    found = np.zeros((2, parallelism.pipeline, 2))
    for device in range(parallelism.pipeline):
        for row, first, distance in ((0, device, 1), (1, 0, device)):
            if distance == 0 or first + distance >= parallelism.pipeline:
                continue
            border = local_message_s(
                workload, domain, parallelism, corrections, device=first, distance=distance
            )
            found[row, device] = border.transfer_s, border.latency_s
    return found


def message_ways(topology: Topology, corrections: Corrections, num_bytes: float) -> np.ndarray:
    """Transfer and latency of a message between all sites, infinite where no path leads. [s]

    Of several hops the slowest is the transfer, and all else is latency.
    """
    rates, latencies_s = _hops(topology, corrections)
    with np.errstate(divide="ignore"):
        each_s = num_bytes / rates + np.where(rates < np.inf, corrections.message_overhead_s, 0.0)
    return np.stack([each_s[..., 0], latencies_s + each_s[..., 1:].sum(axis=-1)], axis=-1)


@lru_cache(maxsize=16)
def _hops(topology: Topology, corrections: Corrections) -> tuple[np.ndarray, np.ndarray]:
    """Rates of the hops of all ways, slowest first and infinite where there are no more; latency.

    A rate of 0 stands for no way. [bytes/s, s]
    """
    size = topology.num_domains
    found: dict[tuple[int, int], list[float]] = {}
    latencies_s = np.zeros((size, size))
    for source, target in product(range(size), repeat=2):
        if source == target:
            continue
        try:
            route = topology.route(source, target)
        except UnreachableError:
            found[source, target] = [0.0]
            continue
        found[source, target] = sorted(
            hop_goodput_bytes_per_s(topology, hop, corrections) for hop in route
        )
        latencies_s[source, target] = sum(
            corrected(topology.links[hop], corrections).latency_s for hop in route
        )
    rates = np.full((size, size, max(map(len, found.values()), default=1) + 1), np.inf)
    for ends, own in found.items():
        rates[ends][: len(own)] = own
    return rates, latencies_s
