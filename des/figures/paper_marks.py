"""Marks on paper, each kind by a function of its own."""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure as Paper

from des.figures.marks import Area, Arrow, Boxes, Cells, GuideLine, Line, Points, Stripe, Text
from des.figures.palette import INK, SCALE

SMALL = 8.0
"""Size of small texts. [points]"""

_DASHES: dict[str, str | tuple[int, tuple[int, ...]]] = {
    "solid": "-",
    "dash": (0, (5, 3)),
    "dot": ":",
}
_MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "cross": "P",
    "x": "x",
}


@singledispatch
def draw_mark(mark: object, axes: Axes) -> None:
    """Draw one mark in a panel."""
    raise TypeError(f"figure: mark must be one of des.figures.marks, got {type(mark).__name__}")


@draw_mark.register
def _(mark: Line, axes: Axes) -> None:
    if mark.low:
        _fill(mark, axes, alpha=0.18)
    axes.plot(
        mark.x,
        mark.y,
        color=mark.colour,
        linewidth=mark.width,
        linestyle=_DASHES[mark.dash],
        drawstyle="steps-post" if mark.is_step else "default",
        marker=None if mark.symbol is None else _MARKERS[mark.symbol],
        markersize=4,
        label=mark.label or "_",
    )


def _fill(mark: Line | Area, axes: Axes, **look: Any) -> None:
    step: Literal["post"] | None = "post" if mark.is_step else None
    axes.fill_between(
        mark.x, mark.low, mark.high, step=step, color=mark.colour, linewidth=0, **look
    )


@draw_mark.register
def _(mark: Area, axes: Axes) -> None:
    _fill(mark, axes, label=mark.label or "_")


@draw_mark.register
def _(mark: Points, axes: Axes) -> None:
    face = "none" if mark.is_open else mark.colour
    axes.errorbar(
        mark.x,
        mark.y,
        xerr=_finite(mark.x_half_widths),
        yerr=_finite(mark.y_half_widths),
        fmt=_MARKERS[mark.symbol],
        color=mark.colour,
        markerfacecolor=face,
        markersize=mark.size,
        capsize=3,
        linewidth=1.2,
        label=mark.label or "_",
        zorder=3,
    )


def _finite(half_widths: tuple[float, ...]) -> np.ndarray | None:
    return np.nan_to_num(np.array(half_widths)) if half_widths else None


@draw_mark.register
def _(mark: Cells, axes: Axes) -> None:
    values = np.array([[np.nan if one is None else one for one in row] for row in mark.values])
    known = values[np.isfinite(values)]
    most = (float(known.max()) if known.size else 1.0) or 1.0
    if mark.kinds:
        kinds = ListedColormap([colour for _, colour in mark.kinds])
        axes.imshow(values, cmap=kinds, vmin=-0.5, vmax=len(mark.kinds) - 0.5, aspect="auto")
    else:
        scale = LinearSegmentedColormap.from_list("cells", list(SCALE))
        image = axes.imshow(values, cmap=scale, vmin=0.0, vmax=most, aspect="auto")
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label(mark.label, fontsize=SMALL, color=INK)
        bar.ax.tick_params(labelsize=SMALL, colors=INK)
    for row, texts in enumerate(mark.texts):
        for column, text in enumerate(texts):
            is_dark = not mark.kinds and np.nan_to_num(values[row, column]) > 0.6 * most
            ink = "white" if is_dark else "black"
            axes.text(column, row, text, color=ink, fontsize=7, ha="center", va="center")


@draw_mark.register
def _(mark: Arrow, axes: Axes) -> None:
    axes.annotate(
        "",
        xy=(mark.to_x, mark.to_y),
        xytext=(mark.x, mark.y),
        arrowprops={
            "arrowstyle": "-|>",
            "color": mark.colour,
            "linewidth": mark.width,
            "shrinkA": 9,
            "shrinkB": 11,
            "connectionstyle": "arc3,rad=0.08",
        },
    )


@draw_mark.register
def _(mark: Text, axes: Axes) -> None:
    vertical, horizontal = mark.at.split()
    axes.annotate(
        mark.text,
        (mark.x, mark.y),
        xytext=(
            {"right": 9, "left": -9}.get(horizontal, 0),
            {"top": 11, "bottom": -11}.get(vertical, 0),
        ),
        textcoords="offset points",
        ha={"right": "left", "left": "right"}.get(horizontal, "center"),
        va={"top": "bottom", "bottom": "top"}.get(vertical, "center"),
        fontsize=SMALL,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        parse_math=False,
        zorder=4,
    )


@draw_mark.register
def _(mark: GuideLine, axes: Axes) -> None:
    draw, at = (axes.axhline, mark.y) if mark.x is None else (axes.axvline, mark.x)
    assert at is not None
    draw(at, color=mark.colour, linewidth=1.3, linestyle=_DASHES[mark.dash], label=mark.label)


@draw_mark.register
def _(mark: Stripe, axes: Axes) -> None:
    axes.axvspan(mark.start, mark.end, color=mark.colour, linewidth=0, zorder=0)


_HAIRLINE_POINTS = 0.7
_NUMBER_POINTS = 6.5
_POINTS_PER_INCH = 72
_CHARACTER_WIDTH = 0.62
"""Width of a character of the default font over its size, generously."""


def draw_boxes(axes: Axes, kinds: Sequence[Boxes]) -> None:
    """Draw all boxes of a panel, once its limits and its place on the paper are known.

    Hairlines and numbers depend on how wide a second is on paper.
    """
    paper = axes.figure
    assert isinstance(paper, Paper)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    width, height = np.multiply(axes.get_position().size, paper.get_size_inches()).tolist()
    points_per_x = width * _POINTS_PER_INCH / abs(right - left)
    points_per_row = height * _POINTS_PER_INCH / abs(high - low)
    for boxes in kinds:
        axes.add_collection(_bars(boxes, points_per_x), autolim=False)
        if boxes.texts and points_per_row * boxes.height >= _NUMBER_POINTS:
            _draw_texts(axes, boxes, points_per_x)


def _bars(boxes: Boxes, points_per_x: float) -> PolyCollection:
    """Bars with white between wide ones."""
    start, end, row = (np.array(one, dtype=float) for one in (boxes.starts, boxes.ends, boxes.rows))
    top, bottom = row - boxes.height / 2, row + boxes.height / 2
    corners = [[start, top], [end, top], [end, bottom], [start, bottom]]
    width_points = (end - start) * points_per_x
    is_wide = width_points > 2 * _HAIRLINE_POINTS
    white_points = np.minimum(0.6, 0.12 * width_points)
    hairline_points = np.maximum(0.0, _HAIRLINE_POINTS - width_points)
    return PolyCollection(
        list(np.array(corners).transpose(2, 0, 1)),
        facecolors=boxes.colour,
        edgecolors=np.where(is_wide, "white", boxes.colour).tolist(),
        linewidths=np.where(is_wide, white_points, hairline_points).tolist(),
        snap=False,  # rounded to whole pixels, bars thinner than one would vanish
    )


def _draw_texts(axes: Axes, boxes: Boxes, points_per_x: float) -> None:
    for start, end, row, text in zip(
        boxes.starts, boxes.ends, boxes.rows, boxes.texts, strict=True
    ):
        width = (len(text) + 0.6) * _CHARACTER_WIDTH * _NUMBER_POINTS
        if (end - start) * points_per_x >= width:
            axes.text(
                (start + end) / 2,
                row,
                text,
                color=boxes.text_colour,
                fontsize=_NUMBER_POINTS,
                horizontalalignment="center",
                verticalalignment="center_baseline",
            )
