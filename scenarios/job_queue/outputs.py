"""Tables and pictures of a comparison of schedulers."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from des.cluster.domain_loads import domain_loads
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Boxes, series_line
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel
from scenarios.job_queue.job_pricing import queue_nodes
from scenarios.job_queue.metrics import METRICS
from scenarios.job_queue.runs import QueueRun
from scenarios.job_queue.settings import Config, tracked_of
from scenarios.run.training_run_scenario import LOAD_COLUMNS
from scenarios.study.compare.bootstrap import paired_bootstrap

_MOST_NODES = 64


def results_frame(results: Sequence[QueueRun], gpu_hour_usd: float) -> pd.DataFrame:
    """One row per run: its combination, all metrics and the hash of its workload."""
    rows = []
    for result in results:
        one = result.combination
        row: dict[str, object] = {"scheduler": one.scheduler, **one._asdict()}
        row["workload"] = result.workload
        row |= {name: metric.figure(result.history) for name, metric in METRICS.items()}
        gpu_usd = result.history.gpu_seconds.held / 3600.0 * gpu_hour_usd
        wan_usd = sum(link.usd or 0.0 for link in result.links)
        if result.links:
            row["wan_bytes"] = sum(link.num_bytes for link in result.links)
            row["wan_usd"] = wan_usd
        if gpu_hour_usd:
            row["cost_usd"] = gpu_usd + wan_usd
        rows.append(row)
    return pd.DataFrame(rows)


def jobs_frame(results: Sequence[QueueRun]) -> pd.DataFrame:
    """One row per run and tracked job."""
    rows = [(result, job) for result in results for job in result.history.jobs]
    return pd.DataFrame(
        [{**_run_of(result), **job._asdict(), "jct_s": job.jct_s} for result, job in rows]
    )


def links_frame(results: Sequence[QueueRun]) -> pd.DataFrame:
    """One row per run and link: bytes, mean use and cost; empty where prices know no links."""
    rows = [(result, link) for result in results for link in result.links]
    return pd.DataFrame([{**_run_of(result), **link._asdict()} for result, link in rows])


def _run_of(result: QueueRun) -> dict[str, object]:
    one = result.combination
    return {"scheduler": one.scheduler, "load": one.load, "seed": one.seed}


def loads_frames(config: Config, results: Sequence[QueueRun]) -> dict[str, pd.DataFrame]:
    """Loads of the network's domains under each scheduler, of the first seed at the highest load.

    A training run replays them. Empty without a network, or where jobs before the tracked ones are
    not recorded.
    """
    tracked = tracked_of(config)
    if not config.network or (tracked is not None and tracked[0] > 0):
        return {}
    found = {}
    for result in _first_runs(results):
        rows = [
            (time_s, domain, load.utilisation, load.memory_occupancy, load.queue_length)
            for domain, changes in domain_loads(result.history, queue_nodes(config)).items()
            for time_s, load in changes
        ]
        name = f"loads-{result.combination.scheduler}"
        found[name] = pd.DataFrame(rows, columns=list(LOAD_COLUMNS))
    return found


def differences_frame(results: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Mean time of each scheduler against the first one, by load, paired over workload seeds.

    Rows of workloads that differ are an error of ours, not compared.
    """
    rows = []
    for load, group in results.groupby("load", sort=False):
        first = group["scheduler"].iloc[0]
        base = group[group["scheduler"] == first]
        for scheduler, own in group.groupby("scheduler", sort=False):
            assert list(own["workload"]) == list(base["workload"])
            if scheduler == first or own["jct_mean_s"].isna().any() or base.isna().any(axis=None):
                continue
            found = paired_bootstrap(
                own["jct_mean_s"].to_numpy(),
                base["jct_mean_s"].to_numpy(),
                own["seed"].tolist(),
                rng=np.random.default_rng(seed),
            )
            rows.append(
                {
                    "load": load,
                    "scheduler": scheduler,
                    "reference": first,
                    "jct_difference": found.mean,
                    "low": found.low if found.num_worlds > 1 else math.nan,
                    "high": found.high if found.num_worlds > 1 else math.nan,
                    "num_seeds": found.num_worlds,
                }
            )
    return pd.DataFrame(rows)


def cdf_figure(jobs: pd.DataFrame) -> Figure:
    """Distribution of the times from arrival to end, by scheduler, at the highest load."""
    load = jobs["load"].max()
    shown = jobs[jobs["load"] == load]
    lines = []
    for place, (scheduler, own) in enumerate(shown.groupby("scheduler", sort=False)):
        times_s = np.sort(own["jct_s"].to_numpy())
        shares = np.arange(1, len(times_s) + 1) / len(times_s)
        lines.append(series_line(scheduler, times_s, shares, place, is_step=True))
    return panel_figure(
        name="jct_cdf",
        title="Times from arrival to end",
        seen="Share of the tracked jobs that have ended by a time"
        + (f", at load {load:g}." if load else "."),
        x=Axis(label="time from arrival to end [s]", scale="log"),
        y=Axis(label="share of jobs"),
        marks=lines,
    )


def load_figure(results: pd.DataFrame) -> Figure:
    """Mean time from arrival to end by load, a line a scheduler; bands span the seeds."""
    lines = []
    for place, (scheduler, own) in enumerate(results.groupby("scheduler", sort=False)):
        by_load = own.groupby("load")["jct_mean_s"]
        mean, low, high = by_load.mean(), by_load.min(), by_load.max()
        look = {"symbol": "circle", "low": tuple(low.tolist()), "high": tuple(high.tolist())}
        lines.append(series_line(scheduler, mean.index, mean, place, **look))
    return panel_figure(
        name="jct_by_load",
        title="Mean time by load",
        seen="Mean time from arrival to end of the tracked jobs; bands span the seeds.",
        x=Axis(label="load [jobs an hour]"),
        y=Axis(label="mean time from arrival to end [s]", low=0.0),
        marks=lines,
    )


def demand_figure(results: Sequence[QueueRun]) -> Figure:
    """GPUs wanted and GPUs free over time, of the first seed at the highest load."""
    wanted, free = [], []
    for place, result in enumerate(_first_runs(results)):
        if not result.demand:
            continue
        times_s, demand, num_free = (
            np.array(column, dtype=float) for column in zip(*result.demand, strict=True)
        )
        scheduler = result.combination.scheduler
        times_h = times_s / 3600.0
        wanted.append(series_line(scheduler, times_h, demand, place, is_step=True))
        free.append(series_line(scheduler, times_h, num_free, place, is_step=True))
    return Figure(
        name="gpu_demand",
        title="GPUs wanted and free",
        seen="GPUs that jobs in the cluster want, and GPUs that are free, over time; first seed.",
        panels=(
            Panel(
                x=Axis(), y=Axis(label="GPUs wanted", low=0.0, is_counted=True), marks=tuple(wanted)
            ),
            Panel(
                x=Axis(label="time [h]"),
                y=Axis(label="GPUs free", low=0.0, is_counted=True),
                marks=tuple(free),
            ),
        ),
        shares_x=True,
    )


def nodes_figure(results: Sequence[QueueRun]) -> Figure:
    """Tracked jobs on the first nodes over time, of the first seed at the highest load."""
    panels = []
    for result in _first_runs(results):
        stays = [stay for stay in result.history.stays if stay.node < _MOST_NODES]
        marks = [
            Boxes(
                label="",
                starts=tuple(stay.start_s / 3600.0 for stay in own),
                ends=tuple(stay.end_s / 3600.0 for stay in own),
                rows=tuple(float(stay.node) for stay in own),
                colour=COLOURS[place],
                hovers=tuple(f"job {stay.job_id}" for stay in own),
            )
            for place in range(len(COLOURS))
            if (own := [stay for stay in stays if stay.job_id % len(COLOURS) == place])
        ]
        title = result.combination.scheduler
        x, y = Axis(label="time [h]"), Axis(label="node", is_counted=True)
        panels.append(Panel(x=x, y=y, title=title, marks=tuple(marks), height=2.2))
    return Figure(
        name="nodes",
        title="Tracked jobs on nodes",
        seen=f"Stays of the tracked jobs on the first {_MOST_NODES} nodes; first seed.",
        panels=tuple(panels),
        shares_x=True,
    )


def _first_runs(results: Sequence[QueueRun]) -> list[QueueRun]:
    load = max(result.combination.load for result in results)
    seed = results[0].combination.seed
    return [
        result
        for result in results
        if result.combination.load == load and result.combination.seed == seed
    ]
