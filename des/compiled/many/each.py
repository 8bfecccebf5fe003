"""Plans of one job simulated side by side, each on a network of its own.

N networks of K domains are taken as one of N K domains that no link joins; a plan stays among those
of its own network, so all plans run together in the kernels that know one network.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from des.compiled.eligibility import has_plain_transport
from des.compiled.many.families import FamilySimulation
from des.compiled.many.family_rows import write_plans
from des.compiled.many.job import DomainFigures, domain_figures, has_every_link
from des.compiled.many.layout import Real, Whole
from des.costs.message_times import direct_links
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.world.topology import Topology

_MOST_TOGETHER = 64
"""Networks that are taken as one: its tables grow with their square."""


class NetworkFigures(NamedTuple):
    """Figures of N networks that stand still, of the same K domains but for their speeds.

    ``goodput_bytes_per_s`` and ``latency_s`` (N, K, K) are those of direct links, from row to
    column; ``rate_flops_per_s`` (N, K) and ``update_s`` (N, K, 2) as in
    `des.compiled.many.steady.Job`.
    """

    goodput_bytes_per_s: Real
    latency_s: Real
    rate_flops_per_s: Real
    update_s: Real

    def rows(self, rows: Whole | slice) -> Self:
        """Return some of the networks."""
        return type(self)(*(field[rows] for field in self))


def network_figures(
    topologies: Sequence[Topology],
    workload: Workload,
    common: DomainFigures,
    corrections: Corrections = NO_CORRECTIONS,
) -> NetworkFigures:
    """Work out the figures of networks.

    Parameters
    ----------
    common
        Figures of the domains, from which those of the networks differ in speed alone.

    Raises
    ------
    ValueError
        If links move or are shared, not every two domains have a link, or domains differ in more.
    """
    goodputs, latencies_s, rates, updates_s = [], [], [], []
    for topology in topologies:
        if not is_plain(topology):
            raise ValueError(
                "networks: topologies must have a link between every two domains that stands "
                f"still and serves in turn, got {topology!r}"
            )
        tables = common.work_before, common.sums_before
        own = domain_figures(workload, topology.domains, corrections, tables=tables)
        if not np.array_equal(own.capacity_bytes, common.capacity_bytes):
            raise ValueError(
                "networks: domains of topologies must differ in speed alone, got memories of "
                f"{own.capacity_bytes.tolist()} and {common.capacity_bytes.tolist()} bytes"
            )
        goodput, latency_s = direct_links(topology, corrections)
        goodputs.append(goodput)
        latencies_s.append(latency_s)
        rates.append(own.rate_flops_per_s)
        updates_s.append(own.update_s)
    return NetworkFigures(*map(np.array, (goodputs, latencies_s, rates, updates_s)))


def is_plain(topology: Topology) -> bool:
    """Whether `network_figures` takes a topology."""
    plain = topology.movement is None and has_plain_transport(topology)
    return plain and has_every_link(topology)


def as_one_network(
    common: DomainFigures, networks: NetworkFigures
) -> tuple[DomainFigures, Real, Real]:
    """Take networks as one: figures of all domains, goodputs and latencies of their links.

    The domains of network ``n`` are those from ``n K`` on.
    """
    count, size = networks.rate_flops_per_s.shape
    figures = DomainFigures(
        work_before=np.tile(common.work_before, count),
        sums_before=common.sums_before,
        rate_flops_per_s=networks.rate_flops_per_s.ravel(),
        capacity_bytes=np.tile(common.capacity_bytes, count),
        update_s=networks.update_s.reshape(-1, 2),
    )
    links = np.zeros((2, count, size, count, size))
    own = np.arange(count)
    links[0, own, :, own, :] = networks.goodput_bytes_per_s
    links[1, own, :, own, :] = networks.latency_s
    goodput, latency_s = links.reshape(2, count * size, count * size)
    return figures, goodput, latency_s


def simulate_each(
    networks: NetworkFigures,
    common: DomainFigures,
    workload: Workload,
    plans: Sequence[Plan],
    corrections: Corrections = NO_CORRECTIONS,
    *,
    steps: Sequence[int] = (),
    is_behind: bool = False,
) -> Real:
    """Iteration time of plan ``n`` on network ``n``, (N,), equal to `des.simulate`. [s]

    Memory is not looked at.

    Parameters
    ----------
    steps
        Step of each plan, by which it depends what replicas exchange; none: 0.
    is_behind
        Whether the times are those of exchanges alone that start after the step and continue behind
        the next, as `des.simulation.iteration.exchange_behind_s` has them.

    Raises
    ------
    ValueError
        If `des.compiled.many.family_rows.write_plans` cannot hold a plan, or messages are delayed
        by a law of the transport.
    """
    corrections.require_no_law("simulate each")
    of_plans, size = list(steps) or [0] * len(plans), networks.rate_flops_per_s.shape[1]
    times_s = np.empty(len(plans))
    for begin in range(0, len(plans), _MOST_TOGETHER):
        rows = slice(begin, begin + _MOST_TOGETHER)
        written = write_plans(workload, size, plans[rows], of_plans[rows], is_behind=is_behind)
        own = networks.rows(rows)
        if written is None or len(written.positions) < len(own.rate_flops_per_s):
            raise ValueError(
                "simulate each: plans must have one stage per domain, domains of their own that "
                "work as one device, and a schedule with a pace; got others"
            )
        pipelines = written.rows.pipelines
        networks_of_rows = np.repeat(np.arange(len(written.positions)), np.diff(written.rows.first))
        shifted = pipelines.domain + (size * networks_of_rows[:, np.newaxis]).astype(np.int32)
        moved = written.rows._replace(pipelines=pipelines._replace(domain=shifted))
        simulation = FamilySimulation(workload, written._replace(rows=moved), corrections)
        times_s[rows] = simulation.times_with(*simulation.jobs_of(*as_one_network(common, own)))
    return times_s
