"""Offers of a job on a world whose sites come and go: the best plan of every set of sites."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.judge.placed_plans import place_on
from agents.replanning.move_cost import STORAGE_BYTES_PER_S, checkpoint_bytes, num_servers
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from agents.search.site_figures import hops_between
from agents.trainers.plan_checks import domains_in_use
from des import NO_CORRECTIONS, InfeasiblePlacementError, Plan
from des.dynamics.site_law import SpotLaw
from des.spot.offers import Offers, StateSizes
from des.spot.spot_law import draw_course
from des.spot.world import SpotWorld
from des.world.lost_parts import with_domains

MOST_SITES = 8
"""Most sites that come and go: every set of them is searched, 255 of eight."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferedWorlds:
    """The world of a seed, and the law of its sites: offers on courses of a law.

    Attributes
    ----------
    law
        Of all sites of the offers.
    sees_all, ticks_per_decision
        See `des.spot.world.SpotWorld`.
    """

    offers: Offers
    law: SpotLaw
    num_ticks: int
    tick_s: float
    ticks_per_decision: int = 4
    sees_all: bool = True

    def __call__(self, seed: int) -> tuple[SpotWorld, SpotLaw]:
        """Return the world of a seed."""
        world = SpotWorld(
            course=draw_course(self.law, seed, self.num_ticks, self.tick_s),
            offers=self.offers,
            notice_s=self.law.notice_s,
            ticks_per_decision=self.ticks_per_decision,
            sees_all=self.sees_all,
        )
        return world, self.law


def search_site_sets(request: PlanRequest, law: SpotLaw) -> tuple[BoundPlan, ...]:
    """Return the best plans of all sets of sites that may be up at once, each plan once.

    Raises
    ------
    InfeasiblePlacementError
        If none fits on all sites.
    ValueError
        If there are more sites that come and go than `MOST_SITES`.
    """
    topology, shared = request.topology, SharedParts()
    going = [site.name for site in law.sites]
    if len(going) > MOST_SITES:
        raise ValueError(
            f"availability.sites: must be at most {MOST_SITES}, as every set of them is searched; "
            f"got {len(going)}"
        )
    always = topology.index_of.keys() - set(going)
    best: dict[tuple[int, ...], BoundPlan] = {}
    for size in range(len(going), -1, -1):
        for some in combinations(going, size):
            if not (names := always | set(some)):
                continue
            asked = replace(request, topology=with_domains(topology, names))
            try:
                found = search_bound(asked, shared=shared, is_best_alone=True).best.bound
            except InfeasiblePlacementError:
                if size == len(going):
                    raise
                continue
            placed = place_on(found, topology)
            best.setdefault(tuple(sorted(domains_in_use(placed.plan))), placed)
    return tuple(best.values())


def offers_of(plans: Sequence[BoundPlan], law: SpotLaw, restart_s: float) -> Offers:
    """Return the offers that are plans on one world.

    State moves over the quickest way between sites, to and from storage at
    `agents.replanning.move_cost.STORAGE_BYTES_PER_S` a server; GPUs without a price cost nothing.

    Parameters
    ----------
    restart_s
        Of the job, without reading. [s]
    """
    topology, workload = plans[0].topology, plans[0].workload
    domains = topology.domains
    shares = np.array([_shares(one.plan, topology.num_domains) for one in plans])
    needs = shares > 0
    sizes = StateSizes(
        state_bytes=checkpoint_bytes(workload),
        storage_bytes_per_s=np.array([num_servers(one) * STORAGE_BYTES_PER_S for one in domains]),
        link_bytes_per_s=hops_between(topology, NO_CORRECTIONS)[0].min(axis=2),
        restart_s=restart_s,
    )
    names = ["+".join(domains[site].name for site in np.flatnonzero(row)) for row in shares]
    prices = [(one.gpu_price_usd_per_hour or 0.0) / 3600.0 for one in domains]
    sites = law.over([one.name for one in domains]).sites
    losses_per_s = np.array([1.0 / site.up.mean_s for site in sites])
    return Offers.of_sets(
        names,
        needs,
        np.array([one.workload.tokens_per_iteration / one.step_s for one in plans]),
        shares,
        sizes,
        gpus=np.array([one.num_gpus for one in domains]),
        usd_per_gpu_s=np.array(prices),
        losses_per_s=(needs @ losses_per_s) / needs.sum(axis=1),
    )


def _shares(plan: Plan, num_domains: int) -> np.ndarray:
    """Part of the layers that each domain has in some copy of the model, (K,)."""
    layers = np.array([one.domain_of_layer for one in plan.placements])
    return np.array([(layers == site).any(axis=0).mean() for site in range(num_domains)])
