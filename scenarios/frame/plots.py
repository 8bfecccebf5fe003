"""Figures of a run, drawn without pyplot so that nothing is global and equal input, equal bytes."""

import io
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from scenarios.frame.statistics import MeanInterval, mean_and_interval

# Okabe and Ito, "Color Universal Design", 2008: told apart with any colour vision.
BLUE = "#0072B2"
REFERENCE_COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK = "#333333"
FAINT = "#D9D9D9"
LABEL_HEIGHT = 0.085  # of one label, as a fraction of the lower panel
LOG_SCALE_FROM = 10.0  # a linear axis hides the small one of two times this far apart


def learning_curve(metrics: pd.DataFrame, references: Mapping[str, float]) -> Figure:
    """Draw the mean reward and the mean iteration time against environment steps.

    Parameters
    ----------
    metrics
        The training log, with the columns ``step``, ``mean_reward`` and ``mean_iteration_time_s``.
    references
        Mean iteration time of each planner to compare with, on the same draws. [s]

    Raises
    ------
    ValueError
        If a column is missing or there are no rows.
    """
    _require(metrics, ("step", "mean_reward", "mean_iteration_time_s"), "metrics")
    figure = new_figure(width_inches=7.0, height_inches=5.6)
    rewards, times = figure.subplots(2, 1, sharex=True)
    marker = "o" if len(metrics) == 1 else ""
    for axes, column in ((rewards, "mean_reward"), (times, "mean_iteration_time_s")):
        axes.plot(metrics["step"], metrics[column], color=BLUE, linewidth=1.8, marker=marker)
        _clean(axes, grid_axis="y")
    shown = [*metrics["mean_iteration_time_s"].dropna(), *references.values()]
    if shown and min(shown) > 0 and max(shown) / min(shown) >= LOG_SCALE_FROM:
        times.set_yscale("log")
        times.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        times.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        times.yaxis.set_minor_locator(NullLocator())
    _draw_references(times, references)
    rewards.set_ylabel("mean reward")
    times.set_ylabel("mean iteration time [s]")
    times.set_xlabel("environment steps")
    times.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.align_ylabels([rewards, times])
    return laid_out(figure)


def comparison_bars(evaluation: pd.DataFrame) -> Figure:
    """Draw each planner's mean iteration time with its 95 % interval, over a point per draw.

    Parameters
    ----------
    evaluation
        One row per draw and planner, with ``planner`` and ``iteration_time_s``.

    Raises
    ------
    ValueError
        If a column is missing, there are no rows or a time is not finite.
    """
    _require(evaluation, ("planner", "iteration_time_s"), "evaluation")
    times_s = {
        str(planner): group["iteration_time_s"].to_numpy(dtype=float)
        for planner, group in evaluation.groupby("planner", sort=True)
    }
    intervals = {planner: mean_and_interval(times) for planner, times in times_s.items()}
    planners = sorted(times_s, key=lambda planner: intervals[planner].mean)
    figure = new_figure(width_inches=7.0, height_inches=1.3 + 0.55 * len(planners))
    axes = figure.subplots()
    for place, planner in enumerate(planners):
        _draw_bar(axes, place, intervals[planner], times_s[planner])
    _clean(axes, grid_axis="x")
    axes.set_yticks(range(len(planners)), planners)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("iteration time [s]: mean, 95 % interval and each draw")
    return laid_out(figure)


def _draw_bar(axes: Axes, place: int, interval: MeanInterval, times_s: np.ndarray) -> None:
    axes.barh(place, interval.mean, height=0.62, color=BLUE, alpha=0.35, linewidth=0)
    offsets = place + 0.2 * _spread(len(times_s))
    axes.scatter(times_s, offsets, s=9, color=BLUE, alpha=0.55, linewidths=0, zorder=2)
    half_width = interval.half_width if len(times_s) > 1 else None
    axes.errorbar(
        interval.mean, place, xerr=half_width, color=INK, capsize=4, linewidth=1.6, zorder=3
    )
    spread = "" if half_width is None else f" ± {half_width:.2g}"
    axes.annotate(
        f"{interval.mean:.3g}{spread} s",
        xy=(1.01, place),
        xycoords=("axes fraction", "data"),
        va="center",
        color=INK,
        fontsize=9,
    )


def png_bytes(figure: Figure) -> bytes:
    """Render a figure; the same figure gives the same bytes on the same installation."""
    content = io.BytesIO()
    figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def new_figure(*, width_inches: float, height_inches: float) -> Figure:
    """Make a figure that knows how to draw itself."""
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(width_inches, height_inches), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def laid_out(figure: Figure) -> Figure:
    """Lay the figure out once; a second pass would move it by less than a pixel, but move it."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _require(frame: pd.DataFrame, columns: Iterable[str], name: str) -> None:
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(f"the {name} must have the columns {', '.join(missing)}")
    if frame.empty:
        raise ValueError(f"the {name} must have rows, got none")


def _clean(axes: Axes, *, grid_axis: str) -> None:
    """Leave the values and a faint grid; the frame and ticks say nothing."""
    axes.spines[["top", "right", "left" if grid_axis == "y" else "bottom"]].set_visible(False)
    axes.spines[["bottom" if grid_axis == "y" else "left"]].set_color(INK)
    axes.tick_params(length=0, colors=INK)
    axes.set_axisbelow(True)
    axes.grid(axis="y" if grid_axis == "y" else "x", color=FAINT, linewidth=0.8)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.xaxis.set_major_locator(MaxNLocator(6))


def _draw_references(axes: Axes, references: Mapping[str, float]) -> None:
    """Draw a dashed line per planner, named at its right end."""
    ordered = sorted(references.items(), key=lambda item: item[1])
    for place, (_, time_s) in enumerate(ordered):
        colour = REFERENCE_COLOURS[place % len(REFERENCE_COLOURS)]
        axes.axhline(time_s, color=colour, linewidth=1.3, linestyle=(0, (5, 3)), zorder=1)
    heights = _label_heights(axes, [time_s for _, time_s in ordered])
    for place, ((planner, time_s), height) in enumerate(zip(ordered, heights, strict=True)):
        axes.annotate(
            f"{planner} {time_s:.3g} s",
            xy=(1.01, height),
            xycoords="axes fraction",
            va="center",
            color=REFERENCE_COLOURS[place % len(REFERENCE_COLOURS)],
            fontsize=9,
        )


def _label_heights(axes: Axes, times_s: Sequence[float]) -> list[float]:
    """Height of each label as a fraction of the axes, moved where two would overlap."""
    to_fraction = axes.transScale + axes.transLimits
    heights: list[float] = []
    for time_s in times_s:
        wanted = float(to_fraction.transform((axes.get_xlim()[0], time_s))[1])
        heights.append(max(wanted, heights[-1] + LABEL_HEIGHT) if heights else wanted)
    overshoot = max(0.0, heights[-1] - 1.0) if heights else 0.0
    return [height - overshoot for height in heights]


def _spread(num_points: int) -> np.ndarray:
    """Offsets from -1 to 1 that keep neighbouring draws apart, the same every time."""
    return 2.0 * ((np.arange(num_points) * 0.618033988749895) % 1.0) - 1.0
