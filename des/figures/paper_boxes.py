"""Boxes on paper: narrow ones a hairline at least, numbered where the numbers fit."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure as Paper

from des.figures.marks import Boxes

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
