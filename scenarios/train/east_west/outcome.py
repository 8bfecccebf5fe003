"""Outcome of a run: the question, the plan, the table, the targets, what learning was worth."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd
from rich.console import Console

from agents.answer.number_texts import duration
from agents.answer.sections import Section, as_text
from agents.decision.run_epochs import epoch_situation
from agents.decision.situation import TIME_ONLY
from agents.decision.training_job import TrainingJob
from agents.hi_ppo.policies import Policies, shipped
from agents.trainers.table import trainer_named
from des import STEADY, InfeasiblePlacementError, Law, Plan, UniformLaw
from des.base.document import DOCUMENT
from des.base.parallel_map import ParallelMap
from des.compiled.simulate import simulate_compiled
from des.dynamics import kind_of
from des.views.plan_views import PlanViews
from scenarios.frame.files import write_csv, write_json
from scenarios.frame.outputs import OutputChoice, write_outputs
from scenarios.frame.report import Repetition, Report
from scenarios.frame.run_folder import RunFolder
from scenarios.study.targets.after_training import (
    SIZES,
    RunTargets,
    policy_column,
    targets_of_column,
)
from scenarios.study.targets.measurement_size import Scope
from scenarios.study.targets.target import Target
from scenarios.study.targets.target_table import MeasuredTargets
from scenarios.suites import SuiteWorld
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.curves import stage_curves
from scenarios.train.east_west.episodes import Case, Contender, judge_once, judged_rows
from scenarios.train.east_west.table import run_targets, table_sections, value_sections
from scenarios.train.east_west.trained_plans import (
    PLAN_JSON,
    BoundOrNot,
    TrainedPlans,
    drawn_plan,
    plan_sections,
    trained_plans,
)
from scenarios.train.east_west.weights import SelectedWeights
from scenarios.train.east_west.worlds import CONGESTED, OWN
from scenarios.train.east_west.worth import (
    CONTROL_ROWS,
    FOR_TIME,
    SHIPPED_ROW,
    THIS_RUN,
    differences_of,
    worth_sentence,
)
from scenarios.train.training_config import PROG

_MOST_OVER_SHIPPED = {"shipped": 0.0, "scratch": 0.01}
_ELSEWHERE = "All targets, on suites of worlds: python -m scenarios.kpi --checkpoint "


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """A finished training, and what it is judged on."""

    config: HiPpoConfig
    cases: tuple[Case, ...]
    kept: SelectedWeights
    fidelity: tuple[str, ...]
    choice: OutputChoice = field(default_factory=OutputChoice)

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """Policies of the table."""
        for_time = Contender(name=FOR_TIME, file=self.kept.file, is_for_time=True)
        return (
            *(() if self.config.preference == TIME_ONLY else (for_time,)),
            Contender(name=THIS_RUN, file=self.kept.file),
            Contender(name=SHIPPED_ROW, file=shipped()),
            *(
                Contender(name=name, file=self.kept.file, control=control)
                for name, control in CONTROL_ROWS.items()
            ),
        )

    @property
    def worlds(self) -> dict[str, SuiteWorld]:
        """World of each block."""
        return {case.block: case.world for case in self.cases}


def judge_and_report(
    outcome: RunOutcome, folder: RunFolder, at_work: ParallelMap, console: Console
) -> None:
    """Judge all methods on the held-out episodes; print what was found, write the run's files."""
    with console.status(f"judging {len(outcome.cases)} held-out episodes"):
        judge = partial(judged_rows, outcome.contenders)
        found = judge_once(judge, outcome.contenders, outcome.cases, folder, at_work)
        rows = pd.concat(found, ignore_index=True)
    write_csv(folder.evaluation_csv, rows)
    plan = _plan(outcome)
    with console.status(f"binding plans for {outcome.config.trainer}"):
        bound = _bound(outcome, plan)
    if isinstance(bound, TrainedPlans):
        write_json(folder.path / PLAN_JSON, bound.document)
    sections = (
        _question(outcome),
        *plan_sections(_own_case(outcome), plan, bound),
        *table_sections(rows, _describe(outcome)),
        *value_sections(rows, outcome.config.objective),
    )
    for line in ("", as_text(sections, console.width), "", *_notes(outcome)):
        console.print(line, soft_wrap=True, markup=False)
    with console.status("measuring the targets; --no-kpi leaves those of the documents out"):
        targets = _targets(outcome, rows)
    write_json(folder.path / "targets.json", targets.to_plain())
    targets.show(console, explained=())
    DOCUMENT.add(out=folder.path, targets=targets.to_plain(), episodes=rows)
    if isinstance(bound, TrainedPlans):
        DOCUMENT.add(trainer=bound.trainer, step_s=bound.steps_s, perfect_s=bound.perfect_s)
    worth = worth_sentence(differences_of(rows))
    console.print(worth, soft_wrap=True, markup=False)
    report = _report(
        outcome,
        folder,
        drawn=drawn_plan(_own_case(outcome), plan, bound),
        sections=sections,
        targets=targets,
        worth=worth,
    )
    write_outputs(folder.path, outcome.choice, report, {"evaluation": rows})
    console.print(f"Report: {folder.report_html}", soft_wrap=True, markup=False)


def _question(outcome: RunOutcome) -> Section:
    world = outcome.worlds[OWN]
    names = ", ".join(domain.name for domain in world.topology.domains)
    line = (
        f"Where to place {world.workload.name}, {world.workload.num_layers} layers and "
        f"{world.workload.num_microbatches} microbatches an iteration, on {names}, and when to "
        f"change that: {world.num_epochs} decisions, one every {duration(world.epoch_s)}, each for "
        f"{world.iterations_per_epoch} iterations?"
    )
    return Section(title="Question", lines=(line,))


def _plan(outcome: RunOutcome) -> Plan:
    """The plan that the kept weights take at base figures."""
    case = _own_case(outcome)
    situation = epoch_situation(
        case.world,
        case.world.topology,
        0,
        None,
        preference=case.preference,
        corrections=case.corrections,
    )
    scheduler = Contender(name=THIS_RUN, file=outcome.kept.file).scheduler()
    scheduler.begin()
    return scheduler.decide(situation).plan


def _bound(outcome: RunOutcome, plan: Plan) -> BoundOrNot:
    """Bound plans of the trainer, or why none fits; None among perfect devices."""
    config, case = outcome.config, _own_case(outcome)
    if trainer_named(config.trainer).is_ideal:
        return None
    job = TrainingJob(
        model=config.model,
        num_sequences=config.microbatches,
        sequence_length=config.sequence_length,
        num_layers=config.num_layers,
    )
    perfect = simulate_compiled(case.world.topology, case.world.workload, plan, case.corrections)
    try:
        return trained_plans(
            case.world,
            job,
            Policies.load(outcome.kept.file),
            config.trainer,
            corrections=case.corrections,
            perfect_s=perfect.makespan_s,
        )
    except InfeasiblePlacementError as error:
        return error


def _own_case(outcome: RunOutcome) -> Case:
    return next(case for case in outcome.cases if case.block == OWN)


def _describe(outcome: RunOutcome) -> dict[str, str]:
    load = outcome.worlds[CONGESTED].load
    return {
        OWN: _law_text(outcome.worlds[OWN].topology.dynamics),
        CONGESTED: "links jam and fail (markov_fast), domains compute at "
        f"{load.low_factor:g} to {load.high_factor:g} of their speed",
    }


def _law_text(law: Law) -> str:
    if law == STEADY:
        return "links stand still"
    if not isinstance(law, UniformLaw):
        return f"links move by the law {kind_of(law)}"
    return (
        f"bandwidths within ±{100 * law.bandwidth_fluctuation:g} %, latencies within "
        f"±{100 * law.latency_jitter:g} %"
    )


def _notes(outcome: RunOutcome) -> tuple[str, ...]:
    return (
        *outcome.kept.told,
        f"{SHIPPED_ROW}: hi_ppo-0. untrained weights: new ones, both policies; random and nearest "
        "neighbours: orders in place of the placement policy, moves as in this run. Rules choose "
        "among the plans of a search in every epoch so far; the clairvoyant knows all epochs and "
        "all plans. Times include moves; ± is half a 95 % interval over episodes, differences are "
        "paired. Decision times are wall times on this machine; everything else repeats exactly.",
    )


def _targets(outcome: RunOutcome, rows: pd.DataFrame) -> RunTargets:
    """Targets on the held-out episodes, and those of the documents on the same world."""
    columns = {THIS_RUN: outcome.kept.file, shipped().stem: shipped()}
    methods = dict(zip(columns, (THIS_RUN, SHIPPED_ROW), strict=True))
    most = _MOST_OVER_SHIPPED[outcome.config.from_]
    notes = [f"{_ELSEWHERE}{outcome.kept.file}"]
    targets = [run_targets(rows, method, most_over_shipped=most) for method in methods.values()]
    if outcome.config.kpi:
        own = outcome.worlds[OWN]
        still = replace(own, topology=replace(own.topology, dynamics=STEADY), law="steady")
        scope = Scope(sizes=SIZES, seed=outcome.config.evaluation_seed, world=still)
        found: dict[object, tuple[Target, ...]] = {}
        more = []
        for name, path in columns.items():
            way = Policies.load(path).decides_by(own.topology, own.workload)
            if way not in found:
                found[way] = targets_of_column(policy_column(name, path, scope))
            more.append(found[way])
        targets = [(*own, *others) for own, others in zip(targets, more, strict=True)]
        notes.insert(
            0,
            f"From training time on: the world of this run, moving as those of eval_calm, "
            f"eval_held and hard; {SIZES.num_draws} draws of {SIZES.num_epochs} epochs of each.",
        )
    measured = MeasuredTargets(columns=tuple(columns), targets=tuple(targets), are_seeds=False)
    return RunTargets(measured=measured, notes=tuple(notes))


def _report(
    outcome: RunOutcome,
    folder: RunFolder,
    *,
    drawn: PlanViews,
    sections: Sequence[Section],
    targets: RunTargets,
    worth: str,
) -> Report:
    world = _own_case(outcome).world
    names = ", ".join(domain.name for domain in world.topology.domains)
    question, *others = sections
    return Report(
        title=f"{world.workload.name} on {names}",
        question=" ".join(question.lines),
        answer=worth,
        repeat=Repetition(
            command=f"{PROG} --config {folder.config_json}", configuration=folder.read_config()
        ),
        first=drawn.first,
        sections=tuple(others),
        figures=(stage_curves(folder.path), *drawn.more),
        fidelity=outcome.fidelity,
        caveats=_notes(outcome),
        targets=targets.html,
    )
