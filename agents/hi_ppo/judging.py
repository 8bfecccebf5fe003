"""Plans of one job on networks that stand still: costs of many, and the look-ahead from orders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents.epochs.situation import DomainLoad, Preference
from agents.epochs.steady_judge import RelayedJob, SteadyJudge
from agents.kernels.candidates import Aim, Near, Pool
from agents.kernels.layout import Flags, Real, Small
from agents.kernels.proposals import ORDERS, PROPOSED, Limits, explore
from agents.kernels.quick_fill import Tools, fill_evenly
from agents.kernels.steady import Job, Plans
from agents.planners.search_judge import MISFIT
from des import Plan, Topology
from des.kernels.lanes import Rules
from des.kernels.program import STEADY

_RULES = Rules(
    weather=STEADY,
    window_bytes=math.inf,  # a window is in the wires' times already
    interval_s=math.inf,
    bandwidth_fluctuation=0.0,
    latency_jitter=0.0,
)

_MOST_NEAR, _MOST_KEPT, _NUM_KEYS = 1024, 4096, 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAhead:
    """How far to look ahead from proposed orders.

    Attributes
    ----------
    budget
        Plans that are judged at most, give or take the neighbours of one.
    width
        So many of the best orders are gone on from.
    num_refined
        Plans of which splits and depths are refined.
    order_fraction
        Share of the budget after which no more orders are looked at.
    most_behind
        Plans that cost so much more than the best are not refined: about 5 % of time.
    """

    budget: int = 4000
    width: int = 4
    num_refined: int = 24
    order_fraction: float = 0.6
    most_behind: float = 0.05


class Variations(NamedTuple):
    """Plans near one plan with their times [s] and costs: itself, its best depth, its best split.

    Those that do not fit are left out; the plans may be equal.
    """

    found: tuple[tuple[Plan, float, float], ...]
    num_judged: int


class PlanJudge(SteadyJudge):
    """A `SteadyJudge` that also splits layers unevenly, and looks ahead in compiled code."""

    def tools(self, job: Job) -> Tools:
        """What kernels judge by.

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
        return Tools(self._lanes, _RULES, self._record, job, self._programs)

    def fill_by(self, job: Job, plans: Plans, weights: Real) -> Real:
        """Split layers as `agents.kernels.quick_fill.fill_evenly` does; returns the levels. [s]"""
        levels_s = np.empty(len(plans.num_stages))
        fill_evenly(job, self._programs, plans, weights, levels_s)
        return levels_s

    def new_pool(self) -> Pool:
        """Make room for what a look-ahead finds."""
        return Pool(
            plans=self._empty(_MOST_KEPT),
            costs=np.full(_MOST_KEPT, np.inf),
            times_s=np.full(_MOST_KEPT, np.inf),
            state=np.zeros(_MOST_KEPT, dtype=np.int32),
            keys=np.zeros(_NUM_KEYS, dtype=np.int64),
            counts=np.zeros(3, dtype=np.int64),
        )

    def new_near(self) -> Near:
        """Make room for candidates."""
        return Near(
            plans=self._empty(_MOST_NEAR),
            costs=np.empty(_MOST_NEAR),
            times_s=np.empty(_MOST_NEAR),
            limits=np.empty(_MOST_NEAR),
            owner=np.empty(_MOST_NEAR, dtype=np.int64),
            ordered=np.empty(_MOST_NEAR, dtype=np.int64),
            starts=np.zeros(len(self.schedules) * self.most_stages + 1, dtype=np.int64),
            weights=np.ones(self.most_stages),
        )

    def _empty(self, num: int) -> Plans:
        domain, end_layer = np.zeros((2, num, self.most_stages), dtype=np.int32)
        num_stages, schedule = np.zeros((2, num), dtype=np.int32)
        return Plans(num_stages, schedule, domain, end_layer)

    def look_ahead(self, job: Job, aim: Aim, orders: Small, sizes: Small, how: LookAhead) -> Pool:
        """Judge proposed orders (N, K) and go on from the best; the pool holds all that was found.

        Raises
        ------
        ValueError
            See `tools`.
        """
        tools, pool, near = self.tools(job), self.new_pool(), self.new_near()
        limits = Limits(
            how.width,
            how.num_refined,
            int(how.order_fraction * how.budget),
            how.budget,
            how.most_behind,
        )
        explore(tools, aim, pool, near, orders, sizes, limits, PROPOSED)
        return pool

    def variations(self, job: Job, aim: Aim, plan: Plan, budget: int) -> Variations:
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
        costs = np.where(times_s < MISFIT, costs_of(aim, same, times_s), np.inf)
        best = int(costs.argmin())
        if costs[best] == np.inf:
            return Variations((), num)
        rows = [
            row for row in dict.fromkeys((int(written.schedule[0]), best)) if costs[row] < np.inf
        ]
        found = [(self.plan(same, row), float(times_s[row]), float(costs[row])) for row in rows]
        pool = self.new_pool()
        for target, source in zip(pool.plans, same, strict=True):
            target[0] = source[best]
        pool.costs[0], pool.times_s[0], pool.counts[0] = costs[best], times_s[best], 1
        limits = Limits(1, 1, 0, budget, math.inf)  # no other orders
        none = np.zeros((0, self.num_domains), dtype=np.int32)
        nobody = np.zeros(0, dtype=np.int32)
        explore(self.tools(job), aim, pool, self.new_near(), none, nobody, limits, ORDERS)
        found.append((self.plan(pool.plans, 0), float(pool.times_s[0]), float(pool.costs[0])))
        return Variations(tuple(found), num + int(pool.counts[1]))


def loaded_job(job: Job, loads: Sequence[DomainLoad]) -> Job:
    """Return the job where other jobs hold a part of the domains' memory."""
    if not loads:
        return job
    free = np.array([1.0 - load.memory_occupancy for load in loads])
    return job._replace(capacity_bytes=job.capacity_bytes * free)


def aim_of(topology: Topology, job: Job, preference: Preference) -> Aim:
    """Return what is least under a preference.

    Time and utilisation of all GPUs are the same: one over the other is what the job takes. Each
    border counts with both its links' prices for a byte over their mean, those without a price
    alike; tolls are such that an even pipeline over all domains at mean prices comes to 1.
    """
    num_domains = topology.num_domains
    prices = price_matrix(topology)
    tolls = (prices + prices.T) / (2.0 * max(1, num_domains - 1))
    can_follow: Flags = np.isfinite(job.wire_s) & np.isfinite(job.wire_s.T)
    np.fill_diagonal(can_follow, False)
    return Aim(
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


def costs_of(aim: Aim, plans: Plans, times_s: Real) -> Real:
    """What plans come to, see `agents.kernels.candidates.Aim`; ``inf`` where they do not fit."""
    here, there = plans.domain[:, :-1], plans.domain[:, 1:]
    is_border = np.arange(1, plans.domain.shape[1]) < plans.num_stages[:, np.newaxis]
    tolls = np.where(is_border, aim.tolls[here, there], 0.0).sum(axis=1)
    costs: Real = aim.time_weight * np.log(times_s) + aim.toll_weight * np.log1p(tolls)
    return costs
