"""Bound plans that a trainer makes of what policies propose: by look-ahead, epoch by epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from agents.decision.bound_plan import BoundPlan
from agents.decision.problem import PlanningProblem
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Preference, Situation
from agents.hi_ppo.plan_source import ProposesPlans
from agents.hi_ppo.proposing import SWEEP, first_situation
from agents.judge.look_ahead import LookAhead, PlanJudge
from agents.planners.choice.depth import with_best_schedule
from agents.search.bind import PlanBinder
from agents.search.bound_rows import row_in_force
from agents.search.bound_search import BoundFound, best_of_kinds, search_bound
from agents.search.chains import Chain
from agents.search.objective import PlanObjective
from agents.search.schedule_choice import survey_schedules
from agents.search.search import PlanRequest
from agents.search.sketches import sketch_of
from agents.search.trainer_search import TrainerSearch
from des import Corrections, InfeasiblePlacementError, Plan, Topology, Workload
from des.compiled.simulate import simulate_compiled

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
    bound = bindings(binder.bind, sketches[:_MOST_BOUND])
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


def bindings(bind: Callable[[Plan], BoundPlan], sketches: Sequence[Plan]) -> tuple[BoundPlan, ...]:
    """Bind the sketches that can be bound; the quickest first."""
    found: dict[Plan, BoundPlan] = {}
    for sketch in sketches:
        try:
            bound = bind(sketch)
        except ValueError:
            continue
        found[bound.plan] = bound
    return tuple(sorted(found.values(), key=lambda one: one.step_s))


def plan_bound(search: TrainerSearch, situation: Situation, seed: int) -> Plan:
    """Plan by the search of bound plans, which draws nothing, on the network as it is.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits.
    """
    topology, workload = leave_reserved_memory(situation), situation.workload
    return search.quickest(topology, workload, situation.corrections).plan


@dataclass(frozen=True, kw_only=True)
class BoundPlans:
    """Bound plans proposed, the quickest first."""

    plans: tuple[Plan, ...]


@dataclass(frozen=True, kw_only=True)
class _PassesOn:
    """Proposer around another one, whose look-ahead and judge it has.

    The judge leaves plans that it does not hold, under other schedules or bound, to the simulator.
    """

    inner: ProposesPlans

    @property
    def look_ahead(self) -> LookAhead:
        """Look-ahead of a decision but the first."""
        return self.inner.look_ahead

    @property
    def most_domains(self) -> int:
        """Largest number of domains that plans are proposed for."""
        return self.inner.most_domains

    def judge_of(
        self, workload: Workload, topology: Topology, corrections: Corrections
    ) -> PlanJudge:
        """Judge of a job."""
        return self.inner.judge_of(workload, topology, corrections)


@dataclass(frozen=True, kw_only=True)
class ScheduledProposer(_PassesOn):
    """Proposes what another does, each plan also under the quickest of some schedules."""

    schedules: tuple[str, ...]

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> BoundPlans:
        """Propose plans for a situation, the quickest schedule of each before its own."""
        found = self.inner.propose(
            situation, look_ahead=look_ahead, num_plans=num_plans, seed=seed
        ).plans[:num_plans]
        problem = PlanningProblem(
            topology=leave_reserved_memory(situation),
            workload=situation.workload,
            corrections=situation.corrections,
            simulator=simulate_compiled,
        )
        rng = np.random.default_rng(seed)
        scheduled = [
            with_best_schedule(partial(_given, one), self.schedules)(problem, rng) for one in found
        ]
        return BoundPlans(plans=tuple(dict.fromkeys([*scheduled, *found])))


def _given(plan: Plan, problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    return plan


@dataclass(frozen=True, kw_only=True)
class BoundProposer(_PassesOn):
    """Proposes what a trainer runs: another's proposals bound, the quickest first."""

    search: TrainerSearch

    def propose(
        self,
        situation: Situation,
        *,
        look_ahead: LookAhead | None = None,
        num_plans: int = 8,
        seed: int = 0,
    ) -> BoundPlans:
        """Bind proposals for a situation; none where none can be bound."""
        last = situation.last_plan
        seen = replace(situation, last_plan=None if last is None else sketch_of(last))
        found = self.inner.propose(seen, look_ahead=look_ahead, num_plans=num_plans, seed=seed)
        binder = self.search.binder(
            leave_reserved_memory(situation),
            situation.workload,
            situation.corrections,
            survey_schedules(self.search.trainer, ()),
        )
        bound = bindings(partial(self.search.bind, binder), found.plans[:num_plans])
        return BoundPlans(plans=tuple(one.plan for one in bound))
