"""Outputs of a run of a fleet: tables, Gantt chart of instances, Chrome trace, report."""

import json
import sys
from collections.abc import Mapping, Sequence

import pandas as pd
from rich.table import Table

from des.base.document import DOCUMENT
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Boxes, Line
from des.figures.palette import AMBER, BLUE, COLOURS, GREEN, GREY, PURPLE
from des.figures.panels import Axis, Panel
from des.serving.fleet_world import History
from des.serving.instance_life import ACTIVE, DRAINING, SLEEPING, STARTING, STATES, WARM
from scenarios.autoscale.command_configs import Config, SharedConfig
from scenarios.frame.outputs import repeated_settings, result_file, write_files
from scenarios.frame.rows_report import cell_text, rows_report
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
    "num_rejected",
)
_MICRO = 1e6


def policy_frames(name: str, history: History) -> dict[str, pd.DataFrame]:
    """Requests, instances and decisions of one policy, by the stems of their files."""
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
            "num_swaps": one.num_swaps,
            "cached_tokens": one.cached_tokens,
            "prompt_instance": one.prompt_instance,
            "token_instance": one.token_instance,
        }
        for one in history.requests
    ]
    instances = [
        {field: getattr(one, field) for field in type(one).__slots__ if field != "spans"}
        | {f"{state}_s": one.in_state_s(state) for state in STATES}
        for one in history.instances
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
        f"requests_{name}": rows_frame(requests),
        f"instances_{name}": rows_frame(instances),
        f"decisions_{name}": rows_frame(decisions),
    }


def rows_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a frame whose columns of whole numbers stay whole next to empty cells."""
    return pd.DataFrame(rows, dtype=object)


def fleet_trace(history: History) -> bytes:
    """Lives of instances and counts of pools, as Chrome and Perfetto show them."""
    events: list[dict[str, object]] = []
    for one in history.instances:
        for state, start_s, end_s in one.spans:
            events.append(
                {
                    "name": f"{one.pool} {state}",
                    "ph": "X",
                    "pid": 0,
                    "tid": one.number,
                    "ts": start_s * _MICRO,
                    "dur": (end_s - start_s) * _MICRO,
                    "args": {"busy_s": one.busy_s},
                }
            )
    for view, _ in history.decisions:
        for pool, seen in view.pools.items():
            counts = {"active": seen.active, "starting": seen.starting, "waiting": seen.waiting}
            events.append(
                {"name": pool, "ph": "C", "pid": 1, "ts": view.now_s * _MICRO, "args": counts}
            )
    return json.dumps({"traceEvents": events}).encode()


def write_fleet_comparison(
    config: Config | SharedConfig,
    prog: str,
    histories: Mapping[str, History],
    rows: Sequence[Row],
    more: Mapping[str, bytes],
) -> None:
    """Print the main figures; write settings, tables, traces, ``more`` files and a report."""
    _show(rows)
    choice = config.choice()
    frames = {"figures": rows_frame(rows)}
    for name, history in histories.items():
        frames |= policy_frames(name, history)
    best = max(rows, key=lambda row: (_number(row["attainment"]), -_number(row["gpu_h"])))
    page = rows_report(
        config,
        prog,
        title="Autoscaling",
        question="Which policy keeps the SLO, and at what cost?",
        answer=f"Most requests within the SLO: {best['policy']}, "
        f"{_number(best['attainment']):.2%} with {_number(best['gpu_h']):.4g} GPU hours.",
        tables={"Policies": frames["figures"]},
        figures=(
            sizes_figure(histories),
            *(instances_figure(name, history) for name, history in histories.items()),
        ),
    )
    files = {
        **choice.row_files(frames),
        **{f"trace_{name}.json": fleet_trace(history) for name, history in histories.items()},
        **{f"log_{name}.txt": _log(history) for name, history in histories.items()},
        **more,
        **result_file(repeated_settings(config), rows=rows),
        **choice.report_files(page),
    }
    paths = write_files(config.out, files)
    DOCUMENT.add(rows=rows, files=paths)
    for path in paths:
        sys.stdout.write(f"written: {path}\n")


def _log(history: History) -> bytes:
    return "".join(f"{line}\n" for line in history.log).encode()


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _show(rows: Sequence[Row]) -> None:
    shown = Table(title="Policies", title_justify="left")
    for name in SHOWN:
        shown.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*(cell_text(row[name]) for name in SHOWN))
    plain_console(sys.stdout).print(shown)


def sizes_figure(histories: Mapping[str, History]) -> Figure:
    """Draw the load, and how many instances each policy has over time, draining ones included."""
    first = next(iter(histories.values()))
    times_s = tuple(view.now_s for view, _ in first.decisions)
    rates = tuple(view.arrivals / view.interval_s for view, _ in first.decisions)
    load = Line(label="arrivals", x=times_s, y=rates, colour=GREY, is_step=True)
    sizes = tuple(
        Line(
            label=name,
            x=tuple(view.now_s for view, _ in history.decisions),
            y=tuple(
                float(sum(pool.ordered + pool.draining for pool in view.pools.values()))
                for view, _ in history.decisions
            ),
            colour=COLOURS[number % len(COLOURS)],
            dash="solid" if number < len(COLOURS) else "dash",
            is_step=True,
        )
        for number, (name, history) in enumerate(histories.items())
    )
    return Figure(
        name="sizes",
        title="Load and instances",
        seen=f"Requests per second, and instances over time under {', '.join(histories)}.",
        panels=(
            Panel(x=Axis(), y=Axis(label="requests/s", low=0.0), marks=(load,), height=1.4),
            Panel(
                x=Axis(label="time [s]"),
                y=Axis(label="instances", low=0.0, is_counted=True),
                marks=sizes,
            ),
        ),
        width=8.0,
        shares_x=True,
    )


def instances_figure(name: str, history: History) -> Figure:
    """Draw the life of each instance: starting, active, draining, spare."""
    marks = []
    for state in STATES:
        boxes = [
            (float(one.number), start_s, end_s)
            for one in history.instances
            for name, start_s, end_s in one.spans
            if name == state
        ]
        if not boxes and state in (WARM, SLEEPING):
            continue
        rows, starts, ends = zip(*boxes, strict=True) if boxes else ((), (), ())
        marks.append(
            Boxes(label=state, starts=starts, ends=ends, rows=rows, colour=_COLOURS[state])
        )
    num = len(history.instances)
    return panel_figure(
        name=f"instances_{name}",
        title=f"Instances under {name}",
        seen=f"Lives of {num} instances from the order to the stop, by state.",
        x=Axis(label="time [s]"),
        y=Axis(label="instance", is_counted=True),
        marks=marks,
        height=1.2 + min(0.18 * num, 12.0),
        grid="x",
        width=8.0,
    )


_COLOURS = {STARTING: GREY, ACTIVE: BLUE, DRAINING: AMBER, WARM: GREEN, SLEEPING: PURPLE}
