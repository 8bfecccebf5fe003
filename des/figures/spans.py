"""Spans of axes: all that is drawn is inside, on paper and on pages."""

from collections.abc import Sequence

import numpy as np

from des.figures import marks
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
    >>> line = marks.Line(label="", x=(0.0, 1.0), y=(3.0, 23.0), colour="red")
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
    drawn = np.concatenate([bounds, *(_values(mark, direction) for mark in panel.marks)])
    if axis.scale == "log":
        drawn = np.log10(drawn[drawn > 0])
        bounds = [float(np.log10(one)) for one in bounds]
    known = drawn[np.isfinite(drawn)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = high - low
    if room <= _LEAST_SPAN * max(abs(low), abs(high)):
        room = 2.0 * abs(low) or 2.0
    if not any(isinstance(mark, marks.Cells) for mark in panel.marks):
        low -= 0.0 if low in bounds else _MARGIN * room
        high += 0.0 if high in bounds and high > low else _MARGIN * room
    return (10.0**low, 10.0**high) if axis.scale == "log" else (low, high)


_FIELDS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    marks.Line: (("x",), ("y", "low", "high")),
    marks.Area: (("x",), ("low", "high")),
    marks.Points: (("x",), ("y",)),
    marks.Boxes: (("starts", "ends"), ("rows",)),
    marks.Arrow: (("x", "to_x"), ("y", "to_y")),
    marks.Text: (("x",), ("y",)),
    marks.GuideLine: (("x",), ("y",)),
    marks.Stripe: (("start", "end"), ()),
}
"""Fields with the x and the y values of each kind of mark."""


def _values(mark: marks.Mark, direction: int) -> np.ndarray:
    """Ends of a mark along an axis, intervals and heights included; NaN where it has none."""
    if isinstance(mark, marks.Cells):
        return np.array([-0.5, len((mark.columns, mark.rows)[direction]) - 0.5])
    half: float | np.ndarray = 0.0
    if isinstance(mark, marks.Points):
        half = np.nan_to_num((mark.x_half_widths, mark.y_half_widths)[direction] or 0.0)
    elif isinstance(mark, marks.Boxes) and direction == 1:
        half = mark.height / 2
    parts = [getattr(mark, name) for name in _FIELDS[type(mark)][direction]]
    values = np.concatenate([np.atleast_1d(np.array(part, dtype=float)) for part in ((), *parts)])
    return np.concatenate([values - half, values + half])
