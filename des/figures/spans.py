"""Spans of axes: all that is drawn is inside, on paper and on pages."""

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from des.figures.marks import (
    Area,
    Arrow,
    Boxes,
    Cells,
    GuideLine,
    Line,
    Numbers,
    Points,
    Stripe,
    Text,
)
from des.figures.panels import Axis, Panel, PanelGrid

Span = tuple[float, float]

MOST_DECADES_OF_DIGITS = 3.0
"""Longer logarithmic axes have a tick a decade; from one decade on, ticks are at 1, 2 and 5."""

_MARGIN = 0.05
"""Room between what is drawn and the end of an axis that has no bound, over the span."""

_LEAST_SPAN = 1e-6
"""Spans below this share of the values are those of rounding."""


def axis_spans(figure: PanelGrid) -> list[tuple[Span, Span]]:
    """Return the least and the largest value of the x and the y axis of each panel.

    Examples
    --------
    >>> line = Line(label="", x=(0.0, 1.0), y=(3.0, 23.0), colour="red")
    >>> panel = Panel(x=Axis(high=2.0), y=Axis(low=0.0), marks=(line,))
    >>> axis_spans(PanelGrid(name="one", title="One", seen="A line.", panels=(panel,)))
    [((-0.1, 2.0), (0.0, 24.15))]
    """
    x = [_span(panel.x, panel, 0) for panel in figure.panels]
    y = [_span(panel.y, panel, 1) for panel in figure.panels]
    x = [_union(x)] * len(x) if figure.shares_x else x
    y = [_union(y)] * len(y) if figure.shares_y else y
    return list(zip(x, y, strict=True))


def _union(spans: Sequence[Span]) -> Span:
    return min(low for low, _ in spans), max(high for _, high in spans)


def _span(axis: Axis, panel: Panel, direction: int) -> Span:
    """Span of the marks and bounds, with a margin at ends without a bound."""
    bounds = [one for one in (axis.low, axis.high) if one is not None]
    parts = [values_of(mark)[direction] for mark in panel.marks]
    drawn = np.concatenate([np.asarray(part, dtype=float) for part in (bounds, *parts)])
    if axis.scale == "log":
        drawn = np.log10(drawn[drawn > 0])
        bounds = [float(np.log10(one)) for one in bounds]
    known = drawn[np.isfinite(drawn)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = high - low
    if room <= _LEAST_SPAN * max(abs(low), abs(high)):
        room = 2.0 * abs(low) or 2.0
    if not any(isinstance(mark, Cells) for mark in panel.marks):
        low -= 0.0 if low in bounds else _MARGIN * room
        high += 0.0 if high in bounds and high > low else _MARGIN * room
    return (10.0**low, 10.0**high) if axis.scale == "log" else (low, high)


@singledispatch
def values_of(mark: object) -> tuple[Numbers, Numbers]:
    """Return the x and y values between which a mark lies."""
    raise TypeError(f"figure: mark must be one of des.figures.marks, got {type(mark).__name__}")


@values_of.register
def _(mark: Line) -> tuple[Numbers, Numbers]:
    return mark.x, (*mark.y, *mark.low, *mark.high)


@values_of.register
def _(mark: Area) -> tuple[Numbers, Numbers]:
    return mark.x, (*mark.low, *mark.high)


@values_of.register
def _(mark: Points) -> tuple[Numbers, Numbers]:
    return _with_intervals(mark.x, mark.x_half_widths), _with_intervals(mark.y, mark.y_half_widths)


def _with_intervals(middles: Numbers, half_widths: Numbers) -> Numbers:
    ends = [sign * half for sign in (-1.0, 1.0) for half in half_widths]
    return (*middles, *(one + end for one, end in zip([*middles] * 2, ends, strict=False)))


@values_of.register
def _(mark: Boxes) -> tuple[Numbers, Numbers]:
    half = mark.height / 2
    rows = (min(mark.rows) - half, max(mark.rows) + half) if mark.rows else ()
    return (*mark.starts, *mark.ends), rows


@values_of.register
def _(mark: Cells) -> tuple[Numbers, Numbers]:
    return (-0.5, len(mark.columns) - 0.5), (-0.5, len(mark.rows) - 0.5)


@values_of.register
def _(mark: Arrow) -> tuple[Numbers, Numbers]:
    return (mark.x, mark.to_x), (mark.y, mark.to_y)


@values_of.register
def _(mark: Text) -> tuple[Numbers, Numbers]:
    return (mark.x,), (mark.y,)


@values_of.register
def _(mark: GuideLine) -> tuple[Numbers, Numbers]:
    return () if mark.x is None else (mark.x,), () if mark.y is None else (mark.y,)


@values_of.register
def _(mark: Stripe) -> tuple[Numbers, Numbers]:
    return (mark.start, mark.end), ()
