"""What a trained policy is worth: evaluation, table, verdict and the files that tell of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from rich.console import Console
from rich.progress import track

from agents.planners import PLANNERS, Planner
from agents.planners.exact import most_placements, num_contiguous_placements
from agents.policy_planner import PolicyPlanner
from agents.task import PlacementTask
from des.chrome_trace import write_chrome_trace
from des.gantt import gantt_png
from scenarios.evaluation import Judgement, evaluation_frame, held_out_draws, judge
from scenarios.files import write_bytes, write_csv
from scenarios.metrics_log import read_metrics
from scenarios.plots import comparison_bars, learning_curve, png_bytes
from scenarios.report import Picture, Report, summary_table, write_report
from scenarios.run_folder import RunFolder
from scenarios.statistics import paired_difference, summarise

POLICY = "policy"
_CURVE_REFERENCES = ("exact", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Who is judged, on how many held-out draws."""

    task: PlacementTask
    num_draws: int
    seed: int


def evaluate_and_report(
    evaluation: Evaluation,
    folder: RunFolder,
    configuration: Mapping[str, object],
    command: str,
    console: Console,
) -> None:
    """Judge the trained policy beside all planners; print the table, write the run's files."""
    task = evaluation.task
    planners, left_out = _planners(task, folder)
    draws = held_out_draws(task, num_draws=evaluation.num_draws, seed=evaluation.seed)
    judgements = list(
        track(
            judge(task, planners, draws),
            total=len(planners) * len(draws),
            description="evaluating",
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
    )
    frame = evaluation_frame(judgements)
    summary = summarise(frame)
    verdict = verdict_on(frame)
    caveats = (*left_out, *_caveats(evaluation, frame))
    write_csv(folder.evaluation_csv, frame)
    best = _best_of_policy(judgements)
    write_chrome_trace(best.result, folder.trace_json)
    figure = png_bytes(learning_curve(read_metrics(folder.metrics_csv), _references(summary)))
    write_bytes(folder.learning_curve_png, figure)
    report = Report(
        title=f"{task.workload.name} on {', '.join(_domain_names(best))}",
        verdict=verdict,
        command=command,
        summary=summary,
        pictures=(
            Picture(caption="Learning curve; planners as judged afterwards.", png=figure),
            Picture(
                caption="Iteration time on the held-out draws.",
                png=png_bytes(comparison_bars(frame)),
            ),
            Picture(
                caption=f"The policy's fastest iteration, on draw {best.draw}.",
                png=gantt_png(best.result),
            ),
        ),
        configuration=configuration,
        caveats=caveats,
    )
    write_report(folder.report_html, report)
    console.print(summary_table(summary))
    for line in (verdict, *(f"Note: {caveat}" for caveat in caveats)):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    console.print(f"Report: {folder.report_html}", soft_wrap=True, highlight=False, markup=False)


def verdict_on(evaluation: pd.DataFrame) -> str:
    """Sum up in a sentence how the policy compares, draw by draw, with 95 % intervals.

    Parameters
    ----------
    evaluation
        Rows of `Judgement.row`, those of the policy among them.
    """
    times_s = evaluation.pivot(index="draw", columns="planner", values="iteration_time_s")
    shares = evaluation.pivot(index="draw", columns="planner", values="utilisation")
    parts = []
    for planner in ("exact", "uniform", "single_domain"):
        if planner in times_s:
            change = paired_difference(times_s[POLICY].to_numpy(), times_s[planner].to_numpy())
            parts.append(
                f"{100 * change.mean:+.2f} ± {100 * change.half_width:.2f} % against {planner}"
            )
    gain = paired_difference(shares[POLICY].to_numpy(), shares["single_domain"].to_numpy())
    return (
        f"The policy's iteration time: {'; '.join(parts)}. "
        f"Its utilisation: {100 * gain.mean:+.1f} ± {100 * gain.half_width:.1f} % against "
        "single_domain."
    )


def _planners(task: PlacementTask, folder: RunFolder) -> tuple[dict[str, Planner], tuple[str, ...]]:
    """All planners, the policy first, without `exact` where the case is too large for it."""
    policy = PolicyPlanner.from_checkpoint(folder.checkpoint_pt, task)
    planners: dict[str, Planner] = {POLICY: policy, **PLANNERS}
    size = num_contiguous_placements(task.world.num_domains, task.workload.num_layers)
    most = most_placements(task.simulator)
    if size <= most:
        return planners, ()
    del planners["exact"]
    return planners, (f"exact was left out: {size} placements are more than {most}.",)


def _caveats(evaluation: Evaluation, frame: pd.DataFrame) -> tuple[str, ...]:
    """What a reader must know before believing the table."""
    over_memory = sorted(frame.loc[~frame["fits_memory"], "planner"].unique())
    dynamics = evaluation.task.world.dynamics
    caveats = [
        "Decision times are wall times on this machine; everything else repeats exactly.",
        f"Links were drawn within ±{100 * dynamics.bandwidth_fluctuation:g} % bandwidth and "
        f"±{100 * dynamics.latency_jitter:g} % latency, as in training, with other seeds.",
        "One training seed; python -m scenarios.compare_seeds shows the spread over several.",
    ]
    if over_memory:
        caveats.append(
            f"{', '.join(over_memory)}: on some draws the plan does not fit into memory and was "
            "simulated as if it did, in its favour (column fits mem.)."
        )
    return tuple(caveats)


def _best_of_policy(judgements: list[Judgement]) -> Judgement:
    """The policy's fastest plan, one that fits in memory if there is one."""
    of_policy = [judgement for judgement in judgements if judgement.planner == POLICY]
    return min(of_policy, key=lambda j: (not j.result.fits_memory, j.result.makespan_s, j.draw))


def _domain_names(judgement: Judgement) -> list[str]:
    return [memory.domain for memory in judgement.result.memory]


def _references(summary: pd.DataFrame) -> dict[str, float]:
    """Mean iteration times to draw into the learning curve. [s]"""
    times_s = summary["iteration_time_s"]
    return {name: float(times_s[name]) for name in _CURVE_REFERENCES if name in times_s}
