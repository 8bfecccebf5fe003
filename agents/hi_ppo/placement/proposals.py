"""Plans proposed for a situation: orders from the policy, made better by looking ahead."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Situation
from agents.hi_ppo.placement.decode import (
    DrawnOrders,
    decode_orders,
    depth_plans,
    seeded_noise,
)
from agents.hi_ppo.placement.features import MOST_DOMAINS, Features, features_of, seen_by
from agents.hi_ppo.placement.numpy_forward import quick_scores
from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
from agents.judge.candidates import CostObjective
from agents.judge.look_ahead import LookAhead, PlanJudge, aim_of, plan_costs
from agents.judge.steady_judge import MISFIT, RelayedJob
from des import Corrections, InfeasiblePlacementError, Plan, Topology, Workload
from des.base.checks import require_count, require_seed
from des.compiled.many.layout import Real, Small
from des.compiled.many.steady import Job

_MOST_RELAYED = 12
"""Orders that are judged where plans need relays: each is simulated, under all depths."""


@dataclass(frozen=True, kw_only=True)
class PlacementCandidates:
    """Plans to choose from, the best for the present first, each once.

    Attributes
    ----------
    iteration_s
        Iteration time of each on the network as it is, shaped (C,). [s]
    costs
        Cost of each under the preference, see `agents.judge.candidates.CostObjective`.
    num_judged
        Plans that were judged on the way.
    response_s
        Wall time by part: ``policy`` and ``look_ahead``. [s]
    """

    plans: tuple[Plan, ...]
    iteration_s: Real
    costs: Real
    num_judged: int
    response_s: dict[str, float] = field(default_factory=dict, compare=False)


Draw = Callable[[Features, int, int, int], DrawnOrders]
"""Draws orders by features, how long they may be, how many, and a seed."""


class Proposer:
    """Proposes plans; what does not change between situations of a job is worked out once."""

    most_domains = MOST_DOMAINS

    def __init__(
        self,
        policy: PlacementNet | None,
        *,
        look_ahead: LookAhead | None = None,
        draw: Draw | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Without a policy orders come from ``draw``, at random unless it is given.

        Raises
        ------
        ValueError
            If both are given.
        """
        if policy is not None and draw is not None:
            raise ValueError("proposer: draw must be None where a policy draws, got both")
        self.look_ahead = look_ahead or LookAhead()
        self._draw: Draw = draw or draw_at_random if policy is None else _make_draw(policy)
        self.policy, self._clock = policy, clock
        self._judges: dict[tuple[object, ...], PlanJudge] = {}
        self._base: tuple[PlanJudge, Topology, Job] | None = None

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> PlacementCandidates:
        """Propose plans for a situation; equal arguments give equal plans.

        The last plan is among them if it still fits, and so are the best plans that differ from it
        by depth alone, and by the split of layers and depth alone.

        Parameters
        ----------
        look_ahead
            None for that of the proposer.

        Raises
        ------
        ValueError
            If a number is out of range or a figure of the situation is not a number.
        InfeasiblePlacementError
            If no plan was found that fits.
        """
        how = look_ahead or self.look_ahead
        require_count("proposer", "look_ahead.num_samples", how.num_samples)
        require_count("proposer", "look_ahead.budget", how.budget)
        require_count("proposer", "num_plans", num_plans)
        require_seed("proposer", "seed", seed)
        begin_s = self._clock()
        judge = self.judge_of(situation.workload, situation.topology, situation.corrections)
        job = judge.job_of(leave_reserved_memory(situation))
        features = self.features_of(situation, judge, job)
        drawn = self._draw(features, judge.most_stages, how.num_samples, seed)
        drawn_s = self._clock()
        aim = aim_of(situation.topology, job, situation.preference)

        def judged(orders: DrawnOrders) -> PlacementCandidates:
            if isinstance(job, RelayedJob):
                return _relayed(judge, job, aim, orders, situation.last_plan)
            last_plan = situation.last_plan
            return _look_ahead(
                judge, job, aim, orders, how=how, last_plan=last_plan, num_plans=num_plans
            )

        found = judged(drawn)
        if not found.plans:  # the policy knows what state weighs, not what activations add
            found = judged(lengthened(drawn, judge.most_stages))
        if not found.plans:
            raise InfeasiblePlacementError(
                f"proposer: no plan of {found.num_judged} judged fits into the memory of "
                f"{situation.topology.num_domains} domains"
            )
        timings = {"policy": drawn_s - begin_s, "look_ahead": self._clock() - drawn_s}
        return replace(found, response_s=timings)

    def features_of(self, situation: Situation, judge: PlanJudge, job: Job) -> Features:
        """Features of a situation, as the policy sees them."""
        if self._base is None or self._base[0] is not judge or self._base[1] is not situation.base:
            self._base = judge, situation.base, judge.job_of(situation.base)
        features = features_of(
            situation.topology,
            self._base[2],
            job,
            loads=situation.loads,
            last_plan=situation.last_plan,
            preference=situation.preference,
            pays_bytes=situation.replacement.pays_bytes,
        )
        return features if self.policy is None else seen_by(self.policy.architecture, features)

    def judge_of(
        self, workload: Workload, topology: Topology, corrections: Corrections
    ) -> PlanJudge:
        """Judge of a job's plans on networks of this number of domains."""
        key = (
            workload.name,
            workload.num_layers,
            workload.num_microbatches,
            topology.num_domains,
            corrections,
        )
        known = self._judges.get(key)
        if known is None or (known.workload is not workload and known.workload != workload):
            known = PlanJudge(workload, topology.num_domains, corrections=corrections)
            self._judges[key] = known
        return known


def _make_draw(policy: PlacementNet) -> Draw:
    def draw(features: Features, most_stages: int, count: int, seed: int) -> DrawnOrders:
        noise = seeded_noise(count, len(features.nodes), seed)
        return decode_orders(quick_scores(policy, features), features.facts, noise, most_stages)

    return draw


def draw_at_random(features: Features, most_stages: int, count: int, seed: int) -> DrawnOrders:
    """Draw orders of any length and domains, uniformly."""
    rng = np.random.default_rng(seed)
    num_domains = len(features.nodes)
    domains = np.zeros((count, num_domains), dtype=np.int32)
    sizes = rng.integers(1, most_stages + 1, size=count).astype(np.int32)
    sizes[0] = most_stages
    for row, size in enumerate(sizes.tolist()):
        domains[row, :size] = rng.permutation(num_domains)[:size]
    return DrawnOrders(domains, sizes, np.zeros(count, dtype=np.float32))


def lengthened(drawn: DrawnOrders, most_stages: int) -> DrawnOrders:
    """Return the orders with the domains that they leave out behind them, as many as can be.

    Examples
    --------
    >>> short = DrawnOrders(
    ...     np.array([[2, 0, 0, 0]], np.int32), np.array([1], np.int32), np.zeros(1, np.float32)
    ... )
    >>> lengthened(short, 3).domains[0, :3].tolist()
    [2, 0, 1]
    """
    domains = drawn.domains.copy()
    num_domains = domains.shape[1]
    for row, size in zip(domains, drawn.sizes.tolist(), strict=True):
        used = row[:size].tolist()
        row[size:] = [domain for domain in range(num_domains) if domain not in used]
    sizes = np.full_like(drawn.sizes, min(most_stages, num_domains))
    return DrawnOrders(domains, sizes, drawn.log_probs)


def _look_ahead(
    judge: PlanJudge,
    job: Job,
    aim: CostObjective,
    drawn: DrawnOrders,
    *,
    how: LookAhead,
    last_plan: Plan | None,
    num_plans: int,
) -> PlacementCandidates:
    """Look ahead from drawn orders and that of the last plan, which is varied too."""
    orders, sizes = drawn.domains, drawn.sizes
    known = last_plan if last_plan is not None and judge.can_hold(last_plan) else None
    if known is not None:
        orders, sizes = _with_order(orders, sizes, known)
    pool = judge.look_ahead(job, aim, orders, sizes, how)
    count = int(pool.counts[0])
    rows = np.argsort(pool.costs[:count], kind="stable")[:num_plans]
    plans = [judge.plan(pool.plans, row) for row in rows.tolist()]
    times_s, costs = pool.times_s[rows].tolist(), pool.costs[rows].tolist()
    num_judged = int(pool.counts[1])
    if known is not None:
        near = judge.variations(job, aim, known, how.budget // 4)
        num_judged += near.num_judged
        for plan, time_s, cost in near.found:
            if plan not in plans:
                plans.append(plan)
                times_s.append(time_s)
                costs.append(cost)
    order = np.argsort(costs, kind="stable")
    return PlacementCandidates(
        plans=tuple(plans[row] for row in order.tolist()),
        iteration_s=np.array(times_s)[order],
        costs=np.array(costs)[order],
        num_judged=num_judged,
    )


def _with_order(orders: Small, sizes: Small, plan: Plan) -> tuple[Small, Small]:
    """Add the order of a plan behind others."""
    own = np.zeros((1, orders.shape[1]), dtype=np.int32)
    stages = plan.placement.stages
    own[0, : len(stages)] = [stage.domain for stage in stages]
    return np.concatenate([orders, own]), np.append(sizes, np.int32(len(stages)))


def _relayed(
    judge: PlanJudge,
    job: RelayedJob,
    aim: CostObjective,
    drawn: DrawnOrders,
    last_plan: Plan | None,
) -> PlacementCandidates:
    """Judge drawn orders as they are, where looking ahead would take seconds."""
    few = DrawnOrders(
        drawn.domains[:_MOST_RELAYED], drawn.sizes[:_MOST_RELAYED], drawn.log_probs[:_MOST_RELAYED]
    )
    plans = depth_plans(few, judge.most_stages, range(len(DEPTHS)))
    judge.fill(job, plans)
    found = {judge.plan(plans, row): row for row in range(len(plans.num_stages) - 1, -1, -1)}
    listed = list(reversed(found))
    if last_plan is not None and judge.can_hold(last_plan) and last_plan not in found:
        listed.append(last_plan)
    written = judge.plans_of(listed)
    times_s = judge.scores(job, written)
    costs = np.where(times_s < MISFIT, plan_costs(aim, written, times_s), np.inf)
    order = [row for row in np.argsort(costs, kind="stable").tolist() if costs[row] < np.inf]
    return PlacementCandidates(
        plans=tuple(listed[row] for row in order),
        iteration_s=times_s[order],
        costs=costs[order],
        num_judged=len(listed),
    )
