"""Tables and pictures of a comparison of schedulers."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from scenarios.frame.plots import BLUE, REFERENCE_COLOURS, laid_out, new_figure
from scenarios.job_queue.metrics import METRICS
from scenarios.job_queue.runs import RunResult
from scenarios.measure.compare.bootstrap import paired_bootstrap

_COLOURS = (BLUE, *REFERENCE_COLOURS)
_MOST_NODES = 64


def results_frame(results: Sequence[RunResult], gpu_hour_usd: float) -> pd.DataFrame:
    """One row per run: its combination, all metrics and the hash of its workload."""
    rows = []
    for result in results:
        one = result.combination
        row: dict[str, object] = {
            "scheduler": one.scheduler,
            "policy": one.policy,
            "placing": one.placing,
            "admission": one.admission,
            "preempting": one.preempting,
            "load": one.load,
            "seed": one.seed,
            "workload": result.workload,
        }
        row |= {name: metric.figure(result.history) for name, metric in METRICS.items()}
        if gpu_hour_usd:
            row["cost_usd"] = result.history.gpu_seconds.held / 3600.0 * gpu_hour_usd
        rows.append(row)
    return pd.DataFrame(rows)


def jobs_frame(results: Sequence[RunResult]) -> pd.DataFrame:
    """One row per run and tracked job."""
    return pd.DataFrame(
        [
            {
                "scheduler": result.combination.scheduler,
                "load": result.combination.load,
                "seed": result.combination.seed,
                **job._asdict(),
                "jct_s": job.jct_s,
            }
            for result in results
            for job in result.history.jobs
        ]
    )


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


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]


def cdf_figure(jobs: pd.DataFrame) -> Figure:
    """Distribution of the times from arrival to end, by scheduler, at the highest load."""
    figure = new_figure(width_inches=7.0, height_inches=4.0)
    axes = figure.subplots()
    load = jobs["load"].max()
    shown = jobs[jobs["load"] == load]
    for place, (scheduler, own) in enumerate(shown.groupby("scheduler", sort=False)):
        times_s = np.sort(own["jct_s"].to_numpy())
        shares = np.arange(1, len(times_s) + 1) / len(times_s)
        axes.step(times_s, shares, where="post", color=_colour(place), label=str(scheduler))
    axes.set_xscale("log")
    axes.set_xlabel(f"time from arrival to end [s], load {load:g}")
    axes.set_ylabel("share of jobs")
    axes.legend(fontsize=8)
    return laid_out(figure)


def load_figure(results: pd.DataFrame) -> Figure:
    """Mean time from arrival to end by load, a line a scheduler; bars span the seeds."""
    figure = new_figure(width_inches=7.0, height_inches=4.0)
    axes = figure.subplots()
    for place, (scheduler, own) in enumerate(results.groupby("scheduler", sort=False)):
        by_load = own.groupby("load")["jct_mean_s"]
        mean, low, high = by_load.mean(), by_load.min(), by_load.max()
        spans = np.array([mean - low, high - mean])
        axes.errorbar(
            mean.index,
            mean,
            yerr=spans,
            marker="o",
            capsize=3,
            color=_colour(place),
            label=str(scheduler),
        )
    axes.set_xlabel("load [jobs an hour]")
    axes.set_ylabel("mean time from arrival to end [s]")
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=8)
    return laid_out(figure)


def demand_figure(results: Sequence[RunResult]) -> Figure:
    """GPUs wanted and GPUs free over time, of the first seed at the highest load."""
    figure = new_figure(width_inches=7.0, height_inches=4.4)
    wanted, free = figure.subplots(2, 1, sharex=True)
    for place, result in enumerate(_first_runs(results)):
        if not result.demand:
            continue
        times_s, demand, num_free = (
            np.array(column) for column in zip(*result.demand, strict=True)
        )
        style = {"color": _colour(place), "linewidth": 1.0, "where": "post"}
        wanted.step(times_s / 3600.0, demand, label=result.combination.scheduler, **style)
        free.step(times_s / 3600.0, num_free, **style)
    wanted.set_ylabel("GPUs wanted")
    free.set_ylabel("GPUs free")
    free.set_xlabel("time [h]")
    wanted.legend(fontsize=8)
    return laid_out(figure)


def gantt_figure(results: Sequence[RunResult]) -> Figure:
    """Tracked jobs on the first nodes over time, of the first seed at the highest load."""
    runs = _first_runs(results)
    figure = new_figure(width_inches=7.0, height_inches=1.0 + 2.2 * len(runs))
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    for axes, result in zip(panels, runs, strict=True):
        stays = [stay for stay in result.history.stays if stay.node < _MOST_NODES]
        axes.hlines(
            [stay.node for stay in stays],
            [stay.start_s / 3600.0 for stay in stays],
            [stay.end_s / 3600.0 for stay in stays],
            colors=[_colour(stay.job_id) for stay in stays],
            linewidth=3.0,
            alpha=0.6,
        )
        axes.set_ylabel("node")
        axes.set_title(result.combination.scheduler, fontsize=9)
    panels[-1].set_xlabel("time [h]")
    return laid_out(figure)


def _first_runs(results: Sequence[RunResult]) -> list[RunResult]:
    load = max(result.combination.load for result in results)
    seed = results[0].combination.seed
    return [
        result
        for result in results
        if result.combination.load == load and result.combination.seed == seed
    ]
