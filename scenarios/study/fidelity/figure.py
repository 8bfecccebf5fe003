"""Iteration times of the same placements at every level of detail."""

import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel


def levels_figure(rows: pd.DataFrame) -> Figure:
    """Return the times of all levels over placements, in the order of the first level's times.

    Parameters
    ----------
    rows
        Those of `scenarios.study.fidelity.comparison.placement_rows`.

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
    return Figure(
        name="levels",
        title="The same placements at every level of detail",
        seen=f"Iteration times of {len(order)} placements at {len(levels)} levels, in the order of "
        f"those of {levels[0]}; where a curve falls, a level ranks two placements the other way.",
        panels=(
            Panel(
                x=Axis(label=f"placement, by its rank at {levels[0]}", is_counted=True),
                y=Axis(label="iteration time [s]", scale="log"),
                marks=tuple(lines),
                height=3.4,
            ),
        ),
    )
