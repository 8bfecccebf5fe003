"""Outcome of a training: evaluation, table, verdict and the files that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from rich.console import Console

from agents.decision.problem import Planner
from agents.flat.policy_planner import PolicyPlanner
from agents.flat.task import PlacementTask
from agents.planners.exact.exact import most_placements, num_contiguous_placements
from agents.planners.table import PLANNERS, reference_planners
from des import InfeasiblePlacementError, IterationResult, Law, Plan, Topology, UniformLaw, lower
from des.base.document import DOCUMENT
from des.base.lazy import lazy_imports
from des.views.chrome_trace import write_chrome_trace
from des.views.plan_views import views_of_result
from scenarios.frame.files import write_json
from scenarios.frame.metrics_log import read_metrics
from scenarios.frame.outputs import OutputChoice, write_outputs
from scenarios.frame.plots import comparison_bars, learning_curve
from scenarios.frame.report import Repetition, Report
from scenarios.frame.run_folder import RunFolder
from scenarios.frame.statistics import paired_difference, summarise
from scenarios.frame.summary_table import summary_page_table, summary_table
from scenarios.study.targets.sizes import Sizes
from scenarios.train.evaluation import (
    COSTS_OF_CHANGE,
    HeldOutDraw,
    Judgement,
    evaluation_frame,
    hold_out_draws,
    judge_planners,
    planning_problem,
)

with lazy_imports(__name__):
    from scenarios.study.targets import after_training
    from scenarios.study.targets.after_training import RunTargets

POLICY = "policy"
SINGLE_DOMAIN = "single_domain"
_CURVE_REFERENCES = ("exact", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Evaluation of the policy and the planners on held-out networks.

    Attributes
    ----------
    fidelity
        Accuracy of the simulator in the task.
    choice
        Formats of output files.
    target_sizes
        Sizes of the measurement of targets, see `scenarios.study.targets.after_training`; None
        leaves it out.
    """

    task: PlacementTask
    num_draws: int
    seed: int
    fidelity: tuple[str, ...] = ()
    choice: OutputChoice = field(default_factory=OutputChoice)
    target_sizes: Sizes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOutcome:
    """Evaluation rows per draw and planner, and the policy's iteration on base links."""

    evaluation: pd.DataFrame
    at_base_figures: IterationResult
    world: Topology
    plan: Plan
    caveats: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """The outcome in a few sentences."""
        ratio = self.at_base_figures.transfer_compute_ratio
        shown = "no border" if ratio is None else f"transfer/compute ratio R = {ratio:.2f}"
        return (
            f"{verdict_on(self.evaluation)} On links at base figures it places "
            f"{self.plan.placement} ({shown})."
        )


def evaluate_and_report(
    evaluation: Evaluation,
    folder: RunFolder,
    repeat: Repetition,
    console: Console,
) -> None:
    """Compare the trained policy with all planners; print the table, write the run's files."""
    outcome = evaluate_policy(evaluation, folder, console)
    free = evaluation.task.replacement is None
    summary = summarise(outcome.evaluation.drop(columns=list(COSTS_OF_CHANGE) if free else []))
    console.print(summary_table(summary))
    for line in (outcome.verdict, *(f"Note: {caveat}" for caveat in outcome.caveats)):
        console.print(line, soft_wrap=True, markup=False)
    write_chrome_trace(outcome.at_base_figures, folder.trace_json)
    times_s = summary["iteration_time_s"]
    references = {name: float(times_s[name]) for name in _CURVE_REFERENCES if name in times_s}
    curve = learning_curve(read_metrics(folder.metrics_csv), references)
    sizes = evaluation.target_sizes
    targets = None if sizes is None else _measure_targets(evaluation, sizes, folder, console)
    domains = ", ".join(memory.domain for memory in outcome.at_base_figures.memory)
    workload = evaluation.task.workload
    views = views_of_result(
        outcome.world,
        lower(outcome.world, workload, outcome.plan),
        outcome.at_base_figures,
        title="The policy's plan on links at base figures",
    )
    report = Report(
        title=f"{workload.name} on {domains}",
        question=f"How good are the placements of a trained policy for {workload.name}?",
        answer=outcome.verdict,
        repeat=repeat,
        first=views.first,
        tables=(summary_page_table(summary),),
        figures=(curve, comparison_bars(outcome.evaluation), *views.more),
        fidelity=evaluation.fidelity,
        caveats=outcome.caveats,
        targets=None if targets is None else targets.html,
    )
    write_outputs(folder.path, evaluation.choice, report, {"evaluation": outcome.evaluation})
    DOCUMENT.add(
        out=folder.path,
        episodes=outcome.evaluation,
        targets=None if targets is None else targets.to_plain(),
    )
    console.print(f"Report: {folder.report_html}", soft_wrap=True, markup=False)
    if targets is not None:
        targets.show(console)


def _measure_targets(
    evaluation: Evaluation, sizes: Sizes, folder: RunFolder, console: Console
) -> RunTargets:
    """Measure the targets with the trained policy; kpi.json has all there is to say of them."""
    task = replace(evaluation.task, backend=None)
    policy = PolicyPlanner.from_checkpoint(folder.checkpoint_pt, task)
    with console.status("measuring the targets; --no-kpi leaves that out"):
        targets = after_training.targets_of_run(task, policy, sizes=sizes)
    write_json(folder.path / "kpi.json", targets.to_plain())
    return targets


def evaluate_policy(evaluation: Evaluation, folder: RunFolder, console: Console) -> TrainingOutcome:
    """Judge the trained policy and all planners on the same held-out draws."""
    policy = PolicyPlanner.from_checkpoint(folder.checkpoint_pt, evaluation.task)
    task = evaluation.task.compiled()
    draws = hold_out_draws(task, num_draws=evaluation.num_draws, seed=evaluation.seed)
    planners: dict[str, Planner] = {POLICY: policy, **reference_planners()}
    why_not = _why_not_exact(task, draws[0])
    if why_not is not None:
        del planners["exact"]
    judgements: list[Judgement] = []
    for name, planner in planners.items():
        with console.status(f"evaluating {name} on {len(draws)} draws"):
            judgements += judge_planners(task, name, planner, draws)
    frame = evaluation_frame(judgements)
    last = next(one for one in reversed(judgements) if one.planner == POLICY).placement
    problem = planning_problem(task, draws[0].base_world, last_plan=task.plan(last))
    plan = policy(problem, np.random.default_rng(0))
    left_out = () if why_not is None else (f"exact was left out: {why_not}.",)
    return TrainingOutcome(
        evaluation=frame,
        at_base_figures=problem.judge(plan),
        world=draws[0].base_world,
        plan=plan,
        caveats=(*left_out, *_caveats(task, frame)),
    )


def verdict_on(evaluation: pd.DataFrame) -> str:
    """Sum up how the policy compares, draw by draw, with 95 % intervals.

    Parameters
    ----------
    evaluation
        Rows of `scenarios.train.evaluation.Judgement.row`, those of the policy among them.
    """
    times_s = evaluation.pivot(index="draw", columns="planner", values="iteration_time_s")
    fits = evaluation.pivot(index="draw", columns="planner", values="fits_memory")
    parts = []
    for planner in ("exact", "uniform", SINGLE_DOMAIN):
        if planner in times_s:
            change = paired_difference(times_s[POLICY].to_numpy(), times_s[planner].to_numpy())
            mark = "" if fits[planner].all() else " (which does not fit into memory)"
            percent = f"{100 * change.mean:+.2f} ± {100 * change.half_width:.2f} %"
            parts.append(f"{percent} against {planner}{mark}")
    shares = evaluation.groupby("planner")["utilisation"].mean()
    return (
        f"The policy's iteration time: {'; '.join(parts)}. It uses {100 * shares[POLICY]:.1f} % of "
        f"the peak of all GPUs, single_domain {100 * shares[SINGLE_DOMAIN]:.1f} %."
    )


def _why_not_exact(task: PlacementTask, draw: HeldOutDraw) -> str | None:
    """Explain why `exact` cannot run: too many placements, or none that fits."""
    size = num_contiguous_placements(task.world.num_domains, task.workload.num_layers)
    most = most_placements(task.simulator)
    if size > most:
        return f"{size} placements are more than {most}"
    try:
        PLANNERS["exact"](planning_problem(task, draw.topology), draw.planner_rng())
    except InfeasiblePlacementError as error:
        return str(error)
    return None


def _links_of_draws(law: Law) -> str:
    """Say how links were drawn."""
    if isinstance(law, UniformLaw):
        return (
            f"Links were drawn within ±{100 * law.bandwidth_fluctuation:g} % bandwidth and "
            f"±{100 * law.latency_jitter:g} % latency, as in training, with other seeds."
        )
    return (
        f"Links take courses of the law {type(law).__name__}, as in training, with other seeds; "
        "each draw is the first epoch of one."
    )


def _caveats(task: PlacementTask, frame: pd.DataFrame) -> tuple[str, ...]:
    """Caveats of the table."""
    over_memory = sorted(frame.loc[~frame["fits_memory"], "planner"].unique())
    caveats = [
        "Decision times are wall times on this machine; everything else repeats exactly.",
        _links_of_draws(task.world.dynamics),
        "One training seed; python -m scenarios.compare_seeds shows the spread over several.",
    ]
    if task.replacement is not None:
        moved = " and the model state over the links" if task.replacement.pays_bytes else ""
        caveats.append(
            f"A changed placement costs a restart of {task.replacement.restart_s:g} s{moved}, "
            f"shared by the {task.iterations_per_epoch} iterations of the epoch; planners other "
            "than the policy choose as if it cost nothing."
        )
    if over_memory:
        caveats.append(
            f"{', '.join(over_memory)}: on some draws the plan does not fit into memory and was "
            "simulated as if it did, in its favour (column fits mem.)."
        )
    return tuple(caveats)
