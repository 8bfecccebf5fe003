"""Learning curves of both stages of a training of Hi-PPO."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import Line
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel
from scenarios.frame.metrics_log import read_metrics
from scenarios.train.east_west.stages import MOVES, PLACEMENT
from scenarios.train.east_west.training import WALL_COLUMNS

_LEAST_PERCENT = 0.01
"""Least end of an axis; what is far below is rounding."""


def stage_curves(folder: Path) -> Figure:
    """Return what drawn orders cost over the best found, and episodes over the clairvoyant.

    Raises
    ------
    ValueError
        If a log is missing or corrupt.
    """
    placement = _log(folder / PLACEMENT.log, PLACEMENT.columns)
    moves = _log(folder / MOVES.log, MOVES.columns)
    excess = 100.0 * (placement["mean_cost"] - placement["found_cost"]).to_numpy(dtype=float)
    over = 100.0 * (moves["cost"].to_numpy(dtype=float) - 1.0)
    return Figure(
        name="learning_curve",
        title="Learning curves of both stages",
        seen=f"Placement: time of drawn orders over the best found, {_ends(excess)}; moves: time "
        f"of episodes over the clairvoyant, {_ends(over)}.",
        panels=(
            _panel(placement["update"], excess, "orders drawn: time over the best found [%]"),
            _panel(moves["update"], over, "episodes: time over the clairvoyant [%]"),
        ),
    )


def _ends(values: np.ndarray) -> str:
    if not len(values):
        return "no update"
    return f"{values[0]:.2f} % at first and {values[-1]:.2f} % at last"


def _panel(updates: "pd.Series[int]", values: np.ndarray, title: str) -> Panel:
    line = Line(label="", x=tuple(updates.astype(float)), y=tuple(values.tolist()), colour=BLUE)
    y = Axis(label="[%]", low=0.0, high=_LEAST_PERCENT)
    return Panel(x=Axis(label="update", is_counted=True), y=y, marks=(line,), title=title)


def _log(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    return read_metrics(path, learning_columns=columns, wall_clock_columns=WALL_COLUMNS)
