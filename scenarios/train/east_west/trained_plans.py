"""Bound plans on the world of a run, and for people, site by site."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from agents.answer.bound_page import where_section
from agents.answer.number_texts import duration, figure
from agents.answer.sections import Section
from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import write_document
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.bound_proposals import bindings, search_proposed, sketching
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies
from agents.search.bind import PlanBinder
from agents.search.bound_rows import BoundRow, row_in_force
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import Corrections, InfeasiblePlacementError, Placement, Plan, lower
from des.compiled.simulate import simulate_compiled
from des.plan.plan_texts import PERFECT_DEVICES, pipelines_text
from des.views.plan_views import PlanViews, plan_views
from scenarios.suites import SuiteWorld
from scenarios.train.east_west.episodes import Case
from scenarios.train.east_west.worth import THIS_RUN

SEARCH, UNIFORM, SINGLE = "search", "uniform", "single domain"
"""Rows beside that of the run: the search of bound plans, even layers over all domains in the
order of the file, and the quickest site alone."""

PLAN_JSON = "plan.json"
"""Within the run folder: the document of the run's plan."""


@dataclass(frozen=True, kw_only=True)
class TrainedPlans:
    """Bound plans of one job on one network, by the title of their row; misfits are left out.

    Attributes
    ----------
    perfect_s
        Time of the run's plan among perfect devices, which it has learnt with. [s]
    """

    trainer: str
    rows: Mapping[str, BoundRow]
    perfect_s: float

    @property
    def chosen(self) -> BoundRow:
        """The plan of the run."""
        return self.rows[THIS_RUN]

    @property
    def document(self) -> dict[str, object]:
        """Document of the run's plan, which ``eastwest simulate --plan`` repeats."""
        return write_document(self.chosen.bound)

    @property
    def steps_s(self) -> dict[str, float]:
        """Time of a step under each plan. [s]"""
        return {name: row.bound.step_s for name, row in self.rows.items()}

    @property
    def sections(self) -> tuple[Section, ...]:
        """The run's plan site by site, and what a step takes under all plans."""
        title = trainer_named(self.trainer).title
        where = replace(where_section(self.chosen), title=f"Plan, as {title} runs it")
        head = ("plan", "s a step", "against this run", "schedule", "domains")
        misfits = [f"{name}: no plan fits" for name in (UNIFORM, SINGLE) if name not in self.rows]
        note = (
            f"among perfect devices, one a domain, the plan of this run takes "
            f"{figure(self.perfect_s)} s: so all episodes below are judged, and so it has learnt"
        )
        rows = tuple(self._cells(name) for name in self.rows)
        return where, Section(
            title=f"A step with {title}", head=head, rows=rows, notes=(*misfits, note)
        )

    def _cells(self, name: str) -> tuple[str, ...]:
        row = self.rows[name]
        own_s, chosen_s = row.bound.step_s, self.chosen.bound.step_s
        against = "" if name == THIS_RUN else f"{100.0 * (own_s / chosen_s - 1.0):+.2f} %"
        domains = row.bound.topology.domains
        sites = " | ".join(
            ", ".join(domains[site].name for site in chain) for chain in row.candidate.chains
        )
        return name, figure(own_s), against, row.bound.plan.schedule, sites


def trained_plans(
    world: SuiteWorld,
    job: TrainingJob,
    policies: Policies,
    trainer: str,
    *,
    corrections: Corrections,
    perfect_s: float,
) -> TrainedPlans:
    """Bind what the policies propose at base figures, and what they are compared with.

    Raises
    ------
    InfeasiblePlacementError
        If the trainer has no plan that fits.
    """
    request = PlanRequest(
        topology=replace(world.topology, movement=None),
        job=job,
        trainer=trainer_named(trainer),
        corrections=corrections,
    )
    proposed = search_proposed(request, sketching(Proposer(policies.placement)))
    searched = search_bound(request)
    rows = {THIS_RUN: proposed.best, SEARCH: searched.best}
    for row in _even_rows(request, (proposed.best, searched.best)):
        rows[UNIFORM] = row
    for row in searched.rows:
        if row.kind == "single":
            rows[SINGLE] = row
    return TrainedPlans(trainer=trainer, rows=rows, perfect_s=perfect_s)


def _even_rows(request: PlanRequest, beside: tuple[BoundRow, ...]) -> Iterator[BoundRow]:
    """The row of even layers over all domains, in the microbatches of another that suit it best."""
    num_domains = request.topology.num_domains
    found: list[BoundPlan] = []
    for workload in dict.fromkeys(row.bound.workload for row in beside):
        if workload.num_layers < num_domains:
            continue
        binder = PlanBinder(
            topology=request.topology,
            workload=workload,
            trainer=request.trainer,
            corrections=request.corrections,
            schedules=request.trainer.schedules,
            model=request.job.model,
        )
        even = Plan(placement=Placement.even(num_domains, workload.num_layers))
        found += bindings(binder.bind, [even])
    for bound in sorted(found, key=lambda one: one.step_s)[:1]:
        row = row_in_force(request, bound)
        assert row is not None, "it has just been bound"
        yield row


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
