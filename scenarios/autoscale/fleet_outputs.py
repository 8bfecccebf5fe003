"""Outputs of a run of a fleet: tables, Gantt chart of instances, Chrome trace, report."""

import csv
import html
import io
import json
import sys
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from rich.table import Table

from des.serving.fleet_world import History
from scenarios.frame.plots import png_bytes
from scenarios.iteration.iteration_tables import plain_console

Row = Mapping[str, object]
SHOWN = (
    "policy",
    "attainment",
    "ttft_p50_s",
    "ttft_p95_s",
    "gap_p99_s",
    "e2e_p95_s",
    "gpu_h",
    "usd",
    "boot_gpu_h",
    "num_flaps",
    "num_unfinished",
)
_COLOURS = {"prompt": "#0072B2", "token": "#009E73", "mixed": "#E69F00"}
_MICRO = 1e6


def policy_files(name: str, history: History) -> dict[str, bytes]:
    """Files of one policy."""
    slo = history.world.slo
    requests = [
        {
            "request_id": one.request.request_id,
            "arrival_s": one.request.arrival_s,
            "prompt_tokens": one.request.prompt_tokens,
            "output_tokens": one.request.output_tokens,
            "ttft_s": one.ttft_s,
            "longest_gap_s": one.longest_gap_s,
            "e2e_s": one.e2e_s,
            "is_good": one.is_good(slo),
            "num_restarts": one.num_restarts,
            "prompt_instance": one.prompt_instance,
            "token_instance": one.token_instance,
        }
        for one in history.requests
    ]
    instances = [
        {field: getattr(one, field) for field in type(one).__slots__} for one in history.instances
    ]
    decisions = [
        {
            "now_s": view.now_s,
            "pool": pool,
            "active": seen.active,
            "starting": seen.starting,
            "draining": seen.draining,
            "waiting": seen.waiting,
            "running": seen.running,
            "wanted": decision.counts.get(pool),
            "why": decision.why,
        }
        for view, decision in history.decisions
        for pool, seen in view.pools.items()
    ]
    return {
        f"requests_{name}.csv": csv_bytes(requests),
        f"instances_{name}.csv": csv_bytes(instances),
        f"decisions_{name}.csv": csv_bytes(decisions),
        f"instances_{name}.png": _gantt(name, history),
        f"trace_{name}.json": _chrome_trace(history),
    }


def csv_bytes(rows: Sequence[Row]) -> bytes:
    """Rows as CSV; without rows, nothing."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue().encode()


def _gantt(name: str, history: History) -> bytes:
    """Life of each instance: from its order (faint), active, draining (light)."""
    num = len(history.instances)
    figure = Figure(figsize=(8.0, 1.5 + min(0.18 * num, 12.0)))
    axes = figure.subplots()
    for one in history.instances:
        stop_s = history.end_s if one.stopped_s is None else one.stopped_s
        active_s = stop_s if one.active_s is None else one.active_s
        drain_s = stop_s if one.drained_from_s is None else one.drained_from_s
        for begin_s, end_s, alpha in (
            (one.ordered_s, active_s, 0.25),
            (active_s, drain_s, 1.0),
            (drain_s, stop_s, 0.5),
        ):
            axes.barh(
                one.number, end_s - begin_s, left=begin_s, color=_COLOURS[one.pool], alpha=alpha
            )
    for pool in history.world.initial:
        axes.barh(0, 0, color=_COLOURS[pool], label=pool)
    axes.legend(loc="upper right")
    axes.set_xlabel("time [s]: ordered (faint), active, draining (light)")
    axes.set_ylabel("instance")
    axes.set_title(name)
    return png_bytes(figure)


def _chrome_trace(history: History) -> bytes:
    """Lives of instances and counts of pools, as Chrome and Perfetto show them."""
    events: list[dict[str, object]] = []
    for one in history.instances:
        stop_s = history.end_s if one.stopped_s is None else one.stopped_s
        events.append(
            {
                "name": one.pool,
                "ph": "X",
                "pid": 0,
                "tid": one.number,
                "ts": one.ordered_s * _MICRO,
                "dur": (stop_s - one.ordered_s) * _MICRO,
                "args": {"busy_s": one.busy_s, "active_s": one.active_s},
            }
        )
    for view, _ in history.decisions:
        for pool, seen in view.pools.items():
            counts = {"active": seen.active, "starting": seen.starting, "waiting": seen.waiting}
            events.append(
                {"name": pool, "ph": "C", "pid": 1, "ts": view.now_s * _MICRO, "args": counts}
            )
    return json.dumps({"traceEvents": events}).encode()


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def report_of(rows: Sequence[Row], names: Sequence[str]) -> dict[str, bytes]:
    """Table of all figures as CSV and as a page with the charts."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_text(each))}</td>" for each in row.values()) + "</tr>"
        for row in rows
    )
    charts = "".join(f'<p><img src="instances_{html.escape(name)}.png"></p>' for name in names)
    page = (
        "<!doctype html><meta charset='utf-8'><title>Autoscaling</title>"
        "<style>body{font-family:sans-serif}td,th{padding:2px 8px;text-align:right}</style>"
        f"<h1>Autoscaling</h1><table><tr>{head}</tr>{body}</table>{charts}\n"
    )
    return {"figures.csv": csv_bytes(rows), "report.html": page.encode()}


def show(rows: Sequence[Row]) -> None:
    """Print the main figures of all policies."""
    shown = Table(title="Policies", title_justify="left")
    for name in SHOWN:
        shown.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*(_text(row[name]) for name in SHOWN))
    console = plain_console(sys.stdout)
    console.width = 160
    console.print(shown)
