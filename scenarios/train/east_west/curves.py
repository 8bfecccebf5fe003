"""Learning curves of both stages of a training of Hi-PPO."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from scenarios.frame.metrics_log import read_metrics
from scenarios.frame.plots import BLUE, FAINT, laid_out, new_figure
from scenarios.train.east_west.stages import MoveTraining, PlacementStage
from scenarios.train.east_west.training import WALL_COLUMNS


def stage_curves(folder: Path) -> Figure:
    """Draw what drawn orders cost over the best found, and episodes over the clairvoyant.

    Raises
    ------
    ValueError
        If a log is missing or corrupt.
    """
    placement = _log(folder / PlacementStage.log, PlacementStage.columns)
    moves = _log(folder / MoveTraining.log, MoveTraining.columns)
    figure = new_figure(width_inches=7.0, height_inches=4.6)
    panels = figure.subplots(2, 1)
    excess = placement["mean_cost"] - placement["found_cost"]
    panels[0].plot(placement["update"], 100 * excess, color=BLUE)
    panels[0].set_ylabel("orders drawn: time\nover the best found [%]")
    panels[1].plot(moves["update"], 100 * (moves["cost"] - 1.0), color=BLUE)
    panels[1].set_ylabel("episodes: time over\nthe clairvoyant [%]")
    for axes in panels:
        axes.grid(axis="y", color=FAINT)
        axes.spines[["top", "right"]].set_visible(False)
    panels[1].set_xlabel("update")
    return laid_out(figure)


def _log(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    return read_metrics(path, learning_columns=columns, wall_clock_columns=WALL_COLUMNS)
