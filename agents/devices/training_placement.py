"""Placement of a training job on servers: which GPUs, how good they are, and predicted times."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from agents.devices.fragmentation import EVEN_MIX, check_mix, fragmentation
from agents.devices.free_gpus import FreeGpus
from agents.devices.gpu_placement import PAYLOAD_BYTES
from agents.devices.server_choice import (
    ServerChoice,
    ServerPool,
    close_servers,
    fitting_servers,
    servers_after,
)
from agents.devices.training_figures import (
    TrainingAssumptions,
    job_all_reduce_s,
    simulate_iteration,
    warm_up_s,
    wires_of_shares,
)
from des.base.checks import require_count, require_non_negative, require_one_of
from des.devices.cluster import Cluster
from des.devices.cluster_levels import NVLINK
from des.devices.node_rings import ring_hops

JobKind = Literal["communication", "compute", "mixed"]
"""Kinds of jobs, by what they do most."""
CLOSENESS = ("optimal", "good", "acceptable", "suboptimal")
_REASONS: Mapping[JobKind, str] = {
    "communication": "as few and close as can be",
    "compute": "over as many racks as can be",
    "mixed": "that leave the least in pieces",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlacement:
    """GPUs of servers for one training job.

    Attributes
    ----------
    servers, gpus
        Names of the servers, and the numbers of the job's GPUs on each.
    level, unit
        Finest level of the cluster of which one unit holds all servers, and that unit; ``any`` and
        ``cluster`` where none does.
    closeness
        ``optimal`` in one unit of the finest level, such as a rack; ``good`` and ``acceptable`` in
        one of the next two levels; else ``suboptimal``.
    quality
        All-reduce time on the closest GPUs of the servers without other jobs, over that on the GPUs
        chosen; where links have no figures, times the links of their farthest hops likewise. In
        (0, 1].
    all_reduce_s
        Predicted time of an all-reduce of 100 MB. [s]
    iteration_s, fits_memory
        Predicted time of a training iteration by `des.simulate`, and whether it fits into memory.
    fragmentation_fraction
        Fragmentation of the free GPUs afterwards, see `agents.devices.fragmentation`.
    warm_up_s
        Time in which servers that are not near the data cache it; None where its size is not given.
    why
        Reason in one line.
    """

    servers: tuple[str, ...]
    gpus: tuple[tuple[int, ...], ...]
    level: str
    unit: str
    closeness: str
    quality: float
    all_reduce_s: float
    iteration_s: float
    fits_memory: bool
    fragmentation_fraction: float
    warm_up_s: float | None
    why: str


def optimise_placement(
    pool: ServerPool,
    total_gpus: int,
    gpus_per_node: int,
    *,
    kind: JobKind = "communication",
    data_locality: Collection[str] = (),
    data_bytes: float | None = None,
    mix: Mapping[int, float] = EVEN_MIX,
    assumed: TrainingAssumptions | None = None,
) -> TrainingPlacement:
    """Choose servers and GPUs for a training job and predict its times.

    Parameters
    ----------
    pool
        Servers, their free GPUs, and the cluster that they are in.
    total_gpus
        GPUs of the job, as many on each server.
    gpus_per_node
        Most of them on one server.
    kind
        What the job does most: ``communication`` takes few servers, close to each other
        (`close_servers`), ``compute`` few servers over many racks, and ``mixed`` those that the
        job fills best, so that little is left in pieces (`fitting_servers`).
    data_locality
        Names of nodes, switches or NVLink domains of the cluster that hold the job's data; servers
        among or below them are preferred.
    data_bytes
        Data that each server caches before the job starts; needs ``data_locality``.
    mix
        Next jobs, by which fragmentation is measured.
    assumed
        What the servers do not say.

    Raises
    ------
    ValueError
        If there are not enough free GPUs, or a figure is neither known nor assumed.
    """
    assumed = assumed or TrainingAssumptions()
    require_count("placement", "total_gpus", total_gpus)
    require_count("placement", "gpus_per_node", gpus_per_node)
    check_mix(mix)
    near = pool.near(data_locality)
    if data_bytes is not None:
        require_non_negative("placement", "data_bytes", data_bytes)
        if not near:
            raise ValueError("placement: data_locality must be given for data to be cached")
    require_one_of("placement", "kind", kind, get_args(JobKind))
    is_spread = kind == "compute"
    choice = (
        fitting_servers(pool, total_gpus, gpus_per_node, near, mix)
        if kind == "mixed"
        else close_servers(pool, total_gpus, gpus_per_node, near, is_spread=is_spread)
    )
    ideal = close_servers(pool.without_jobs(), total_gpus, gpus_per_node, ())
    if choice is None or ideal is None:
        raise ValueError(_refusal(pool.servers, total_gpus, gpus_per_node))
    wires = wires_of_shares(choice.shares, assumed, pool.cluster)
    all_reduce_s = job_all_reduce_s(choice.shares, wires, PAYLOAD_BYTES)
    ideal_wires = wires_of_shares(ideal.shares, assumed, pool.cluster)
    ideal_s = job_all_reduce_s(ideal.shares, ideal_wires, PAYLOAD_BYTES)
    iteration = simulate_iteration(choice.shares, wires, assumed)
    after = fragmentation(servers_after(pool.servers, choice), mix).fraction
    return TrainingPlacement(
        servers=tuple(share.free.name for share in choice.shares),
        gpus=tuple(share.placement.gpus for share in choice.shares),
        level=choice.nodes.level,
        unit=choice.nodes.unit,
        closeness=_closeness(pool.cluster, choice.nodes.level, len(choice.shares)),
        quality=_quality(pool.cluster, (ideal, ideal_s), (choice, all_reduce_s)),
        all_reduce_s=all_reduce_s,
        iteration_s=iteration.makespan_s,
        fits_memory=iteration.fits_memory,
        fragmentation_fraction=after,
        warm_up_s=(
            None
            if data_bytes is None
            else warm_up_s(choice.shares, near, data_bytes, assumed, pool.cluster)
        ),
        why=_reason(choice, kind, near),
    )


def _refusal(servers: Sequence[FreeGpus], total_gpus: int, gpus_per_node: int) -> str:
    free = ", ".join(str(len(each.numbers)) for each in servers[:16])
    more = ", ..." if len(servers) > 16 else ""
    return (
        f"placement: total_gpus must be equal shares of at most {gpus_per_node} free GPUs of a "
        f"server, got {total_gpus} with {free}{more} free"
    )


def _quality(
    cluster: Cluster, ideal: tuple[ServerChoice, float], found: tuple[ServerChoice, float]
) -> float:
    """Ratio of times, and of the links of the farthest hops where these have no bandwidths."""
    rings = [[share.free.name for share in choice.shares] for choice, _ in (ideal, found)]
    best, own = (ring_hops(cluster, [ring])[0] for ring in rings)
    quality = ideal[1] / found[1] if found[1] else 1.0
    if own is not None and own.bandwidth_bytes_per_s == math.inf:
        quality *= (best.num_links if best is not None else 1) / own.num_links
    return min(1.0, quality)


def _closeness(cluster: Cluster, level: str, num_servers: int) -> str:
    finest_first = [each.name for each in reversed(cluster.levels)]
    if num_servers == 1 or level == NVLINK:
        return CLOSENESS[0]
    rank = finest_first.index(level) if level in finest_first else len(CLOSENESS)
    return CLOSENESS[min(rank, len(CLOSENESS) - 1)]


def _reason(choice: ServerChoice, kind: JobKind, near: Collection[str]) -> str:
    count, each = len(choice.shares), len(choice.shares[0].placement.gpus)
    gpus = f"{each} GPU{'s' if each > 1 else ''}"
    text = f"{gpus} on each of {count} servers" if count > 1 else f"{gpus} on one server"
    text += f", {_REASONS[kind]}"
    if near:
        text += f"; {choice.num_named(near)} of {count} near the data"
    return text
