"""Predicted times of a job on chosen GPUs: an all-reduce, and an iteration by the simulator."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

from agents.devices.goodness import places_of
from agents.devices.ring_times import figures_of_models, places_ring
from agents.devices.server_choice import ServerShare
from des import (
    Domain,
    IterationResult,
    Nodes,
    Parallelism,
    Placement,
    Plan,
    Topology,
    build_workload,
    simulate,
)
from des.costs.device_collectives import all_reduce_time
from des.costs.device_groups import CARD_FRACTION, CARD_STEP_S, DeviceGroup
from des.costs.node_collectives import RankGroup, group_all_reduce_s
from des.devices.cluster import Cluster
from des.devices.gpu_kinds import gpu_kind_named
from des.devices.link_figures import DeviceFigures, NetworkConstants
from des.devices.node_rings import hops_at_once, ring_hops


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAssumptions:
    """Figures that the servers do not give.

    Attributes
    ----------
    model
        Model to train, see `des.build_workload`.
    gpu
        Row of `des.devices.gpu_kinds`; None takes the model that the servers' GPUs have.
    num_microbatches, sequence_length
        Microbatches of an iteration, each a sequence of this length a replica.
    parallelism
        Division of the layers; None is tensor parallelism over the GPUs of a server, replicas over
        the servers.
    attainable_fraction
        Share of the peak that layers reach.
    cards_per_server, card_bandwidth_bytes_per_s
        Network cards of a server in use, and the line rate of each, of which `CARD_FRACTION` is
        reached; None takes those nearest to its GPUs. [1, bytes/s]
    card_step_s
        Latency of a step from GPU to GPU of another server. [s]
    """

    model: str = "llama2_7b"
    gpu: str | None = None
    num_microbatches: int = 32
    sequence_length: int = 4096
    parallelism: Parallelism | None = None
    attainable_fraction: float = 0.5
    cards_per_server: int | None = None
    card_bandwidth_bytes_per_s: float | None = None
    card_step_s: float = CARD_STEP_S


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedWires:
    """Wires of a job: the slowest ring inside a server, and the network cards in use."""

    num_servers: int
    gpus_per_server: int
    inner_bandwidth_bytes_per_s: float
    inner_latency_s: float
    nodes: Nodes | None


def job_all_reduce_s(
    shares: Sequence[ServerShare], wires: PlacedWires, payload_bytes: float
) -> float:
    """Time of an all-reduce over all GPUs of a job, as `agents.devices.ring_times` has it. [s]"""
    if wires.num_servers * wires.gpus_per_server == 1:
        return 0.0
    figures = [figures_of_models(share.free.server) for share in shares]
    if None in figures:
        return group_all_reduce_s(payload_bytes, _rank_group(wires))
    group = DeviceGroup(
        parts=tuple((share.free.server, _places(share)) for share in shares),
        figures=cast(DeviceFigures, figures[0]),
        network=None if wires.nodes is None else _network(wires.nodes),
    )
    return all_reduce_time(group, payload_bytes).time_s


def _network(nodes: Nodes) -> NetworkConstants:
    return NetworkConstants(
        gpu_bandwidth_bytes_per_s=nodes.nic_bandwidth_bytes_per_s,
        server_bandwidth_bytes_per_s=nodes.nics_per_node * nodes.nic_bandwidth_bytes_per_s,
        step_s=nodes.nic_latency_s,
    )


def _rank_group(wires: PlacedWires) -> RankGroup:
    each, nodes = wires.gpus_per_server, wires.nodes
    outer = 1.0 if nodes is None else nodes.outer_bandwidth_bytes_per_s(each)  # unused on one
    return RankGroup(
        num_ranks=wires.num_servers * each,
        num_nodes=wires.num_servers,
        most_per_node=each,
        inner_bandwidth_bytes_per_s=wires.inner_bandwidth_bytes_per_s,
        inner_latency_s=wires.inner_latency_s,
        outer_bandwidth_bytes_per_s=outer,
        outer_latency_s=0.0 if nodes is None else nodes.nic_latency_s,
    )


def wires_of_shares(
    shares: Sequence[ServerShare], assumed: TrainingAssumptions, cluster: Cluster
) -> PlacedWires:
    """Wires of a job with equal shares of GPUs on servers of a cluster.

    Cards reach no more than the narrowest link of a ring over the servers, and a step takes the
    latencies of its farthest hop too (`des.devices.node_rings.ring_hops`).

    Raises
    ------
    ValueError
        If several servers are in use and the bandwidth or number of their cards is not known.
    """
    each = len(shares[0].placement.gpus)
    rings = [places_ring(share.free.server, _places(share)) for share in shares]
    nodes = _nodes(shares, assumed, cluster) if len(shares) > 1 else None
    bandwidth = min(bandwidth for bandwidth, _ in rings)
    if each == 1:  # nothing is sent inside a server: any figure will do
        bandwidth = 1.0 if nodes is None else nodes.nic_bandwidth_bytes_per_s
    return PlacedWires(
        num_servers=len(shares),
        gpus_per_server=each,
        inner_bandwidth_bytes_per_s=bandwidth,
        inner_latency_s=max(latency_s for _, latency_s in rings),
        nodes=nodes,
    )


def _places(share: ServerShare) -> tuple[int, ...]:
    return places_of(share.free.server, "gpus", share.placement.gpus)


def _nodes(shares: Sequence[ServerShare], assumed: TrainingAssumptions, cluster: Cluster) -> Nodes:
    cards = [_cards(share, assumed) for share in shares]
    (hop,) = ring_hops(cluster, [[share.free.name for share in shares]])
    count = min(count for count, _ in cards)
    links = float("inf") if hop is None else hop.bandwidth_bytes_per_s
    return Nodes(
        gpus_per_node=len(shares[0].placement.gpus),
        nics_per_node=count,
        nic_bandwidth_bytes_per_s=min(links / count, *(bandwidth for _, bandwidth in cards)),
        nic_latency_s=assumed.card_step_s + (0.0 if hop is None else hop.latency_s),
    )


def warm_up_s(
    shares: Sequence[ServerShare],
    near: Collection[str],
    num_bytes: float,
    assumed: TrainingAssumptions,
    cluster: Cluster,
) -> float:
    """Time until every server of a job has cached bytes of data, each from the closest with it. [s]

    All read at once: links are shared (`des.devices.node_rings.hops_at_once`), and a server takes
    no more than its cards do. Servers that have the data, ``near``, take nothing.

    Raises
    ------
    ValueError
        If no server with the data can be reached, or the cards of a server are not known.
    """
    lacking = [share for share in shares if share.free.name not in near]
    pairs = []
    for share in lacking:
        hops = {name: cluster.hops(name, share.free.name) for name in sorted(near)}
        ways = [(count, name) for name, count in hops.items() if count is not None]
        if not ways:
            raise ValueError(f"server {share.free.name}: no link leads to it from the data")
        pairs.append((min(ways)[1], share.free.name))
    longest_s = 0.0
    found = hops_at_once(cluster, ([pair] for pair in pairs))
    for share, hop in zip(lacking, found, strict=True):
        assert hop is not None
        count, card_bytes_per_s = _cards(share, assumed)
        rate = min(hop.bandwidth_bytes_per_s, count * card_bytes_per_s)
        longest_s = max(longest_s, hop.latency_s + num_bytes / rate)
    return longest_s


def _cards(share: ServerShare, assumed: TrainingAssumptions) -> tuple[int, float]:
    """Number of cards in use for a share, and the bandwidth that each reaches."""
    server = share.free.server
    near = [server.nearest_nics(place) for place in _places(share)]
    cards = {card.name: card for found in near if found is not None for card in found[1]}
    count = assumed.cards_per_server or len(cards)
    if not count:
        raise ValueError(
            f"server {share.free.name}: cards_per_server must be given for a job on several "
            "servers, as the server lists no network cards"
        )
    known = [card.bandwidth_bytes_per_s for card in cards.values()]
    bandwidths = [bandwidth for bandwidth in known if bandwidth is not None]
    if assumed.card_bandwidth_bytes_per_s is not None:
        return count, CARD_FRACTION * assumed.card_bandwidth_bytes_per_s
    if not known or len(bandwidths) < len(known):
        raise ValueError(
            f"server {share.free.name}: card_bandwidth_bytes_per_s must be given for a job on "
            "several servers, as it is not known of the network cards"
        )
    return count, CARD_FRACTION * min(bandwidths)


def simulate_iteration(
    shares: Sequence[ServerShare], wires: PlacedWires, assumed: TrainingAssumptions
) -> IterationResult:
    """Simulate one iteration of training on the GPUs of a job, as one domain.

    Raises
    ------
    ValueError
        If the GPUs are of no known model, or the assumptions do not fit the GPUs.
    """
    model = gpu_kind_named("placement", _gpu_name(shares, assumed))
    num_gpus = wires.num_servers * wires.gpus_per_server
    domain = Domain(
        name="placement",
        num_gpus=num_gpus,
        gpu_peak_flops_per_s=model.peak_flops_per_s,
        gpu_memory_bytes=model.memory_bytes,
        gpu_memory_bandwidth_bytes_per_s=model.memory_bandwidth_bytes_per_s,
        attainable_fraction=assumed.attainable_fraction,
        intra_bandwidth_bytes_per_s=wires.inner_bandwidth_bytes_per_s,
        intra_latency_s=wires.inner_latency_s,
        nodes=wires.nodes,
    )
    shape = assumed.parallelism or Parallelism(tensor=wires.gpus_per_server, data=wires.num_servers)
    workload = build_workload(
        assumed.model,
        num_microbatches=assumed.num_microbatches,
        microbatch_size=shape.data,
        sequence_length=assumed.sequence_length,
    )
    plan = Plan(placement=Placement.even(1, workload.num_layers), parallelism=(shape,))
    return simulate(Topology.of([domain], []), workload, plan)


def _gpu_name(shares: Sequence[ServerShare], assumed: TrainingAssumptions) -> str:
    if assumed.gpu is not None:
        return assumed.gpu
    names = {gpu.model for share in shares for gpu in share.free.server.gpus}
    if len(names) > 1 or None in names:
        listed = ", ".join(sorted(str(name) for name in names))
        raise ValueError(
            f"placement: gpu must be given, as the servers' GPUs are not of one known model; "
            f"got {listed}"
        )
    return str(names.pop())
