"""Curves of the slowdown over the fluctuation of bandwidths, a panel for each latency jitter."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from agents.planners.names import POLICY
from scenarios.frame.plots import BLUE, FAINT, INK, REFERENCE_COLOURS
from scenarios.measure.robustness.methods import replanning

_COLUMNS = 3
_MARKERS = ("o", "s", "^", "D")
_COLOURS = REFERENCE_COLOURS


def robustness_figure(means: pd.DataFrame) -> Figure:
    """Draw the means of `scenarios.measure.robustness.curves.means_of`, in percent.

    Policies and planners that re-plan have whole lines, held plans dashed ones.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if means.empty:
        raise ValueError("robustness figure: means must have rows, got none")
    jitters = sorted(set(means["jitter"]))
    columns = min(_COLUMNS, len(jitters))
    rows = math.ceil(len(jitters) / columns)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(max(7.0, 4.2 * columns), 3.6 * rows + 1.2), dpi=130, layout=layout)
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axes, jitter in zip(panels, jitters, strict=False):
        _draw(axes, means[means["jitter"] == jitter])
        axes.set_title(f"latencies ±{100 * jitter:.0f} %", loc="left", fontsize=9, color=INK)
    for axes in panels[len(jitters) :]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel("slower than on held links [%]", color=INK)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _draw(axes: Axes, means: pd.DataFrame) -> None:
    deciding = {POLICY, *replanning()}
    for place, (name, curve) in enumerate(means.groupby("method", sort=False)):
        ordered = curve.sort_values("fluctuation")
        axes.plot(
            100.0 * ordered["fluctuation"],
            100.0 * ordered["mean"],
            color=BLUE if name == POLICY else _COLOURS[place % len(_COLOURS)],
            linestyle="-" if name in deciding else (0, (4, 2)),
            linewidth=2.2 if name == POLICY else 1.2,
            marker=_MARKERS[place // len(_COLOURS) % len(_MARKERS)],
            markersize=3.5,
            label=str(name),
        )
    axes.set_xlabel("bandwidths ± [%]", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0, colors=INK)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
