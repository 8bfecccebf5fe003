"""Report and picture of the levels of detail."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from des.figures.figure import Figure, panel_figure
from des.figures.marks import SYMBOLS, Line
from des.figures.palette import COLOURS
from des.figures.panels import Axis
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.study.fidelity.levels import DetailLevel, choices_kept


def fidelity_report(
    frame: pd.DataFrame,
    placements: pd.DataFrame,
    *,
    cpu_s: Mapping[str, float],
    levels: Sequence[DetailLevel],
    caveats: tuple[str, ...],
    repeat: Repetition,
) -> Report:
    """Return the report: what each level changes against the one before, and what it costs.

    Parameters
    ----------
    frame, placements
        Rows of `scenarios.study.fidelity.levels.level_rows` and of ``placement_rows``.
    cpu_s
        CPU seconds of a placement by level.
    """
    kept = choices_kept(frame)
    num_kept = int((frame["regret_fraction"] == 0.0).sum())
    return Report(
        title="Levels of detail",
        question="Does the best plan of one level of detail stay the best on the next?",
        answer=f"It does in {num_kept} of {len(kept)} steps from one level to the next.",
        repeat=repeat,
        tables=(
            PageTable(
                title="Levels, each against the one before",
                head=(
                    "level",
                    "iteration [s]",
                    "exposed [s]",
                    "error [%]",
                    "Kendall tau",
                    "regret [%]",
                    "CPU [s]",
                ),
                rows=tuple(_row(row, cpu_s) for row in frame.to_dict("records")),
                notes=(
                    "Means over placements. Error: mean absolute difference of iteration times. "
                    "Regret: how much longer the best plan of the level before takes than the best "
                    "plan of this level. CPU: of a placement, without the first.",
                ),
            ),
            PageTable(
                title="What a level adds",
                head=("level", "adds"),
                rows=tuple((level.name, level.adds) for level in levels),
                notes=tuple(f"{line[0].upper()}{line[1:]}." for line in kept),
            ),
        ),
        figures=(levels_figure(placements),),
        caveats=caveats,
    )


def _row(row: Mapping[Hashable, Any], cpu_s: Mapping[str, float]) -> tuple[str, ...]:
    level = str(row["level"])
    return (
        level,
        f"{row['iteration_s']:.4f}",
        f"{row['exposed_s']:.4f}",
        _percent(row.get("error_before_fraction")),
        _number(row.get("kendall_tau")),
        _percent(row.get("regret_fraction")),
        f"{cpu_s[level]:.4f}",
    )


def _percent(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{100.0 * value:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def levels_figure(rows: pd.DataFrame) -> Figure:
    """Return the times of all levels over placements, in the order of the first level's times.

    Parameters
    ----------
    rows
        Those of `scenarios.study.fidelity.levels.placement_rows`.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if rows.empty:
        raise ValueError("levels figure: rows must be at least one, got none")
    levels = list(dict.fromkeys(rows["level"]))
    first = rows[rows["level"] == levels[0]].sort_values("iteration_s", kind="stable")
    order = first["placement"].tolist()
    lines = []
    for number, level in enumerate(levels):
        times = rows[rows["level"] == level].set_index("placement")["iteration_s"]
        lines.append(
            Line(
                label=level,
                x=tuple(range(1, len(order) + 1)),
                y=tuple(times.loc[order].tolist()),
                colour=COLOURS[number % len(COLOURS)],
                dash="solid" if number < len(COLOURS) else "dash",
                symbol=SYMBOLS[number % len(SYMBOLS)],
            )
        )
    return panel_figure(
        name="levels",
        title="The same placements at every level of detail",
        seen=f"Iteration times of {len(order)} placements at {len(levels)} levels, in the order of "
        f"those of {levels[0]}; where a curve falls, a level ranks two placements the other way.",
        x=Axis(label=f"placement, by its rank at {levels[0]}", is_counted=True),
        y=Axis(label="iteration time [s]", scale="log"),
        marks=lines,
        height=3.4,
    )
