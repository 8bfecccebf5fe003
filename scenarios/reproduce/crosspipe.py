"""Seconds per microbatch of pipeline schedules over slow links, against CrossPipe's measurements.

The tables are those of CrossPipe (arXiv 2507.00217, USENIX ATC 2025, tables 5 and 6). Every column
is scheduled again and simulated twice: plain, where messages overlap with computing, and with one
constant, a sender stall: in the schedules that CrossPipe compares itself with, the sender waits
until its message has arrived. Targets: the mean absolute error over 1f1b, zb_h1 and greedy_1x and,
with the stall, over each of the other groups of columns; and the ranking of those three and
greedy_2x wherever published figures differ by more than 3 %.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import Points, Symbol
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel
from scenarios.reproduce.cases import PUBLISHED, CaseFile, read_cases, require_judged
from scenarios.reproduce.crosspipe_runs import (
    BLOCKING,
    COLUMNS,
    OUR_COLUMNS,
    CrossPipeRun,
    DelayRow,
    Effort,
    ScheduleColumn,
    make_orders,
)
from scenarios.reproduce.crosspipe_verdicts import (
    ERROR_COLUMNS,
    Compared,
    delayed_notes,
    error_bounds,
    judge_columns,
    ranking_notes,
    share_notes,
    stall_notes,
    unjudged,
)
from scenarios.reproduce.report import Reproduction

SHIPPED = PUBLISHED / "crosspipe.json"
_DRAWN: tuple[tuple[str, str, Symbol], ...] = (
    ("published_s", "published", "x"),
    ("plain_s", "plain", "circle"),
    ("stalled_s", "with the sender stall", "square"),
    ("lower_bound_s", "proven lower bound", "triangle-down"),
)
_NOTES = (
    "Ours: F = 0.038 s as published, D = 0.0465 s and W = 0.0205 s solve the row without delay.",
    "A device has memory for the activations of 8 microbatches, which is what 1F1B holds at most; "
    "of 16 in the columns with 2x.",
    "deep_1f1b_2x, 1F1B with more forwards at the start, was not published.",
    "zb_v has orders found by search, and in waves the last device's two stages are one.",
    "stalled_s is none where the stall is off; the model with the stall then has plain_s.",
)


def reproduce_cases(path: Path, *, exact_work: float, exact_seconds: float) -> Reproduction:
    """Reproduce the rows of a file."""
    effort = Effort(work=exact_work, seconds=exact_seconds)
    cases = read_cases(path, DelayRow, SHIPPED)
    judged = any(judge_columns(row.published) for row in cases.rows)
    require_judged(path, judged, f"a figure of {', '.join(ERROR_COLUMNS)}")
    return reproduce(cases, effort)


def reproduce(cases: CaseFile[DelayRow], effort: Effort) -> Reproduction:
    """Schedule and simulate every cell and judge error and ranking."""
    rows = {at: row for at, row in enumerate(cases.rows) if row.published}
    frame = compare(rows, effort)
    compared = beside_ours(rows, frame)
    return Reproduction(
        title="Seconds per microbatch of pipeline schedules between data centres",
        frame=frame,
        bounds=tuple(error_bounds(compared, cases)),
        figure=draw(rows, frame),
        notes=(
            f"Published: {cases.source}",
            *_NOTES,
            *search_notes(frame, effort),
            *stall_notes(list(rows.values())),
            *share_notes(list(rows.values())),
            *ranking_notes(compared),
            *delayed_notes(compared),
        ),
        unjudged=tuple(unjudged(compared)),
    )


def compare(rows: Mapping[int, DelayRow], effort: Effort) -> pd.DataFrame:
    """One row per cell: published and ours, both models, and the bound of an exact search. [s]"""
    cells = []
    for at, row in rows.items():
        scales = {COLUMNS[name].scale for name in row.published}
        ours = {name: each for name, each in OUR_COLUMNS.items() if each.scale in scales}
        for name, column in ({each: COLUMNS[each] for each in row.published} | ours).items():
            labels = {
                "row": at,
                "latency_over_forward": row.latency_over_forward,
                "transfer_over_forward": row.transfer_over_forward,
                "num_domains": row.num_domains,
                "schedule": name,
            }
            cells.append(labels | _figures(row, name, column, effort))
    figures = list(cells[0])[5:]
    return pd.DataFrame(cells).astype(dict.fromkeys(figures, float))


def _figures(
    row: DelayRow, name: str, column: ScheduleColumn, effort: Effort
) -> dict[str, float | None]:
    """Published figure of a cell, if there is one, and ours."""
    published_s = row.published.get(name)
    run = CrossPipeRun.of(row.delay, column)
    made = make_orders(run, column, effort)
    plain_s = run.seconds_per_microbatch(made.orders)
    stalled_s = bound_s = None
    if column.from_elsewhere:
        stalled_s = run.seconds_per_microbatch(made.orders, BLOCKING)
    if made.lower_bound_s is not None:
        bound_s = made.lower_bound_s / column.num_microbatches
    return {
        "published_s": published_s,
        "plain_s": plain_s,
        "plain_ratio": _ratio(plain_s, published_s),
        "stalled_s": stalled_s,
        "stalled_ratio": _ratio(stalled_s, published_s),
        "lower_bound_s": bound_s,
        "unproven_fraction": None if bound_s is None else 1.0 - bound_s / plain_s,
    }


def _ratio(ours_s: float | None, published_s: float | None) -> float | None:
    return None if ours_s is None or published_s is None else ours_s / published_s


def beside_ours(rows: Mapping[int, DelayRow], frame: pd.DataFrame) -> list[Compared]:
    """Rows and the predictions of both models; where the stall is off they are the same."""
    frame = frame.assign(with_stall_s=frame["stalled_s"].fillna(frame["plain_s"]))
    compared = []
    for at, row in rows.items():
        cells = frame[frame["row"] == at].set_index("schedule")
        ours = {
            "plain": _by_schedule(cells["plain_s"]),
            "with the stall": _by_schedule(cells["with_stall_s"]),
        }
        compared.append(Compared(number=at, row=row, ours=ours))
    return compared


def _by_schedule(figures: pd.Series) -> dict[str, float]:
    return {str(name): float(figure) for name, figure in figures.items()}


def search_notes(frame: pd.DataFrame, effort: Effort) -> list[str]:
    """Say when the exact searches stopped, where there are some."""
    if frame["unproven_fraction"].isna().all():
        return []
    return [
        f"A search of optimal_* stopped at a proof, --exact-work {effort.work:g} or "
        f"--exact-seconds {effort.seconds:g}; --exact-work inf --exact-seconds 300 gives each "
        "300 s.",
        "unproven_fraction is the part of plain_s above lower_bound_s, below which no order can "
        "be: 0 is proven optimal, up to the search's rounding.",
    ]


def draw(rows: Mapping[int, DelayRow], frame: pd.DataFrame) -> Figure:
    """One panel per row: published and ours for every schedule, and the bounds of the searches."""
    return Figure(
        name="picture",
        title="Seconds a microbatch, published and ours",
        seen=f"Seconds per microbatch of {frame['schedule'].nunique()} schedules in {len(rows)} "
        "rows of the published table; each panel has one row.",
        panels=tuple(_panel(row, frame[frame["row"] == at]) for at, row in rows.items()),
        width=8.0,
    )


def _panel(row: DelayRow, cells: pd.DataFrame) -> Panel:
    places = tuple(map(float, range(len(cells))))
    columns = [column for column, _, _ in _DRAWN]
    marks = tuple(
        Points(
            label=name,
            x=places,
            y=tuple(cells[column].astype(float)),
            colour=COLOURS[1 + place],
            symbol=symbol,
            is_open=True,
        )
        for place, (column, name, symbol) in enumerate(_DRAWN)
        if cells[column].notna().any()
    )
    names = [str(name) for name in cells["schedule"]]
    return Panel(
        x=Axis(ticks=tuple(zip(places, names, strict=True)), low=-0.5, high=len(cells) - 0.5),
        y=Axis(
            label="seconds per microbatch", low=0.0, high=1.1 * float(cells[columns].max().max())
        ),
        marks=marks,
        title=str(row),
        height=2.4,
    )
