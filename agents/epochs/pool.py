"""Which plans to choose from in an episode: found by search on its networks, and their like."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from agents.epochs.changes import Changes
from agents.epochs.pool_splits import best_splits, descended, unique_rows
from agents.epochs.pool_thinning import chosen_plans
from agents.epochs.steady_judge import SteadyJudge
from agents.epochs.tables import held_topologies
from agents.epochs.world import DecisionWorld
from agents.kernels.layout import Whole
from agents.kernels.steady import Job, Plans
from agents.planners.choosing import shared_out
from agents.planners.search import MOST_DOMAINS_FOR_ALL_ORDERS, search
from agents.planners.search_judge import MISFIT
from agents.planners.search_moves import Order, joined, rows_of
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Placement,
    Plan,
    Topology,
)
from des.checks import require_count

MOST_JUDGED = 300_000
"""Plans that a search of one network judges at most unless told, over more than 6 domains."""


def pool_of(
    world: DecisionWorld,
    draw_seed: int,
    *,
    judge: SteadyJudge | None = None,
    corrections: Corrections = NO_CORRECTIONS,
    max_judged: int | None = None,
    max_searched: int | None = None,
    max_plans: int = 128,
    seed: int = 0,
    extra: Sequence[Plan] = (),
    networks: Sequence[Topology] | None = None,
) -> tuple[Plan, ...]:
    """Collect the plans among which all methods choose in the episode of a draw.

    First comes the static plan, the best at base figures, then the best on the network of mean
    times, an even split and one in proportion to speeds, and ``extra``. The others are the best
    plans of all networks that the draw has, under all schedules, and every order of domains found
    and single domains in their best split for each network. Of these, those are taken that are best
    over some stretch of epochs, with and without what it costs to get there from the static plan,
    and then the next best of each epoch (`agents.epochs.pool_thinning`). All of them fit into
    memory at base figures, but for the extra ones, which are taken as they are. Equal arguments
    give equal plans, each once.

    Parameters
    ----------
    judge
        One made for this job and these corrections; its schedules are those to choose from.
    max_judged, seed
        Of each search, see `agents.planners.search.search`. None: as there for up to 6 domains,
        `MOST_JUDGED` for more.
    max_searched
        How many of the networks of the draw are searched, spread over its epochs; on the others
        the orders found there are split anew. None: all.
    max_plans
        How many plans to return at most, but for the first few and the extra ones.
    networks
        Those of `agents.epochs.tables.held_topologies` where they are at hand.

    Raises
    ------
    ValueError
        If a number is out of range.
    InfeasiblePlacementError
        If no plan fits at base figures; networks on which none does are left out.
    """
    require_count("pool", "max_plans", max_plans)
    if max_searched is not None:
        require_count("pool", "max_searched", max_searched)
    topology, workload = world.topology, world.workload
    judge = judge or SteadyJudge(workload, topology.num_domains, corrections=corrections)
    if max_judged is None and topology.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS:
        max_judged = MOST_JUDGED
    networks = held_topologies(world, draw_seed) if networks is None else networks
    distinct, epochs = distinct_networks(networks)
    searched = [_searched(judge, topology, max_judged, seed)]
    whole = [one for one in networks if len(one.links) == len(topology.links)]
    some = distinct if max_searched is None else _spread(distinct, max_searched)
    for one in (mean_network(whole or [topology]), *some):
        with suppress(InfeasiblePlacementError):
            searched.append(_searched(judge, one, max_judged, seed))
    jobs = [judge.job_of(one) for one in distinct]
    base = judge.job_of(topology)
    plain = [plan for plan in _plain_plans(judge, topology) if _fits(judge, base, plan)]
    leading = list(dict.fromkeys([*searched[:2], *plain]))
    candidates = _candidates(judge, jobs, [*leading, *searched])
    candidates = rows_of(candidates, np.flatnonzero(judge.scores(base, candidates) < MISFIT))
    times_s = np.array([judge.scores(job, candidates) for job in jobs])[epochs]
    plans = [judge.plan(candidates, row) for row in range(len(candidates.num_stages))]
    changes = Changes(
        workload, plans, topology.num_domains, world.replacement, sources=searched[:1]
    )
    reach_s = np.array([changes.times_s(one, judge.corrections)[0] for one in distinct])[epochs]
    found = dict.fromkeys([*leading, *extra])
    most = max_plans + len(found)  # as many of those chosen may be among the first
    for row in chosen_plans(world.iterations_per_epoch * times_s, reach_s, most).tolist():
        if len(found) >= max_plans:
            break
        found.setdefault(plans[row])
    return tuple(found)


def distinct_networks(networks: Sequence[Topology]) -> tuple[list[Topology], Whole]:
    """Networks without those seen before, and which of them each epoch has, (E,)."""
    numbers: dict[Topology, int] = {}
    epochs = [numbers.setdefault(one, len(numbers)) for one in networks]
    return list(numbers), np.array(epochs)


def mean_network(networks: Sequence[Topology]) -> Topology:
    """Return the network on which messages and layers take the mean of their times.

    Figures of domains and links are those of the first one, but for speeds, bandwidths and
    latencies.

    Raises
    ------
    ValueError
        If there is none, or one has other links.
    """
    if not networks or any(len(one.links) != len(networks[0].links) for one in networks):
        raise ValueError(
            f"mean network: networks must be one or more with as many links, got {len(networks)}"
        )
    first = networks[0]
    slowness = 1.0 / np.array(
        [[one.attainable_fraction for one in net.domains] for net in networks]
    )
    byte_s = 1.0 / np.array([[one.bandwidth_bytes_per_s for one in net.links] for net in networks])
    latency_s = np.array([[one.latency_s for one in net.links] for net in networks])
    fractions = (1.0 / slowness.mean(axis=0)).tolist()
    domains = tuple(
        replace(domain, attainable_fraction=min(1.0, fraction))
        for domain, fraction in zip(first.domains, fractions, strict=True)
    )
    links = tuple(
        replace(link, bandwidth_bytes_per_s=bandwidth, latency_s=latency)
        for link, bandwidth, latency in zip(
            first.links,
            (1.0 / byte_s.mean(axis=0)).tolist(),
            latency_s.mean(axis=0).tolist(),
            strict=True,
        )
    )
    return replace(first, domains=domains, links=links)


def _spread(networks: Sequence[Topology], most: int) -> list[Topology]:
    """Some of the networks, at even distances from the first to the last."""
    places = np.linspace(0, len(networks) - 1, min(most, len(networks)))
    return [networks[place] for place in np.rint(places).astype(int).tolist()]


def _searched(judge: SteadyJudge, topology: Topology, max_judged: int | None, seed: int) -> Plan:
    return search(
        topology,
        judge.workload,
        judge.corrections,
        schedules=judge.schedules,
        max_judged=max_judged,
        seed=seed,
    ).plan


def _candidates(judge: SteadyJudge, jobs: Sequence[Job], plans: Sequence[Plan]) -> Plans:
    """The plans under all schedules; their orders, and single domains, split for each network."""
    orders: dict[Order, None] = {}
    for plan in plans:
        orders.setdefault(tuple(stage.domain for stage in plan.placement.stages))
    for domain in range(judge.num_domains):
        orders.setdefault((domain,))
    deep = [replace(plan, schedule=name) for plan in plans for name in judge.schedules]
    parts = [judge.plans_of([*plans, *deep])]
    static_order = next(iter(orders))
    for job in jobs:
        filled = best_splits(judge, job, list(orders))
        parts += [filled, descended(judge, job, filled, list(orders).index(static_order))]
    return unique_rows(joined(parts))


def _plain_plans(judge: SteadyJudge, topology: Topology) -> list[Plan]:
    """An even split and one in proportion to speeds, in order of names, under their best depths."""
    num_layers, most = judge.workload.num_layers, judge.most_stages
    speeds = [domain.attainable_flops_per_s for domain in topology.domains[:most]]
    placements = [
        Placement.even(most, num_layers),
        Placement.contiguous(range(most), shared_out(num_layers, speeds)),
    ]
    job = judge.job_of(topology)
    found = []
    for placement in placements:
        each = [Plan(placement=placement, schedule=name) for name in judge.schedules]
        found.append(each[int(judge.scores(job, judge.plans_of(each)).argmin())])
    return found


def _fits(judge: SteadyJudge, job: Job, plan: Plan) -> bool:
    return bool(judge.scores(job, judge.plans_of([plan]))[0] < MISFIT)
