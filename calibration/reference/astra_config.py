"""A case in the figures that ASTRA-sim's configuration files hold; its units stop here.

A GB is 2**30 bytes in ``network.yml`` and 10**9 in ``system.json``; latencies are in nanoseconds.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from astra_sim import (
    Algorithm,
    Dimension,
    NetworkConfig,
    PairwiseDimension,
    RunOptions,
    SystemConfig,
)
from astra_sim.files.dimensions import BYTES_PER_GB, AnyDimension
from astra_sim.files.system_config import IMPLEMENTATION_KEYS
from calibration.cases.aggregation import (
    DEFAULT_AGGREGATION,
    Aggregation,
    aggregated,
    aggregated_inside,
)
from calibration.cases.case import PlacementCase
from des.world.topology import Topology, UnreachableError

Backend = Literal["unaware", "aware", "pairwise"]
"""Messages never meet; they queue for equal links; they queue for links of their own figures."""

NS_PER_S = 1e9
SYSTEM_BYTES_PER_GB = 1e9
FLOPS_PER_TFLOPS = 1e12

ENDPOINT_DELAY_NS = 10
"""ASTRA-sim's own; collectives of small groups have it whatever the file says."""

ANY_NUMBER_OF_CHUNKS = 10**6
"""All-reduces under way at a time; one by one, NPUs that start them in unlike orders would wait."""

AMPLE_MEMORY_GB_PER_S = 1e12
"""Leaves every computation bound by its operations, and sums of less than a TB without cost."""

LEAST_MEMORY_BANDWIDTH_BYTES_PER_S = 1e9
"""Least memory bandwidth at which computations are bound by their operations, see
`calibration.reference.trace_nodes`.
"""


def as_seen(
    case: PlacementCase, backend: Backend, aggregation: Aggregation = DEFAULT_AGGREGATION
) -> PlacementCase:
    """Return the case in the world that a backend can express; ask `des` about the same one.

    ``unaware`` and ``aware`` have one bandwidth and one latency between domains, see `aggregated`.
    At granularity ``gpu`` all backends have one of each inside all domains. ``unaware`` has no
    queues, so both simulators run messages that never meet (``transport.sharing``
    none), whatever the case says.

    Raises
    ------
    ValueError
        If there is no such backend or aggregation, or messages do not queue in the case but do in
        the backend.
    """
    if backend not in get_args(Backend):
        raise ValueError(f"backend: must be one of {', '.join(get_args(Backend))}; got {backend!r}")
    topology = case.topology
    if backend == "unaware":
        transport = replace(topology.transport, sharing="none")
        topology = replace(topology, transport=transport)
    else:
        require_queues(case.topology, backend)
    if backend != "pairwise":
        topology = aggregated(topology, aggregation)
    if case.granularity == "gpu":
        topology = aggregated_inside(topology, aggregation)
    return case if topology == case.topology else replace(case, topology=topology)


def require_queues(topology: Topology, backend: str) -> None:
    """Refuse a world whose messages have links to themselves for a backend where they queue."""
    sharing = topology.transport.sharing
    if sharing == "none":
        raise ValueError(
            f"backend {backend}: transport.sharing must be fifo, as messages queue for links there "
            f"(they do not in unaware); got {sharing!r}"
        )


def network_config(
    case: PlacementCase, backend: Backend, aggregation: Aggregation = DEFAULT_AGGREGATION
) -> NetworkConfig:
    """Describe the network of a case to a backend.

    Every domain is joined to every other. Messages of the pipeline go by routes, so pairs without
    a link carry only sums of gradients: as on a link of their own, in ``pairwise`` with the times
    of the route when it is empty. Where messages do not see each other (``unaware``) every pair of
    endpoints has its part of the bandwidth between two domains, as each would have all of it
    otherwise; where they queue they share it.

    Raises
    ------
    ValueError
        As `as_seen`, or if there is no link between the domains.
    """
    seen = as_seen(case, backend, aggregation)
    if not seen.topology.links:
        raise ValueError("topology: links must hold at least one link for ASTRA-sim, got none")
    between = _pairwise(seen.topology) if backend == "pairwise" else _equal(seen, backend)
    if seen.granularity == "domain":
        return NetworkConfig(dimensions=(between,))
    domain = seen.topology.domains[0]
    inside = _fully_connected(
        seen.gpus_per_domain, domain.intra_bandwidth_bytes_per_s, domain.intra_latency_s
    )
    return NetworkConfig(dimensions=(inside, between))


def _equal(seen: PlacementCase, backend: Backend) -> Dimension:
    link = seen.topology.links[0]
    num_sharing = seen.num_endpoint_pairs if backend == "unaware" else 1
    return _fully_connected(
        seen.topology.num_domains, link.bandwidth_bytes_per_s / num_sharing, link.latency_s
    )


def _fully_connected(num_npus: int, bandwidth_bytes_per_s: float, latency_s: float) -> Dimension:
    return Dimension(
        topology="FullyConnected",
        num_npus=num_npus,
        bandwidth_gb_per_s=bandwidth_bytes_per_s / BYTES_PER_GB,
        latency_ns=latency_s * NS_PER_S,
    )


def _pairwise(topology: Topology) -> PairwiseDimension:
    """Matrices of the figures of all pairs; 0 from a domain to itself."""
    figures = [
        [_pair_figures(topology, source, target) for target in range(topology.num_domains)]
        for source in range(topology.num_domains)
    ]
    return PairwiseDimension(
        bandwidth_matrix_gb_per_s=tuple(
            tuple(bandwidth / BYTES_PER_GB for bandwidth, _ in row) for row in figures
        ),
        latency_matrix_ns=tuple(
            tuple(latency_s * NS_PER_S for _, latency_s in row) for row in figures
        ),
    )


def _pair_figures(topology: Topology, source: int, target: int) -> tuple[float, float]:
    """Bandwidth and latency from one domain to another, or of a route that stores and forwards.

    Where there is none, as no plan can use it, the worst of all links.
    """
    if source == target:
        return 0.0, 0.0
    try:
        route = topology.route(source, target)
    except UnreachableError:
        worst = aggregated(topology, "min").links[0]
        return worst.bandwidth_bytes_per_s, worst.latency_s
    hops = [topology.links[hop] for hop in route]
    if len(hops) == 1:
        return hops[0].bandwidth_bytes_per_s, hops[0].latency_s
    seconds_per_byte = sum(1.0 / link.bandwidth_bytes_per_s for link in hops)
    return 1.0 / seconds_per_byte, sum(link.latency_s for link in hops)


def network_options(case: PlacementCase) -> RunOptions:
    """Flags that a case needs: several dimensions of the aware network are an extension."""
    return RunOptions(multi_dimensional=case.granularity == "gpu")


def system_config(case: PlacementCase) -> SystemConfig:
    """Describe the NPUs of a case, which are all alike: slower ones have more operations to do.

    Endpoints that never wait have communication slots without limit, an extension; those with one
    message in flight have the single slot of the original. Collectives are rings of one chunk. At
    granularity ``gpu`` their sums cost what the memory of the first GPU in use makes them cost.

    Raises
    ------
    ValueError
        If that memory is too slow for traces.
    """
    ring = (Algorithm(name="ring"),) * (1 if case.granularity == "domain" else 2)
    overlapped = case.topology.transport.endpoints == "overlapped"
    return SystemConfig(
        scheduling_policy="FIFO",
        collective_optimization="baseline",
        preferred_dataset_splits=1,
        active_chunks_per_dimension=ANY_NUMBER_OF_CHUNKS,
        endpoint_delay_ns=ENDPOINT_DELAY_NS,
        all_reduce=ring,
        all_gather=ring,
        reduce_scatter=ring,
        all_to_all=ring,
        local_mem_bw_gb_per_s=_memory_gb_per_s(case),
        peak_perf_tflops=case.peak_flops_per_s / FLOPS_PER_TFLOPS,
        roofline_enabled=True,
        communication_slots=None if overlapped else 1,
    )


def _memory_gb_per_s(case: PlacementCase) -> float:
    if case.granularity == "domain":
        return AMPLE_MEMORY_GB_PER_S
    domain = case.topology.domains[case.used_domains[0]]
    bandwidth = domain.gpu_memory_bandwidth_bytes_per_s
    if bandwidth < LEAST_MEMORY_BANDWIDTH_BYTES_PER_S:
        raise ValueError(
            f"domain {domain.name}: gpu_memory_bandwidth_bytes_per_s must be at least "
            f"{LEAST_MEMORY_BANDWIDTH_BYTES_PER_S:g} for traces of GPUs, got {bandwidth!r}"
        )
    return bandwidth / SYSTEM_BYTES_PER_GB


def network_yaml(network: NetworkConfig) -> str:
    """Write a network as ``network.yml``; reading it back gives the same floats."""
    dimensions = network.dimensions
    figures = [_figures(dimension) for dimension in dimensions]
    lines = [
        f"topology: {_flow(dimension.topology for dimension in dimensions)}",
        f"npus_count: {_flow(str(dimension.num_npus) for dimension in dimensions)}",
        f"bandwidth: {_flow(bandwidth for bandwidth, _ in figures)}  # GB/s of 2**30 bytes",
        f"latency: {_flow(latency for _, latency in figures)}  # ns",
    ]
    for dimension in dimensions:
        if isinstance(dimension, PairwiseDimension):
            lines += _rows("bandwidth_matrix", dimension.bandwidth_matrix_gb_per_s)
            lines += _rows("latency_matrix", dimension.latency_matrix_ns)
    return "\n".join(lines) + "\n"


def _figures(dimension: AnyDimension) -> tuple[str, str]:
    if isinstance(dimension, PairwiseDimension):
        return "null", "null"
    return repr(dimension.bandwidth_gb_per_s), repr(dimension.latency_ns)


def _flow(entries: Iterable[str]) -> str:
    return f"[ {', '.join(entries)} ]"


def _rows(key: str, matrix: Sequence[Sequence[float]]) -> list[str]:
    return [f"{key}:", *(f"  - {_flow(map(repr, row))}" for row in matrix)]


def system_json(system: SystemConfig) -> str:
    """Write what `system_config` made as ``system.json``; reading it back gives the same floats."""
    content: dict[str, object] = {
        "scheduling-policy": system.scheduling_policy,
        "collective-optimization": system.collective_optimization,
        "preferred-dataset-splits": system.preferred_dataset_splits,
        "active-chunks-per-dimension": system.active_chunks_per_dimension,
        "endpoint-delay": system.endpoint_delay_ns,
    }
    for field, key in IMPLEMENTATION_KEYS.items():
        content[key] = [algorithm.name for algorithm in getattr(system, field)]
    content |= {
        "local-mem-bw": system.local_mem_bw_gb_per_s,
        "peak-perf": system.peak_perf_tflops,
        "roofline-enabled": int(system.roofline_enabled),
    }
    if system.communication_slots is None:
        content["communication-slots"] = "unlimited"
    return _json(content)


def memory_json() -> str:
    """Write a ``remote_memory.json`` of no remote memory."""
    return _json({"memory-type": "NO_MEMORY_EXPANSION"})


def groups_json(groups: Mapping[int, tuple[int, ...]]) -> str:
    """Write communicator groups as ``comm_group.json``."""
    return json.dumps({str(number): members for number, members in sorted(groups.items())}) + "\n"


def logical_topology_json(case: PlacementCase) -> str:
    """Write the dimensions of a case as the ns-3 backend's logical topology: counts as texts."""
    inside = () if case.granularity == "domain" else (case.gpus_per_domain,)
    dimensions = [str(count) for count in (*inside, case.topology.num_domains)]
    return _json({"logical-dims": dimensions})


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, allow_nan=False) + "\n"
