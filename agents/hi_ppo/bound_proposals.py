"""Look-ahead of policies over bound plans: the quickest that a trainer makes of their proposals."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agents.decision.bound_plan import BoundPlan
from agents.decision.situation import Preference, Situation
from agents.hi_ppo.plan_source import ProposesPlans
from agents.hi_ppo.proposing import SWEEP, first_situation
from agents.judge.look_ahead import LookAhead
from agents.search.bind import PlanBinder
from agents.search.bound_rows import row_in_force
from agents.search.bound_search import BoundFound, best_of_kinds, search_bound
from agents.search.chains import Chain
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.search.sketches import sketch_of
from des import InfeasiblePlacementError, Plan

_NUM_SKETCHES, _MOST_BOUND = 64, 4
"""Sketches proposed for each size of microbatches, and those bound with their own layers."""

Sketch = Callable[[Situation], Sequence[Plan]]
"""Proposes plans of perfect devices, the best first; an error where none fits."""


def search_proposed(
    request: PlanRequest,
    sketch: Sketch,
    objective: PlanObjective | None = None,
    *,
    in_force: BoundPlan | None = None,
) -> BoundFound:
    """Rank the bound plans of what policies propose, as `search_bound` ranks those that it finds.

    Sketches, plans of perfect devices, are proposed for each size of microbatches. Their orders of
    domains are searched for the layers, degrees and microbatches that suit the trainer; the best
    sketches are also bound with the layers that they have.

    Raises
    ------
    InfeasiblePlacementError
        If no sketch fits, or none as bound.
    ValueError
        If there are more domains than the policies take, or as `search_bound`.
    """
    aim = objective or PlanObjective()
    sketches = _sketches(request, sketch, aim.preference)
    found = search_bound(request, aim, in_force=in_force, among=sketched_orders(sketches))
    binder = PlanBinder(
        topology=request.topology,
        workload=found.best.bound.workload,
        trainer=request.trainer,
        corrections=request.corrections,
        schedules=request.schedules or request.trainer.schedules,
        model=request.job.model,
    )
    bound = bindings(binder, sketches[:_MOST_BOUND])
    rows = [row for one in bound if (row := row_in_force(request, one)) is not None]
    kept = [row for row in rows if aim.allows(row.figures)]
    return replace(
        found,
        rows=best_of_kinds(aim, [*found.rows, *kept]),
        num_judged=found.num_judged + len(bound),
    )


def sketching(proposer: ProposesPlans, *, look_ahead: LookAhead = SWEEP, seed: int = 0) -> Sketch:
    """Return what sketches as a policy proposes.

    A network of more domains than it takes is refused with a ValueError.
    """

    def sketch(situation: Situation) -> tuple[Plan, ...]:
        count, most = situation.topology.num_domains, proposer.most_domains
        if count > most:
            raise ValueError(
                f"policies: network must have at most {most} domains, got {count}; "
                "the search takes any number"
            )
        own = proposer.propose(situation, look_ahead=look_ahead, num_plans=_NUM_SKETCHES, seed=seed)
        return own.plans

    return sketch


def _sketches(request: PlanRequest, sketch: Sketch, preference: Preference) -> tuple[Plan, ...]:
    """Sketches for all sizes of microbatches, each once, the best of every size first.

    Those under ``full`` recomputation where none fits without.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, for the first size.
    """
    job, trainer = request.job, request.trainer
    ranked: dict[Plan, int] = {}
    refusals: list[InfeasiblePlacementError] = []
    for recomputation in (one for one in job.recomputations if one in trainer.recomputations):
        for size in (one for one in request.microbatch_sizes if job.num_sequences % one == 0):
            workload = job.workload(size, recomputation, trainer.gradient_precision)
            situation = first_situation(request.topology, workload, preference)
            try:
                found = sketch(replace(situation, corrections=request.corrections))
            except InfeasiblePlacementError as error:
                refusals.append(error)
                continue
            for rank, plan in enumerate(found):
                ranked[plan] = min(rank, ranked.get(plan, rank))
        if ranked:
            break
    if not ranked:
        raise refusals[0]
    return tuple(sorted(ranked, key=ranked.__getitem__))


def sketched_orders(sketches: Sequence[Plan]) -> tuple[Chain, ...]:
    """Domains of each pipeline in order, each order once."""
    orders = (
        tuple(stage.domain for stage in placement.stages)
        for sketch in sketches
        for placement in sketch_of(sketch).placements
    )
    return tuple(dict.fromkeys(orders))


def bindings(binder: PlanBinder, sketches: Sequence[Plan]) -> tuple[BoundPlan, ...]:
    """Bind the sketches that can be bound; the quickest first."""
    found: dict[Plan, BoundPlan] = {}
    for sketch in sketches:
        try:
            bound = binder.bind(sketch)
        except ValueError:
            continue
        found[bound.plan] = bound
    return tuple(sorted(found.values(), key=lambda one: one.step_s))
