"""Fronts as a figure: communication cost against time, one panel per world."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from agents.planners.pareto.fronts import Front
from scenarios.frame.plots import BLUE, FAINT, INK, REFERENCE_COLOURS
from scenarios.measure.pareto.study import WorldFronts

MOST_PANELS = 6
"""Worlds that are drawn, the first ones."""

_COLUMNS = 3
_MARKERS = ("o", "s", "^", "D", "v", "P")
_COLOURS = (BLUE, *REFERENCE_COLOURS)


def fronts_figure(comparisons: Sequence[WorldFronts]) -> Figure:
    """Draw the reference as steps and each method as marks, in USD and hours per 1e9 tokens.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    drawn = comparisons[:MOST_PANELS]
    if not drawn:
        raise ValueError("pareto figure: comparisons must have at least one, got none")
    columns = min(_COLUMNS, len(drawn))
    rows = math.ceil(len(drawn) / columns)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(4.2 * columns, 3.6 * rows + 0.5), dpi=130, layout=layout)
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, comparison in zip(panels, drawn, strict=False):
        _draw(axes, comparison)
    for axes in panels[len(drawn) :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(2 * columns, len(labels)),
        frameon=False,
    )
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _draw(axes: Axes, comparison: WorldFronts) -> None:
    times, costs = _figures(comparison.reference)
    axes.step(times, costs, where="post", color=INK, linewidth=1.2, label="reference")
    axes.set_xlim(left=0.0)
    for place, method in enumerate(comparison.methods):
        times, costs = _figures(method.front)
        axes.scatter(
            times,
            costs,
            s=30,
            marker=_MARKERS[place % len(_MARKERS)],
            facecolors="none",
            edgecolors=_COLOURS[place % len(_COLOURS)],
            label=method.method,
            zorder=3,
        )
    world = comparison.world
    axes.set_title(f"{world.name}: K {world.topology.num_domains}, {world.workload.name}", size=9)
    axes.set_xlabel("hours per 1e9 tokens")
    axes.set_ylabel("USD for links per 1e9 tokens")
    axes.grid(color=FAINT, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _figures(front: Front) -> tuple[list[float], list[float]]:
    ordered = sorted((one.time_s_per_token, one.cost_per_token) for one in front.figures)
    return [time_s * 1e9 / 3600.0 for time_s, _ in ordered], [cost * 1e9 for _, cost in ordered]
