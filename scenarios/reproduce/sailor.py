"""Iteration times of measured training runs, predicted from profiles of layers and links alone.

The runs are those of the artifact of Sailor (F. Strati et al., SOSP 2025): CSV files of what was
profiled before, what was measured and what published simulators say. The bound: a mean absolute
error below the best published simulator's of each set. No constant depends on a measured time.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import Points, bars_from_zero
from des.figures.palette import BLUE, COLOURS
from des.figures.panels import Axis, Panel, named_rows
from scenarios.reproduce.report import Bound, Reproduction
from scenarios.reproduce.sailor_cases import Cases, read_folder
from scenarios.reproduce.sailor_forms import RunForm
from scenarios.reproduce.sailor_model import MODEL, NAIVE, STEPS, predict_s

SHOWN = ("short_name", "cluster", "measured_s", "predicted_s", "error_percent")
"""Columns for a terminal of 80 characters."""

CONSTANTS = (
    (
        "blocks in the model whose optimiser step was profiled: 2",
        "artifact of Sailor, third_party/Megatron-DeepSpeed/profile.sh (--num_prof_layers 2); "
        "megatron/training.py writes the mean of the whole step next to every layer",
    ),
    (
        "pairs of GPUs in the network test of n GPUs in a node: n / 2, size per pair, "
        "bandwidth of all",
        "artifact, sailor/profiling/custom_nccl_tests/test_nccl.cc",
    ),
    (
        "messages that hold up a step at each border: 2, one each way",
        "DeepSpeed, runtime/pipe/schedule.py, TrainSchedule (communication is blocking); "
        "artifact, deepspeed/p2p.py (dist.send, dist.recv)",
    ),
    (
        "steps of the gradient all-reduce over n replicas: 2 (n - 1), in one piece after a barrier",
        "Patarasuk and Yuan 2009; artifact, deepspeed/pipe_engine.py (_exec_reduce_tied_grads, "
        "_exec_reduce_grads)",
    ),
    (
        "steps of the gather over t GPUs after each receive: t - 1",
        "artifact, deepspeed/utils.py (reconstruct_tensor)",
    ),
    (
        "bandwidth of a node for a number of pairs of GPUs: the best of the profiles for at most "
        "this number",
        "a choice: more pairs can leave the work to some of them, and some rows for 1 or 8 pairs "
        "of unlike GPUs repeat those of a slower cluster",
    ),
    (
        "profile of two types of GPU and a number of pairs: the first row with them",
        "a choice: runs do not name their zone, and rows of several zones differ little",
    ),
    ("fitted to measured times: none", "every other number is a cell of the profiles"),
)
"""Every constant and every choice of the model, and where it is from."""

_NOT_MODELLED = (
    "Not modelled, as no profile tells: loading of microbatches, copies of memory around messages, "
    "adding up of gradients, drift between many replicas, and launches that overlap where the "
    "profile of small microbatches waits for them. Two measurements of the same configurations "
    "differ by 5.0 % on average (median 2.6 %), as the README.md of the public runs says, so "
    "differences below about 3 % mean nothing."
)


def reproduce_cases(folder: Path) -> Reproduction:
    """Reproduce the runs of a folder."""
    return reproduce(read_folder(folder))


def reproduce(cases: Cases) -> Reproduction:
    """Predict every usable run and judge the mean absolute error of each set of runs."""
    frame = compare(cases)
    bounds, unjudged = error_bounds_of(frame)
    return Reproduction(
        title="Iteration times of measured runs, from profiles alone",
        frame=frame,
        bounds=bounds,
        unjudged=unjudged,
        shown=SHOWN,
        figure=draw(frame),
        notes=(
            *effects(cases),
            *summaries(frame),
            *(f"Constant: {constant}. Source: {source}." for constant, source in CONSTANTS),
            _NOT_MODELLED,
            f"Left out, as marked not usable: {cases.num_unusable} rows.",
        ),
    )


def error_bounds_of(frame: pd.DataFrame) -> tuple[tuple[Bound, ...], tuple[str, ...]]:
    """Hold each set of runs against its bound; also say which sets there is no bound for."""
    bounds, unjudged = [], []
    for cluster, rows in frame.groupby("cluster", sort=False):
        name = f"mean absolute error [%] of {len(rows)} runs on {cluster}"
        error, best = mean_absolute(rows["error_percent"]), best_published(rows)
        if best is None:
            unjudged.append(f"{name}: {error:.2f}; no published simulator covers these runs")
        else:
            name += f" ({best[0]} is the best published simulator of these runs)"
            bounds.append(Bound.at_most(name, error, best[1], shown=".2f"))
    return tuple(bounds), tuple(unjudged)


def compare(cases: Cases) -> pd.DataFrame:
    """One row per run: measured, predicted, and the signed errors of ours and of the others. [%]"""
    rows = []
    for run, measured in zip(cases.runs, cases.measurements, strict=True):
        predicted_s = predict_s(run, cases.network, MODEL)
        naive_s = predict_s(run, cases.network, NAIVE)
        published = {
            f"{name}_error_percent": error_percent(estimate_s, measured)
            for name, estimate_s in measured.published_s.items()
        }
        rows.append(
            {
                "run": measured.run_id,
                "short_name": "",
                "cluster": measured.cluster,
                "measured_s": measured.measured_iter_s,
                "predicted_s": predicted_s,
                "error_percent": error_percent(predicted_s, measured),
                "plain_1f1b_error_percent": error_percent(naive_s, measured),
            }
            | published
        )
    frame = pd.DataFrame(rows)
    frame["short_name"] = frame.groupby("cluster")["run"].transform(short_names)
    return frame


def short_names(names: pd.Series[str]) -> pd.Series[str]:
    """Return the last parts of names like paths, as many as it takes to tell them apart."""
    for num_parts in count(1):
        short = names.map(lambda name, kept=num_parts: "/".join(name.split("/")[-kept:]))
        if short.nunique() == names.nunique():
            return short
    raise AssertionError("whole names tell them apart")


def error_percent(predicted_s: float, measured: RunForm) -> float:
    """Signed error: positive is too slow."""
    return 100.0 * (predicted_s / measured.measured_iter_s - 1.0)


def mean_absolute(errors: pd.Series[float]) -> float:
    """Mean of the absolute values of those that are given."""
    return float(errors.abs().mean())


def best_published(rows: pd.DataFrame) -> tuple[str, float] | None:
    """Name and mean absolute error of the best published simulator with an estimate of each row.

    None if there is no such simulator.
    """
    means = rows[_published_columns(rows)].dropna(axis="columns").abs().mean()
    if means.empty:
        return None
    return str(means.idxmin()).removesuffix("_error_percent"), float(means.min())


def _published_columns(frame: pd.DataFrame) -> list[str]:
    errors = [str(column) for column in frame if str(column).endswith("_error_percent")]
    return [column for column in errors if column != "plain_1f1b_error_percent"]


def effects(cases: Cases) -> list[str]:
    """Mean absolute error of each set under one rule after another, the last being the model."""
    lines: list[str] = []
    clusters = pd.Series([measured.cluster for measured in cases.measurements])
    for name, rules in STEPS:
        errors = pd.Series(
            [
                error_percent(predict_s(run, cases.network, rules), measured)
                for run, measured in zip(cases.runs, cases.measurements, strict=True)
            ]
        )
        parts = ", ".join(
            f"{cluster} {mean_absolute(group):.2f} % (mean {group.mean():+.2f} %)"
            for cluster, group in errors.groupby(clusters, sort=False)
        )
        lines.append(f"{'With' if lines else 'Of'} {name}: {parts}.")
    return lines


def summaries(frame: pd.DataFrame) -> list[str]:
    """Mean absolute error of every published simulator on each set."""
    lines = []
    for cluster, rows in frame.groupby("cluster", sort=False):
        parts = [
            f"{column.removesuffix('_error_percent')} {mean_absolute(errors):.1f} %"
            + ("" if len(errors) == len(rows) else f" of {len(errors)} runs")
            for column in _published_columns(frame)
            if len(errors := rows[column].dropna())
        ]
        lines.append(f"Published simulators on {cluster}: {', '.join(parts) or 'none'}.")
    return lines


def draw(frame: pd.DataFrame) -> Figure:
    """Signed error of every run: ours, plain 1F1B and the best of the published simulators."""
    errors = frame["error_percent"]
    return Figure(
        name="picture",
        title="Predicted over measured iteration time, less 1",
        seen=f"Errors of {len(frame)} runs: ours are between {errors.min():+.1f} and "
        f"{errors.max():+.1f} %, {errors.abs().mean():.1f} % on the mean.",
        panels=tuple(
            _panel(str(cluster), rows) for cluster, rows in frame.groupby("cluster", sort=False)
        ),
        width=8.0,
    )


def _panel(cluster: str, rows: pd.DataFrame) -> Panel:
    places = tuple(map(float, range(len(rows))))
    series = {"plain 1F1B": "plain_1f1b_error_percent"}
    best = best_published(rows)
    if best is not None:
        series[f"{best[0]} (best published)"] = f"{best[0]}_error_percent"
    points = tuple(
        Points(label=label, x=tuple(rows[column].astype(float)), y=places, colour=hue, symbol="x")
        for (label, column), hue in zip(series.items(), COLOURS[1:], strict=False)
    )
    return Panel(
        x=Axis(label="predicted over measured iteration time, less 1 [%]"),
        y=named_rows(map(str, rows["short_name"])),
        marks=(*points, bars_from_zero("ours", rows["error_percent"], BLUE)),
        title=cluster,
        height=0.27 * (len(rows) + 1),
        grid="x",
    )
