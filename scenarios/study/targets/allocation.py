"""Allocation error: distance of the layer shares to those of a near-optimal plan."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.decision.held import held_topology
from des import NO_CORRECTIONS, Placement, Plan
from des.compiled.simulate import simulate_compiled
from scenarios.study.targets.measurement_size import SchedulerColumn, by_draw, independent
from scenarios.study.targets.near_optimal import NEAR, NearOptimal, near_optimal
from scenarios.study.targets.references import best_known_plan
from scenarios.study.targets.target import Goal, Target, measured
from scenarios.suites import SuiteWorld

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
    shares = independent(errors)
    value, interval = measured(shares)
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
            value=value,
            interval=interval,
            values=tuple(shares),
            notes=notes,
        )
    ]


def error_of(column: SchedulerColumn, world: SuiteWorld, draw: int) -> AllocationError | None:
    """Measure the first decision of a draw; None where no optimum is proven."""
    topology, scope = held_topology(world, draw, 0), column.scope

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
