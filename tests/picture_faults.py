"""Faults of pictures: data outside the axes, labels on each other or off the paper."""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Paper
from matplotlib.text import Text

from des.figures.figure import Figure
from des.figures.marks import Area, Arrow, Boxes, Cells, GuideLine, Line, Points, Stripe
from des.figures.panels import Panel, PanelGrid
from des.figures.paper import draw
from des.figures.web import web_spec

TOUCHING_PIXELS = 1.0
LEAST_TICK_PIXELS = 10.0
"""Distance of the rows of names on pages, whose letters are 11 pixels high."""


def faults_of(figure: Figure | Paper) -> list[str]:
    """All that is wrong with a picture, on paper and, if it is drawn there, on pages."""
    if isinstance(figure, Paper):
        figure.draw_without_rendering()
        return [*label_faults(figure), *line_faults(figure)]
    paper = draw(figure)
    paper.draw_without_rendering()
    found = [*label_faults(paper)]
    for axes, panel in zip(paper.axes, figure.panels, strict=False):
        found += [f"paper: {panel.title}: {one}" for one in outside(panel, axes)]
    return [*found, *web_faults(figure)]


def points_of(mark: object) -> Iterator[tuple[float | None, float | None]]:
    """Corners of a mark; None where it goes from end to end."""
    match mark:
        case Line() | Area():
            curves = ([mark.y] if isinstance(mark, Line) else []) + [mark.low, mark.high]
            for curve in curves:
                yield from zip(mark.x, curve, strict=False)
        case Points():
            wide = mark.x_half_widths or (0.0,) * len(mark.x)
            high = mark.y_half_widths or (0.0,) * len(mark.x)
            for x, y, dx, dy in zip(mark.x, mark.y, wide, high, strict=True):
                for sign in (-1, 1):
                    yield x + sign * np.nan_to_num(dx), y + sign * np.nan_to_num(dy)
        case Boxes():
            for start, end, row in zip(mark.starts, mark.ends, mark.rows, strict=True):
                yield start, row - mark.height / 2
                yield end, row + mark.height / 2
        case Cells():
            yield -0.5, -0.5
            yield len(mark.columns) - 0.5, len(mark.rows) - 0.5
        case Arrow():
            yield mark.x, mark.y
            yield mark.to_x, mark.to_y
        case GuideLine():
            yield mark.x, mark.y
        case Stripe():
            yield mark.start, None
            yield mark.end, None
        case _:
            yield mark.x, mark.y


def outside(panel: Panel, axes: Axes) -> Iterator[str]:
    """Data that the axes of a panel do not show."""
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    yield from _beyond(panel, (left, right), (low, high))


def _beyond(panel, x_span, y_span) -> Iterator[str]:
    for name, span, axis in (("x", x_span, panel.x), ("y", y_span, panel.y)):
        room = 1e-5 * max(map(abs, span))
        for mark in panel.marks:
            values = [at["xy".index(name)] for at in points_of(mark)]
            for value in values:
                if value is None or math.isnan(value):
                    continue
                if not span[0] - room <= value <= span[1] + room:
                    yield f"{name} {value:g} of {type(mark).__name__} is not within {span}"
                if axis.scale == "log" and value <= 0:
                    yield f"{name} {value:g} is on a logarithmic axis"


def texts_of(paper: Paper) -> dict[str, Text]:
    """Texts that are seen, by a name that says where they are."""
    hidden: set[int] = set()
    for axes in paper.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - room <= tick.get_loc() <= high + room or not axis.get_visible():
                    hidden |= {id(one) for one in tick.findobj(Text)}
            if not axis.get_visible():
                hidden |= {id(one) for one in axis.findobj(Text)}
        if not axes.get_visible():
            hidden |= {id(one) for one in axes.findobj(Text)}
    found = [one for one in paper.findobj(Text) if one.get_visible() and one.get_text().strip()]
    return {
        f"{one.get_text()!r} {place}": one
        for place, one in enumerate(found)
        if id(one) not in hidden
    }


def label_faults(paper: Paper) -> Iterator[str]:
    """Labels on each other, labels off the paper, and axes without two figures."""
    renderer = paper.canvas.get_renderer()
    boxes = {
        name: text.get_window_extent(renderer).padded(-TOUCHING_PIXELS)
        for name, text in texts_of(paper).items()
    }
    for (name, one), (other_name, other) in combinations(boxes.items(), 2):
        if one.overlaps(other):
            yield f"paper: {name} is on {other_name}"
    for name, one in boxes.items():
        if one.x0 < 0 or one.y0 < 0 or one.x1 > paper.bbox.x1 or one.y1 > paper.bbox.y1:
            yield f"paper: {name} is off the paper"
    for axes in paper.axes:
        if not axes.get_visible() or axes.get_label() == "<colorbar>":
            continue
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_offset_text().get_text():
                yield f"paper: figures of an axis are over {axis.get_offset_text().get_text()}"
            low, high = sorted(axis.get_view_interval())
            at = [one for one in axis.get_majorticklocs() if low <= one <= high]
            if axis.get_visible() and len(at) < 2:
                yield f"paper: {len(at)} ticks between {low:g} and {high:g}"


def line_faults(paper: Paper) -> Iterator[str]:
    """Lines and bars of a picture of matplotlib alone that its axes cut."""
    for axes in paper.axes:
        seen = axes.bbox.padded(1.5)
        for line in axes.lines:
            if line.get_transform() is axes.transData or line.get_transform() == axes.transData:
                for at in axes.transData.transform(line.get_xydata()):
                    if not seen.contains(*at):
                        yield f"paper: {at} of a line is outside"
        for patch in axes.patches:
            box = patch.get_window_extent()
            if not (seen.contains(*box.p0) and seen.contains(*box.p1)):
                yield f"paper: {box} is outside"


def web_faults(figure: PanelGrid) -> Iterator[str]:
    """Data outside the ranges of pages, and rows of names too near each other."""
    spec = web_spec(figure)
    for view in ("layout", "narrow"):
        layout = spec[view]
        inner = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
        for place, panel in enumerate(figure.panels):
            number = "" if place == 0 else str(place + 1)
            axes = layout[f"xaxis{number}"], layout[f"yaxis{number}"]
            x_span, y_span = (
                sorted(10**one if axis.get("type") == "log" else one for one in axis["range"])
                for axis in axes
            )
            yield from (f"{view}: {one}" for one in _beyond(panel, x_span, y_span))
            pixels = inner * (axes[1]["domain"][1] - axes[1]["domain"][0])
            ticks = sorted(at for at, _ in panel.y.ticks)
            gaps = [pixels * gap / (y_span[1] - y_span[0]) for gap in np.diff(ticks)]
            if gaps and min(gaps) < LEAST_TICK_PIXELS:
                yield f"{view}: names of rows are {min(gaps):.1f} pixels apart"
