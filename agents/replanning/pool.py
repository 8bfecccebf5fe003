"""Pool of candidate plans of an episode: found by search on its networks, and their like."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from agents.decision.frozen_network import distinct_networks, freeze_topologies
from agents.decision.world import DecisionWorld
from agents.judge.steady_judge import MISFIT, SteadyJudge
from agents.planners.choice.choosing import share_out
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS, search
from agents.planners.search.search_moves import Order, joined, order_of
from agents.replanning.plan_costs import Changes
from agents.replanning.pool_splits import best_splits, descended, unique_rows
from agents.replanning.pool_thinning import choose_plans
from des import (
    NO_CORRECTIONS,
    Corrections,
    InfeasiblePlacementError,
    Placement,
    Plan,
    Topology,
)
from des.base.checks import require_count
from des.compiled.many.layout import Whole
from des.compiled.many.simulation import plan_rows
from des.compiled.many.steady import Job, Plans

MOST_JUDGED = 300_000
"""Default maximum of plans that a search of one network judges, over more than 6 domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Plans to choose from in an episode.

    Attributes
    ----------
    plans
        Each once.
    known_from
        First epoch whose network, or one before, yields each plan, (C,); the number of epochs where
        none does.
    """

    plans: tuple[Plan, ...]
    known_from: tuple[int, ...]

    def joined(self, others: Mapping[Plan, int]) -> "Pool":
        """Return these plans and others, each with the epoch from which on it is known."""
        known_from = _least([*zip(self.plans, self.known_from, strict=True), *others.items()])
        return Pool(plans=tuple(known_from), known_from=tuple(known_from.values()))


def candidate_pool(
    world: DecisionWorld,
    draw_seed: int,
    *,
    judge: SteadyJudge | None = None,
    corrections: Corrections = NO_CORRECTIONS,
    max_judged: int | None = None,
    max_searched: int | None = None,
    max_plans: int = 128,
    networks: Sequence[Topology] | None = None,
) -> Pool:
    """Collect the plans among which all methods choose in the episode of a draw.

    First comes the static plan, the best at base figures, then the best on the network of mean
    times, an even split and one in proportion to speeds. The others are the best plans of all
    networks that the draw has, under all schedules, and every order of domains found and single
    domains in their best split for each network. Of these, those are taken that are best over some
    stretch of epochs, with and without what it costs to get there from the static plan, and then
    the next best of each epoch (`agents.replanning.pool_thinning`). All of them fit into memory
    at base figures. Equal arguments give equal plans, each once.

    Parameters
    ----------
    judge
        One made for this job and these corrections; its schedules are those to choose from.
    max_judged
        Of each search, see `agents.planners.search.search.search`. None: as there for up to 6
        domains, `MOST_JUDGED` for more.
    max_searched
        Most networks of the draw to search, spread over its epochs; on the others
        the orders found there are split again. None: all.
    max_plans
        Most plans to return, apart from the first few.
    networks
        Those of `agents.decision.frozen_network.freeze_topologies` where they are at hand.

    Raises
    ------
    ValueError
        If a number is out of range.
    InfeasiblePlacementError
        If no plan fits at base figures; networks on which none does are left out.

    Notes
    -----
    The static plan, the even and the proportional one and single domains are known from the first
    epoch on. What the search finds on a network is known, under all schedules, from the first epoch
    on that has the network; an order in its split for a network from the first on that has it and
    before or in which the order was found. The network of mean times has the later epochs in it, so
    its plan is known where another network yields it too, else in no epoch: who knows the law knows
    another mean than that of the draw. Plans beyond ``max_plans`` are left out by their worth over
    all epochs, later ones included: that favours rules that choose among the rest, but for plans
    that are good until better ones are known.
    """
    require_count("pool", "max_plans", max_plans)
    if max_searched is not None:
        require_count("pool", "max_searched", max_searched)
    topology, workload = world.topology, world.workload
    judge = judge or SteadyJudge(workload, topology.num_domains, corrections=corrections)
    if max_judged is None and topology.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS:
        max_judged = MOST_JUDGED
    networks = freeze_topologies(world, draw_seed) if networks is None else networks
    distinct, epochs = distinct_networks(networks)
    first_epochs = np.unique(epochs, return_index=True)[1].tolist()
    places = (
        range(len(distinct)) if max_searched is None else spread_places(len(distinct), max_searched)
    )
    whole = [one for one in networks if len(one.links) == len(topology.links)]
    searched = [(_search(judge, topology, max_judged), 0)]
    for one, epoch in (
        (mean_network(whole or [topology]), len(networks)),
        *((distinct[place], first_epochs[place]) for place in places),
    ):
        with suppress(InfeasiblePlacementError):
            searched.append((_search(judge, one, max_judged), epoch))
    jobs = [judge.job_of(one) for one in distinct]
    base = judge.job_of(topology)
    plain = [(plan, 0) for plan in _plain_plans(judge, topology) if _fits(judge, base, plan)]
    leading = [*searched[:2], *plain]
    candidates, dates = _candidates(judge, jobs, first_epochs, [*leading, *searched])
    fitting = np.flatnonzero(judge.scores(base, candidates) < MISFIT)
    candidates, dates = plan_rows(candidates, fitting), dates[fitting]
    times_s = np.array([judge.scores(job, candidates) for job in jobs])[epochs]
    plans = [judge.plan(candidates, row) for row in range(len(candidates.num_stages))]
    changes = Changes(
        workload, plans, topology.num_domains, world.replacement, sources=[searched[0][0]]
    )
    reach_s = np.array([changes.times_s(one, judge.corrections)[0] for one in distinct])[epochs]
    known_from = _least([*leading, *searched, *zip(plans, dates.tolist(), strict=True)])
    chosen = dict.fromkeys(plan for plan, _ in leading)
    most = max_plans + len(chosen)  # as many of those chosen may be among the first
    undone = np.where(times_s < MISFIT, -world.epoch_s / times_s, np.inf)
    for row in choose_plans(undone, reach_s / times_s, most).tolist():
        if len(chosen) >= max_plans:
            break
        chosen.setdefault(plans[row])
    return Pool(plans=tuple(chosen), known_from=tuple(known_from[plan] for plan in chosen))


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


def _least(dated: Iterable[tuple[Plan, int]]) -> dict[Plan, int]:
    """The least epoch that each plan has."""
    least: dict[Plan, int] = {}
    for plan, epoch in dated:
        least[plan] = min(epoch, least.get(plan, epoch))
    return least


def spread_places(num: int, most: int | None) -> list[int]:
    """Choose at most ``most`` of ``num`` places, at even distances from the first to the last.

    None: all.
    """
    count = num if most is None else min(most, num)
    places: list[int] = np.rint(np.linspace(0, num - 1, count)).astype(int).tolist()
    return places


def _search(judge: SteadyJudge, topology: Topology, max_judged: int | None) -> Plan:
    return search(
        topology,
        judge.workload,
        judge.corrections,
        schedules=judge.schedules,
        max_judged=max_judged,
    ).plan


def _candidates(
    judge: SteadyJudge,
    jobs: Sequence[Job],
    first_epochs: Sequence[int],
    dated: Sequence[tuple[Plan, int]],
) -> tuple[Plans, Whole]:
    """The plans under all schedules; their orders, and single domains, split for each network.

    And from which epoch on each is known, (N,), by the epochs in which the plans are and those in
    which networks first come.
    """
    orders: dict[Order, int] = {}
    for plan, epoch in dated:
        order = tuple(stage.domain for stage in plan.placement.stages)
        orders[order] = min(epoch, orders.get(order, epoch))
    orders |= {(domain,): 0 for domain in range(judge.num_domains)}
    deep = [
        (replace(plan, schedule=name), epoch) for plan, epoch in dated for name in judge.schedules
    ]
    parts = [judge.plans_of([plan for plan, _ in [*dated, *deep]])]
    dates = [np.array([epoch for _, epoch in [*dated, *deep]])]
    for job, first_epoch in zip(jobs, first_epochs, strict=True):
        filled = best_splits(judge, job, list(orders))
        ends = descended(judge, job, filled, first=0)
        parts += [filled, ends]
        of_ends = [orders[order_of(ends, row)] for row in range(len(ends.num_stages))]
        dates += [np.maximum(first_epoch, [*orders.values(), *of_ends])]
    return unique_rows(joined(parts), np.concatenate(dates))


def _plain_plans(judge: SteadyJudge, topology: Topology) -> list[Plan]:
    """An even split and one in proportion to speeds, in order of names, under their best depths."""
    num_layers, most = judge.workload.num_layers, judge.most_stages
    speeds = [domain.attainable_flops_per_s for domain in topology.domains[:most]]
    placements = [
        Placement.even(most, num_layers),
        Placement.contiguous(range(most), share_out(num_layers, speeds)),
    ]
    job = judge.job_of(topology)
    found = []
    for placement in placements:
        each = [Plan(placement=placement, schedule=name) for name in judge.schedules]
        found.append(each[int(judge.scores(job, judge.plans_of(each)).argmin())])
    return found


def _fits(judge: SteadyJudge, job: Job, plan: Plan) -> bool:
    return bool(judge.scores(job, judge.plans_of([plan]))[0] < MISFIT)
