"""Allocation error: distance of the layer shares to those of a near-optimal plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.frozen_network import freeze_topology
from agents.judge.search_judge import Judge
from agents.judge.splits import walk_splits
from agents.planners.search.search import search
from agents.planners.search.search_moves import Order, all_orders
from des import NO_CORRECTIONS, Placement, Plan, Topology, Workload
from des.compiled.many.steady import Plans
from des.compiled.simulate import simulate_compiled
from scenarios.study.targets.measurement_size import SchedulerColumn, by_draw, independent
from scenarios.study.targets.references import best_known_plan
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.suites import SuiteWorld

NEAR = 1e-3
"""Within this share of the best time a plan is as good."""

MOST_PLANS = 200_000
"""Most plans that a bound may leave over; a case with more counts as too large."""

_MOST_STEPS = 200_000_000  # of one walk
_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class NearOptimal:
    """The proven best time, and every plan within `NEAR` of it; the best plan comes first."""

    makespan_s: float
    plans: tuple[Plan, ...]


def near_optimal(
    topology: Topology,
    workload: Workload,
    *,
    schedules: Sequence[str] = DEPTHS,
    near: float = NEAR,
    max_judged: int | None = None,
) -> NearOptimal | None:
    """Enumerate the plans within a share of the proven best; None where there is no proof.

    One stage per domain, links that stand still; up to 6 domains, see
    `agents.planners.search.search`.

    Parameters
    ----------
    max_judged
        Budget of the proof, in plans.

    Notes
    -----
    All splits of all orders under all schedules of which no lower bound is above the limit are
    judged (`agents.judge.splits`), so none within it is missed.
    """
    found = search(topology, workload, schedules=schedules, is_exact=True, max_judged=max_judged)
    if not found.is_proven:
        return None
    judge = Judge(
        topology,
        workload,
        NO_CORRECTIONS,
        schedules=schedules,
        simulator=simulate_compiled,
        max_judged=MOST_PLANS,
    )
    limit_s = found.makespan_s * (1.0 + near)
    near_plans: list[tuple[float, int, Plan]] = []
    for order in all_orders(topology.num_domains, judge.most_stages):
        if not all(judge.can_reach[pair] for pair in pairwise(order)):
            continue
        for plans in _plans_below(judge, order, limit_s):
            if plans is None:
                return None
            scores = judge.scores(plans)
            if judge.num_left <= 0:
                return None
            for row in np.flatnonzero(scores <= limit_s).tolist():
                near_plans.append((float(scores[row]), len(near_plans), judge.plan(plans, row)))
    near_plans.sort(key=lambda each: each[:2])
    return NearOptimal(makespan_s=found.makespan_s, plans=tuple(plan for *_, plan in near_plans))


def _plans_below(judge: Judge, order: Order, limit_s: float) -> Iterator[Plans | None]:
    """Yield the plans over an order of which no bound is above the limit; None if too many."""
    size = len(order)
    row = np.zeros((1, judge.most_stages), dtype=np.int32)
    row[0, :size] = order
    ends = np.zeros((_AT_ONCE, judge.most_stages), dtype=np.int32)
    for schedule in range(len(judge.schedules)):
        walk = judge.walk(order, schedule)
        while walk.place[0] >= 0:
            count = walk_splits(walk, limit_s, _MOST_STEPS, ends)
            if walk.place[1] >= _MOST_STEPS:
                yield None
                return
            yield Plans(
                num_stages=np.full(count, size, dtype=np.int32),
                schedule=np.full(count, schedule, dtype=np.int32),
                domain=np.repeat(row, count, axis=0),
                end_layer=ends[:count].copy(),
            )


DOMAINS = (4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationError:
    """A plan against all that are as good as the best.

    Attributes
    ----------
    share_error
        Mean over all domains of the difference of layer shares to the nearest of them.
    has_right_domains
        Whether one of them uses the same domains.
    gap
        Iteration time over the best, less 1.
    """

    share_error: float
    has_right_domains: bool
    gap: float


def share_error(plan: Plan, others: Sequence[Plan], num_domains: int) -> float:
    """Mean over domains of the difference in layer shares to the nearest plan.

    Examples
    --------
    >>> plans = [Plan(placement=Placement.parse(text)) for text in ("0*2,1*2", "0*3,1*1", "1*4")]
    >>> share_error(plans[0], plans[1:], 2)
    0.25
    """
    own = _shares(plan, num_domains)
    return min(float(np.abs(own - _shares(one, num_domains)).mean()) for one in others)


def _shares(plan: Plan, num_domains: int) -> np.ndarray:
    layers: Placement = plan.placement
    counts = np.bincount(layers.domain_of_layer, minlength=num_domains)
    return np.asarray(counts / len(layers.domain_of_layer))


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the allocation error on worlds that can be solved exactly."""
    scope = column.scope
    worlds = scope.worlds("eval_static", scope.sizes.num_static, DOMAINS)
    known = list[AllocationError]()

    def error(world: SuiteWorld, draw: int) -> float | None:
        found = error_of(column, world, draw)
        if found is None:
            return None
        known.append(found)
        return found.share_error

    errors = by_draw(scope, worlds, error)
    right = [one.share_error for one in known if one.has_right_domains]
    num_draws = len(worlds) * scope.sizes.num_draws
    notes = (
        f"{len(known)} of {num_draws} draws; the others have no proven optimum in budget"
        if worlds
        else f"no world of at most {max(DOMAINS)} domains",
        f"wrong sets of domains: {len(known) - len(right)} of {len(known)}; "
        f"of the right ones alone the error is {_percent(right)}",
        f"gap in time: {_percent([one.gap for one in known])}",
    )
    return [
        Target(
            name="allocation error",
            definition="mean over domains of |layer share - that of the nearest plan "
            f"within {100 * NEAR:g} % of the optimum|",
            reference="exact solver and all plans as good"
            if scope.trainer.is_ideal
            else "the best plan that searches find for the trainer, and the first plan itself "
            "where it is as good; nothing is proven",
            goal=Goal(sense="below", target=0.05, stretch=0.02),
            **mean_fields(independent(errors)),
            notes=notes,
        )
    ]


def error_of(column: SchedulerColumn, world: SuiteWorld, draw: int) -> AllocationError | None:
    """Measure the first decision of a draw; None where no optimum is proven."""
    topology, scope = freeze_topology(world, draw, 0), column.scope

    def proven() -> NearOptimal | None:
        if scope.trainer.is_ideal:
            return near_optimal(topology, world.workload)
        plan = best_known_plan(scope, topology, world.workload)
        best_s = simulate_compiled(topology, world.workload, plan, NO_CORRECTIONS).makespan_s
        return NearOptimal(makespan_s=best_s, plans=(plan,))

    best = scope.once(("near optimal", world.name, draw), proven)
    if best is None:
        return None
    plan = column.still_plan(world, draw)
    result = simulate_compiled(topology, world.workload, plan, NO_CORRECTIONS)
    is_near = result.makespan_s <= (1.0 + NEAR) * best.makespan_s
    others = best.plans if scope.trainer.is_ideal or not is_near else (*best.plans, plan)
    used = set(plan.placement.domain_of_layer)
    return AllocationError(
        share_error=share_error(plan, others, topology.num_domains),
        has_right_domains=any(used == set(one.placement.domain_of_layer) for one in others),
        gap=result.makespan_s / best.makespan_s - 1.0,
    )


def _percent(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):.2f} %" if len(values) else "-"
