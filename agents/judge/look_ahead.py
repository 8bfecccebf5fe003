"""Plans of one job on networks that stand still: costs of many, and the look-ahead from orders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from agents.decision.situation import Preference
from agents.judge.candidates import CostObjective, ExploredPlans, Neighbourhood
from agents.judge.proposals import ORDERS, PROPOSED, Limits, explore
from agents.judge.quick_fill import SearchContext, fill_evenly
from agents.judge.steady_judge import MISFIT, RelayedJob, SteadyJudge, reachable
from des import Plan, Topology
from des.compiled.many.layout import Real, Small
from des.compiled.many.least_times import least_figures
from des.compiled.many.steady import Job, Plans
from des.world.domain_load import DomainLoad

_MOST_REMEMBERED, _MOST_NETWORKS = 4096, 3

_MOST_NEAR, _MOST_KEPT, _NUM_KEYS = 1024, 4096, 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAhead:
    """Budget and widths of a look-ahead from proposed orders.

    Attributes
    ----------
    budget
        Maximum plans judged (may overshoot by one neighbourhood).
    width
        Beam width: the best orders, which are expanded.
    num_refined
        Plans of which splits and depths are refined.
    order_fraction
        Share of the budget for orders.
    most_behind
        Largest excess of cost over the best plan that is still refined: about 5 % of time.
    num_samples
        Orders that are drawn to begin with, the likeliest one among them.
    """

    budget: int = 4000
    width: int = 4
    num_refined: int = 24
    order_fraction: float = 0.6
    most_behind: float = 0.05
    num_samples: int = 24


class Variations(NamedTuple):
    """Plans near one plan with their times [s] and costs: itself, its best depth, its best split.

    Those that do not fit are left out; the plans may be equal.
    """

    found: tuple[tuple[Plan, float, float], ...]
    num_judged: int


class PlanJudge(SteadyJudge):
    """A `SteadyJudge` that also splits layers unevenly, and looks ahead in compiled code.

    It caches the last plans and networks, as the same ones come back.
    """

    @cached_property
    def _jobs_known(self) -> list[tuple[Topology, Job]]:
        return []

    @cached_property
    def _plans_known(self) -> dict[bytes, Plan]:
        return {}

    @cached_property
    def _near(self) -> Neighbourhood:
        return self.new_near()

    _tools_known: SearchContext | None = None

    def job_of(self, topology: Topology) -> Job:
        """As `SteadyJudge.job_of`; twice in a row on the same network is worked out once."""
        known = self._jobs_known
        for of, job in known:
            if of is topology:
                return job
        known.append((topology, super().job_of(topology)))
        del known[:-_MOST_NETWORKS]
        return known[-1][1]

    def plan(self, plans: Plans, row: int) -> Plan:
        """One of the plans; equal ones are the same object as long as it is remembered."""
        size = int(plans.num_stages[row])
        domain, end_layer = plans.domain[row, :size], plans.end_layer[row, :size]
        key = bytes((size, int(plans.schedule[row]))) + domain.tobytes() + end_layer.tobytes()
        known = self._plans_known.get(key)
        if known is None:
            if len(self._plans_known) >= _MOST_REMEMBERED:
                self._plans_known.clear()
            known = self._plans_known[key] = super().plan(plans, row)
        return known

    def tools(self, job: Job) -> SearchContext:
        """Arrays that kernels judge plans with.

        Raises
        ------
        ValueError
            If plans of the job may need relays or wait for each other.
        """
        if isinstance(job, RelayedJob):
            raise ValueError(
                "plan judge: job must be of a network with direct links that serve in turn, "
                "got one with relays"
            )
        known = self._tools_known
        if known is None or known.job is not job:
            figures = least_figures(job, self.programs)
            known = SearchContext(self.scratch, job, self.paces, self.programs, figures)
            self._tools_known = known
        return known

    def fill_by(self, job: Job, plans: Plans, weights: Real) -> Real:
        """Split layers as `agents.judge.quick_fill.fill_evenly` does; returns the levels. [s]"""
        levels_s = np.empty(len(plans.num_stages))
        fill_evenly(self.tools(job), plans, weights, levels_s)
        return levels_s

    def new_pool(self, num_plans: int = _MOST_KEPT, num_keys: int = _NUM_KEYS) -> ExploredPlans:
        """Make room for what a look-ahead finds, with a power of 2 of keys."""
        return ExploredPlans(
            plans=self.new_rows(num_plans),
            costs=np.full(num_plans, np.inf),
            times_s=np.full(num_plans, np.inf),
            state=np.zeros(num_plans, dtype=np.int32),
            keys=np.zeros(num_keys, dtype=np.int64),
            counts=np.zeros(3, dtype=np.int64),
        )

    def new_near(self) -> Neighbourhood:
        """Make room for candidates."""
        return Neighbourhood(
            plans=self.new_rows(_MOST_NEAR),
            costs=np.empty(_MOST_NEAR),
            times_s=np.empty(_MOST_NEAR),
            limits=np.empty(_MOST_NEAR),
            limits_s=np.empty(_MOST_NEAR),
            owner=np.empty(_MOST_NEAR, dtype=np.int64),
            counts=np.full(_MOST_NEAR, self.workload.num_microbatches),
            ordered=np.empty(_MOST_NEAR, dtype=np.int64),
            starts=np.zeros(len(self.schedules) * self.most_stages + 1, dtype=np.int64),
            weights=np.ones(self.most_stages),
        )

    def look_ahead(
        self, job: Job, aim: CostObjective, orders: Small, sizes: Small, how: LookAhead
    ) -> ExploredPlans:
        """Judge proposed orders (N, K) and expand the best; the pool holds all plans found.

        Raises
        ------
        ValueError
            See `tools`.
        """
        tools, pool, near = self.tools(job), self.new_pool(), self._near
        limits = Limits(
            how.width,
            how.num_refined,
            int(how.order_fraction * how.budget),
            how.budget,
            how.most_behind,
        )
        explore(tools, aim, pool, near, orders, sizes, limits, PROPOSED)
        return pool

    def variations(self, job: Job, aim: CostObjective, plan: Plan, budget: int) -> Variations:
        """Find the best plans near one plan, no more than ``budget`` judged.

        Raises
        ------
        ValueError
            If the plan cannot be written down, see `can_hold`, or see `tools`.
        """
        num = len(self.schedules)
        written = self.plans_of([plan])
        same = Plans(*(np.repeat(field, num, axis=0) for field in written))
        same.schedule[:] = np.arange(num)
        times_s = self.scores(job, same)
        costs = np.where(times_s < MISFIT, plan_costs(aim, same, times_s), np.inf)
        best = int(costs.argmin())
        if costs[best] == np.inf:
            return Variations((), num)
        rows = [
            row for row in dict.fromkeys((int(written.schedule[0]), best)) if costs[row] < np.inf
        ]
        found = [(self.plan(same, row), float(times_s[row]), float(costs[row])) for row in rows]
        pool = self.new_pool(1, 1)
        for target, source in zip(pool.plans, same, strict=True):
            target[0] = source[best]
        pool.costs[0], pool.times_s[0], pool.counts[0] = costs[best], times_s[best], 1
        limits = Limits(1, 1, 0, budget, math.inf)  # no other orders
        none = np.zeros((0, self.num_domains), dtype=np.int32)
        no_sizes = np.zeros(0, dtype=np.int32)
        explore(self.tools(job), aim, pool, self._near, none, no_sizes, limits, ORDERS)
        found.append((self.plan(pool.plans, 0), float(pool.times_s[0]), float(pool.costs[0])))
        return Variations(tuple(found), num + int(pool.counts[1]))


def load_job(job: Job, loads: Sequence[DomainLoad]) -> Job:
    """Return the job where other jobs hold a part of the domains' memory."""
    if not loads:
        return job
    free = np.array([1.0 - load.memory_occupancy for load in loads])
    return job._replace(capacity_bytes=job.capacity_bytes * free)


def aim_of(topology: Topology, job: Job, preference: Preference) -> CostObjective:
    """Return what is least under a preference.

    Time and utilisation of all GPUs are the same: one over the other is what the job takes. Each
    border counts with both its links' prices for a byte over their mean, those without a price
    alike; tolls are such that an even pipeline over all domains at mean prices has tolls of 1.
    """
    num_domains = topology.num_domains
    prices = price_matrix(topology)
    tolls = (prices + prices.T) / (2.0 * max(1, num_domains - 1))
    can_follow = reachable(job)
    np.fill_diagonal(can_follow, False)
    return CostObjective(
        time_weight=preference.time + preference.utilisation,
        toll_weight=preference.communication,
        tolls=tolls,
        can_follow=can_follow,
    )


def price_matrix(topology: Topology) -> Real:
    """Prices of links over their mean, (K, K); 1 where none has one or there is no link."""
    prices = np.ones((topology.num_domains, topology.num_domains))
    known = [link.price_usd_per_gb for link in topology.links]
    given = [price for price in known if price is not None]
    if not given or sum(given) == 0.0:
        return prices
    mean = math.fsum(given) / len(given)
    for ends, index in topology.link_index.items():
        price = known[index]
        prices[ends] = 1.0 if price is None else price / mean
    return prices


def plan_costs(aim: CostObjective, plans: Plans, times_s: Real) -> Real:
    """Costs by `agents.judge.candidates.CostObjective`; ``inf`` for plans that do not fit."""
    here, there = plans.domain[:, :-1], plans.domain[:, 1:]
    is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
    tolls = np.where(is_border, aim.tolls[here, there], 0.0).sum(axis=1)
    costs: Real = aim.time_weight * np.log(times_s) + aim.toll_weight * np.log1p(tolls)
    return costs
