"""The plan of a run for people: site by site, as the trainer runs it or among perfect devices."""

from dataclasses import replace

from agents.answer.figures import duration
from agents.answer.sections import Section
from agents.trainers.table import trainer_named
from des import InfeasiblePlacementError, Plan, lower
from des.compiled.simulate import simulate_compiled
from des.plan.plan_texts import PERFECT_DEVICES, pipelines_text
from des.views.plan_views import PlanViews, plan_views
from scenarios.train.east_west.episodes import Case
from scenarios.train.east_west.trained_plans import TrainedPlans

BoundOrNot = TrainedPlans | InfeasiblePlacementError | None
"""Bound plans of a trainer, or why none fits; None among perfect devices."""


def plan_sections(case: Case, plan: Plan, bound: BoundOrNot) -> tuple[Section, ...]:
    """Return the sections on the plan, those of perfect devices where nothing is bound."""
    if isinstance(bound, TrainedPlans):
        return bound.sections
    section = _perfect_section(case, plan)
    return (section if bound is None else replace(section, notes=(*section.notes, str(bound))),)


def _perfect_section(case: Case, plan: Plan) -> Section:
    world = case.world
    result = simulate_compiled(world.topology, world.workload, plan, case.corrections)
    names = tuple(domain.name for domain in world.topology.domains)
    rows = tuple(
        (
            names[stage.domain],
            f"{stage.first_layer}-{stage.first_layer + stage.num_layers - 1}",
        )
        for stage in plan.placement.stages
    )
    notes = (
        f"{duration(result.makespan_s)} an iteration at base figures; schedule {plan.schedule}",
        f"as text: {pipelines_text(plan, names)}",
        f"{PERFECT_DEVICES}; eastwest decide finds what one can run",
    )
    return Section(title="Plan", head=("domain", "layers"), rows=rows, notes=notes)


def drawn_plan(case: Case, plan: Plan, bound: BoundOrNot) -> PlanViews:
    """Draw the run's plan, as bound where it is."""
    topology, workload, title = case.world.topology, case.world.workload, "The chosen plan"
    if isinstance(bound, TrainedPlans):
        chosen = bound.chosen.bound
        workload, plan = chosen.workload, chosen.plan
        title = f"{title} as {trainer_named(bound.trainer).title} runs it"
    return plan_views(
        topology,
        lower(topology, workload, plan, case.corrections),
        case.corrections,
        title=f"{title}, on links at base figures",
    )
