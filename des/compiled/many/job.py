"""Times that stages and borders of a job take on a network that stands still, for the kernels."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from des.compiled.eligibility import has_plain_transport
from des.compiled.many.layer_sums import sums_table, work_table
from des.compiled.many.layout import Flags, Real
from des.compiled.many.steady import Job
from des.costs.memory import model_state_bytes
from des.costs.message_times import (
    direct_links,
    hop_start_up,
    pairs_apart,
    quickest_message_s,
)
from des.costs.stage_times import compute_rate_flops_per_s
from des.costs.start_up import start_up_s
from des.costs.update_times import update_figures
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.world.domain import Domain
from des.world.topology import Topology, UnreachableError


class DomainFigures(NamedTuple):
    """Figures of a job in domains alone, whatever their links do: fields of `Job`."""

    work_before: Real
    sums_before: Real
    rate_flops_per_s: Real
    capacity_bytes: Real
    update_s: Real


def domain_figures(
    workload: Workload,
    domains: Sequence[Domain],
    corrections: Corrections,
    *,
    tables: tuple[Real, Real] | None = None,
) -> DomainFigures:
    """Make the figures of a workload on the domains of a world; `work_tables` may be at hand."""
    work, sums = work_tables(workload, domains) if tables is None else tables
    return DomainFigures(
        work_before=work,
        sums_before=sums,
        rate_flops_per_s=np.array([compute_rate_flops_per_s(one, corrections) for one in domains]),
        capacity_bytes=np.array([float(domain.memory_bytes) for domain in domains]),
        update_s=_updates(workload, domains, corrections),
    )


def job_on(
    topology: Topology,
    workload: Workload,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    figures: DomainFigures | None = None,
) -> Job:
    """Work out what stages and borders take; where nothing leads to, the wire takes ``inf``.

    Parameters
    ----------
    topology
        Where its links move, wires and flights are those at base figures, and turns the shortest.
    figures
        `domain_figures` of the workload and these domains where they are at hand.

    Raises
    ------
    ValueError
        If a law of the transport delays messages of reused connections.
    """
    if corrections.transport is not None and corrections.transport.connections != "fresh":
        raise ValueError(
            "plans side by side: connections of corrections.transport must be fresh, as delays of "
            "reused ones change from message to message; got reused"
        )
    known = domain_figures(workload, topology.domains, corrections) if figures is None else figures
    is_plain = topology.movement is None and has_plain_transport(topology)
    borders = _direct if is_plain and has_every_link(topology) else _relayed
    wire_s, latency_s, turn_s = borders(topology, workload, corrections)
    return Job(
        num_microbatches=workload.num_microbatches,
        sums_before=known.sums_before,
        work_before=known.work_before,
        rate_flops_per_s=known.rate_flops_per_s,
        wire_s=wire_s,
        latency_s=latency_s,
        turn_s=turn_s,
        overhead_s=float(corrections.message_overhead_s),
        capacity_bytes=known.capacity_bytes,
        bytes_per_parameter=model_state_bytes(workload, 1.0, None),
        update_s=known.update_s,
    )


def work_tables(workload: Workload, domains: Sequence[Domain]) -> tuple[Real, Real]:
    """Make `work_table` and `sums_table`, which depend on the speeds of GPUs alone."""
    return work_table(workload, domains), sums_table(workload, domains)


def _updates(workload: Workload, domains: Sequence[Domain], corrections: Corrections) -> Real:
    """Figures of `des.costs.update_times.update_figures` of domains that are one device, (K, 2)."""
    if not any(domain.kernels for domain in domains):
        return _no_updates(len(domains))
    size = workload.gradient_bytes
    return np.array([update_figures(size, domain, None, corrections) for domain in domains])


@cache
def _no_updates(num_domains: int) -> Real:
    return np.zeros((num_domains, 2))


def has_every_link(topology: Topology) -> bool:
    """Whether a direct link leads from every domain to every other."""
    return len(topology.links) == topology.num_domains * (topology.num_domains - 1)


def direct_pairs(topology: Topology) -> Flags:
    """Pairs of domains with a direct link there and back, (K, K)."""
    direct = np.zeros((topology.num_domains, topology.num_domains), dtype=np.bool_)
    for ends in topology.link_index:
        direct[ends] = True
    return direct & direct.T


def _direct(
    topology: Topology, workload: Workload, corrections: Corrections
) -> tuple[Real, Real, Real]:
    """Times of messages where all pairs of domains have a link: on the wire, in flight, in turn."""
    goodput, latency_s = direct_links(topology, corrections)
    latency_s = latency_s + _delays_s(topology, workload, corrections)
    wire_s, turn_s = np.zeros((2, *goodput.shape))
    apart = pairs_apart(topology.num_domains)
    np.divide(workload.message_bytes, goodput, out=wire_s, where=apart)
    np.add(corrections.message_overhead_s, wire_s, out=turn_s, where=apart)
    return wire_s, latency_s, turn_s


def _delays_s(topology: Topology, workload: Workload, corrections: Corrections) -> Real | float:
    """Delays of activations by a law of fresh connections, (K, K); 0 without a law. [s]"""
    law = corrections.transport
    if law is None:
        return 0.0
    delays_s = np.zeros((topology.num_domains, topology.num_domains))
    for ends, hop in topology.link_index.items():
        start_up = hop_start_up(law, topology, hop, corrections)
        delays_s[ends] = start_up_s(start_up, 0.0, workload.message_bytes)
    return delays_s


def _relayed(
    topology: Topology, workload: Workload, corrections: Corrections
) -> tuple[Real, Real, Real]:
    """As `_direct`, over relays too: there the flight is all that is not on the slowest wire."""
    wire_s, latency_s, turn_s = np.zeros((3, topology.num_domains, topology.num_domains))
    goodput, direct_s = direct_links(topology, corrections)
    direct_s = direct_s + _delays_s(topology, workload, corrections)
    for ends in permutations(range(topology.num_domains), 2):
        try:
            least_s, turn_s[ends] = quickest_message_s(
                topology, *ends, workload.message_bytes, corrections
            )
        except UnreachableError:
            wire_s[ends] = math.inf
            continue
        if ends in topology.link_index:
            wire_s[ends] = workload.message_bytes / goodput[ends]
            latency_s[ends] = direct_s[ends]
        else:
            wire_s[ends] = max(0.0, turn_s[ends] - corrections.message_overhead_s)
            latency_s[ends] = least_s - corrections.message_overhead_s - wire_s[ends]
    return wire_s, latency_s, turn_s
