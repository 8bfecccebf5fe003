"""Files of a comparison of schedulers: tables and a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from agents.answer.sections import Section
from des.base.flags import to_dict
from scenarios.frame.outputs import write_outputs
from scenarios.frame.report import Repetition, Report
from scenarios.job_queue.metrics import METRICS
from scenarios.job_queue.outputs import (
    cdf_figure,
    demand_figure,
    jobs_frame,
    links_frame,
    load_figure,
    loads_frames,
    nodes_figure,
)
from scenarios.job_queue.runs import QueueRun
from scenarios.job_queue.settings import Config
from scenarios.job_queue.traces.trace_jobs import JobTrace

_SHOWN = (
    "jct_mean_s",
    "jct_p99_s",
    "queue_delay_s",
    "makespan_s",
    "utilisation",
    "fairness_mean",
    "preemptions",
    "fragmentation",
)


def write_queue_comparison(
    folder: Path,
    config: Config,
    results: Sequence[QueueRun],
    *,
    trace: JobTrace | None,
    frame: pd.DataFrame,
    differences: pd.DataFrame,
) -> None:
    """Write all files, or none."""
    frames = {"results": frame, "jobs": jobs_frame(results), "differences": differences}
    links = links_frame(results)
    if len(links):
        frames["links"] = links
    page = _report(config, results, trace, frames)
    write_outputs(folder, config.choice(), page, frames | loads_frames(config, results))


def _report(
    config: Config,
    results: Sequence[QueueRun],
    trace: JobTrace | None,
    frames: Mapping[str, pd.DataFrame],
) -> Report:
    frame, differences = frames["results"], frames["differences"]
    means = frame.groupby(["load", "scheduler"], sort=False)[list(_SHOWN)].mean().reset_index()
    best = means.sort_values("jct_mean_s", kind="stable").iloc[0]
    rules = (
        "the rules of Blox, its accidents included" if config.compat == "blox" else "sound rules"
    )
    sections = [_section("Means over seeds", means)]
    if len(differences):
        sections.append(_section("Mean time against the first policy", differences))
    if "links" in frames:
        by_link = frames["links"].groupby(["scheduler", "source", "target"], sort=False)
        shown = by_link[["num_bytes", "mean_use", "usd"]].mean(numeric_only=True).reset_index()
        sections.append(_section("Links, means over loads and seeds", shown))
    if trace is not None:
        sections.append(Section(title="Trace", lines=trace.report))
    return Report(
        title="Job queue",
        question="Under which scheduler do jobs end soonest?",
        answer=(
            f"Least mean time: {best['scheduler']} at load {best['load']:g}, "
            f"{best['jct_mean_s']:.0f} s."
        ),
        repeat=Repetition(
            command="python -m scenarios.job_queue --config config.json --out again",
            configuration=to_dict(config),
        ),
        sections=tuple(sections),
        figures=(
            cdf_figure(frames["jobs"]),
            load_figure(frame),
            demand_figure(results),
            nodes_figure(results),
        ),
        fidelity=(
            f"Runs follow {rules}.",
            "Service rates are plain: they depend on the type and number of GPUs, not on links."
            if config.pricing == "plain"
            else "Rates are those of simulated iterations; jobs have mean shares of links.",
        ),
        caveats=tuple(f"{name}: {row.about}." for name, row in METRICS.items()),
    )


def _section(title: str, frame: pd.DataFrame) -> Section:
    return Section(
        title=title,
        head=tuple(frame.columns),
        rows=tuple(
            tuple(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
            for row in frame.itertuples(index=False)
        ),
    )
