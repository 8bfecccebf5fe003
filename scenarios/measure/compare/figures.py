"""Bars of a comparison, with 95 % intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from scenarios.frame.plots import BLUE, FAINT, INK


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A method's share over the best, as a fraction; half width NaN where there is none."""

    name: str
    value: float
    half_width: float


def bars_of(panels: Sequence[tuple[str, Sequence[Bar]]], axis_title: str) -> Figure:
    """Draw bars, a panel below the other; values are shown in percent.

    Bars longer than 100 % are cut there, and intervals at the edge; the printed numbers are whole.

    Raises
    ------
    ValueError
        If there are no panels or one has no bars.
    """
    if not panels or not all(bars for _, bars in panels):
        raise ValueError("bars: panels must be one or more, each with a bar or more")
    heights = [len(bars) + 1.2 for _, bars in panels]
    figure = Figure(
        figsize=(7.0, 0.6 + 0.3 * sum(heights)),
        dpi=150,
        layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1),
    )
    FigureCanvasAgg(figure)
    every = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for (title, bars), (axes,) in zip(panels, every, strict=True):
        values = [100.0 * bar.value for bar in bars]
        shown = [min(value, 100.0) for value in values]
        errors = [0.0 if math.isnan(bar.half_width) else 100.0 * bar.half_width for bar in bars]
        axes.barh(range(len(bars)), shown, height=0.62, color=BLUE, alpha=0.4, linewidth=0)
        for place, (value, at, error) in enumerate(zip(values, shown, errors, strict=True)):
            if value <= 100.0:
                axes.errorbar(at, place, xerr=error, color=INK, capsize=3, linewidth=1.2)
            axes.annotate(
                f"{value:.2f} ± {error:.2f}" if error else f"{value:.2f}",
                xy=(1.01, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=8,
                color=INK,
            )
        axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(1.2 * min(0.0, *shown), 1.2 * max(0.01, *shown))
        axes.set_title(title, loc="left", fontsize=9, color=INK)
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.tick_params(length=0, colors=INK, labelsize=8)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=FAINT, linewidth=0.8)
    every[-1][0].set_xlabel(axis_title, fontsize=9, color=INK)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure
