"""Outputs of a run of a fleet: tables, Gantt chart of instances, Chrome trace, report."""

import json
import sys
from collections.abc import Mapping, Sequence

import pandas as pd
from rich.table import Table

from des.base.document import DOCUMENT
from des.serving.fleet_world import History
from des.serving.instance_life import STATES
from scenarios.autoscale.command_configs import Config, SharedConfig
from scenarios.autoscale.fleet_pictures import instances_figure, sizes_figure
from scenarios.frame.outputs import OutputChoice
from scenarios.frame.repeat import repeated_settings
from scenarios.frame.rows_report import cell_text, rows_report
from scenarios.frame.writing import result_file, write_files
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
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
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
    console = plain_console(sys.stdout)
    console.width = 160
    console.print(shown)
