"""Plans without their GPUs, and the quickest bound plan of a job whose microbatches are given."""

from contextlib import suppress
from dataclasses import replace

from agents.decision.bound_plan import BoundPlan
from agents.search.bind import PlanBinder
from agents.search.bound_search import search_bound
from agents.search.shared_parts import SharedParts
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
    first, *others = (_gather(one) for one in plan.placements)
    return replace(
        plan,
        placement=first,
        replicas=tuple(others),
        parallelism=(),
        sends="overlapped",
        schedule=own,
    )


def rebind_plan(binder: PlanBinder, plan: Plan) -> BoundPlan | None:
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
    shared: SharedParts | None = None,
) -> BoundPlan:
    """Return the quickest plan that a trainer runs in the microbatches of a workload.

    Pipelines and copies that exchange in every step are searched; ``shared`` is as in
    `search_bound`.

    Raises
    ------
    InfeasiblePlacementError
        If none of them fits.
    """
    binder = PlanBinder(
        topology=topology, workload=workload, trainer=trainer, corrections=corrections
    )
    request = replace(binder.request, outer_modes=())
    return search_bound(request, is_best_alone=True, shared=shared).best.bound


def _gather(placement: Placement) -> Placement:
    """All layers of each domain in a row, domains in the order in which they first come."""
    counts: dict[int, int] = {}
    for domain in placement.domain_of_layer:
        counts[domain] = counts.get(domain, 0) + 1
    return Placement.contiguous(list(counts), list(counts.values()))
