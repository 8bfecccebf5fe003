"""Plans without their GPUs, and the quickest bound plan of a job whose microbatches are given."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from agents.decision.bound_plan import BoundPlan
from agents.search.bind import PlanBinder
from agents.search.bound_search import search_bound
from agents.search.chains import Chain
from agents.search.search import PlanRequest
from agents.trainers.trainer import Trainer
from des import (
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    Corrections,
    Placement,
    Plan,
    Topology,
    Workload,
)


def sketch_of(plan: Plan) -> Plan:
    """Return domains in order with all layers of each, as planners of perfect devices know them.

    Examples
    --------
    >>> round_and_round = Plan(placement=Placement.parse("0*2,1*3,0*1,1*3"))
    >>> str(sketch_of(round_and_round).placement)
    '0*3,1*6'
    """
    own = plan.schedule if not plan.parallelism else DEFAULT_SCHEDULE
    first, *others = (_gathered(one) for one in plan.placements)
    return replace(
        plan,
        placement=first,
        replicas=tuple(others),
        parallelism=(),
        sends="overlapped",
        schedule=own,
    )


def rebound_plan(binder: PlanBinder, plan: Plan) -> BoundPlan | None:
    """Bind a plan again inside its sites, whose layers stay, under its schedule if that can run.

    None where nothing can. What the binder knows of other schedules is left aside, for speed.
    """
    for schedules in ((plan.schedule,), binder.schedules):
        with suppress(ValueError):
            return replace(binder, schedules=schedules).bind(sketch_of(plan))
    return None


def quickest_bound(
    topology: Topology,
    workload: Workload,
    trainer: Trainer,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    among: Sequence[Chain] | None = None,
) -> BoundPlan:
    """Return the quickest plan that a trainer runs in the microbatches of a workload.

    The best plans of each kind by the search of all microbatches are bound to those given; with
    ``among`` those of pipelines of these chains alone.

    Raises
    ------
    InfeasiblePlacementError
        If none of them fits.
    """
    binder = PlanBinder(
        topology=topology,
        workload=workload,
        trainer=trainer,
        corrections=corrections,
        schedules=trainer.schedules,
    )
    request = PlanRequest(
        topology=topology, job=binder.job, trainer=trainer, corrections=corrections
    )
    rows = [row.bound for row in search_bound(request, among=among).rows]
    plans = [one.plan if one.workload == workload else sketch_of(one.plan) for one in rows]
    return quickest_binding(binder, plans)


def quickest_binding(binder: PlanBinder, plans: Sequence[Plan]) -> BoundPlan:
    """Bind plans and return the quickest.

    Raises
    ------
    ValueError
        If none can be bound, the reason of the first.
    """
    bound: list[BoundPlan] = []
    for plan in plans:
        with suppress(ValueError):  # no room, or copies that seldom exchange
            bound.append(binder.bind(plan))
    return min(bound, key=lambda one: one.step_s) if bound else binder.bind(plans[0])


def _gathered(placement: Placement) -> Placement:
    """All layers of each domain in a row, domains in the order in which they first come."""
    counts: dict[int, int] = {}
    for domain in placement.domain_of_layer:
        counts[domain] = counts.get(domain, 0) + 1
    return Placement.contiguous(list(counts), list(counts.values()))
