"""Traces of plotly.js for each kind of mark."""

import math
from collections.abc import Iterable, Sequence
from functools import singledispatch
from html import escape
from typing import Any

from des.base.grouping import grouped
from des.figures.marks import (
    Area,
    Arrow,
    Boxes,
    Cells,
    GuideLine,
    Line,
    Points,
    Stripe,
    Text,
)
from des.figures.palette import SCALE
from des.figures.panels import Panel

Trace = dict[str, Any]

MOST_BARS = 4000
"""Boxes of one kind that are drawn as bars of their own; more are drawn as one path, which is
quick at any number and shows no texts on hovering."""

_DIGITS = 6
_HEAD_STANDOFF = 9


@singledispatch
def plotly_traces_of(mark: object, panel: Panel) -> list[Trace]:
    """Return the traces of one mark."""
    raise TypeError(f"figure: mark must be one of des.figures.marks, got {type(mark).__name__}")


@plotly_traces_of.register
def _(mark: Line, panel: Panel) -> list[Trace]:
    shape = "hv" if mark.is_step else "linear"
    line = {"color": mark.colour, "width": mark.width, "dash": mark.dash, "shape": shape}
    trace = {
        "type": "scatter",
        "mode": "lines" if mark.symbol is None else "lines+markers",
        "name": escape_label(mark.label),
        "x": numbers(mark.x),
        "y": numbers(mark.y),
        "line": line,
    }
    if mark.symbol is not None:
        trace["marker"] = {"symbol": mark.symbol, "size": 6, "color": mark.colour}
    if not mark.low:
        return [trace]
    band = {"opacity": 0.22, "showlegend": False, "legendgroup": trace["name"]}
    return [_between(mark) | band, trace]


@plotly_traces_of.register
def _(mark: Area, panel: Panel) -> list[Trace]:
    return [_between(mark) | {"name": escape_label(mark.label)}]


def _between(mark: Line | Area) -> Trace:
    """A closed path around an area, there along its top and back along its bottom."""
    there, back = (_path(mark.x, y, is_step=mark.is_step) for y in (mark.high, mark.low))
    return _fill((*there, *back[::-1]), mark.colour, {"width": 0})


def _fill(places: Sequence[tuple[float | None, float | None]], colour: str, line: Trace) -> Trace:
    """Closed paths around fields of a colour, one after each place of None."""
    return {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "fillcolor": colour,
        "line": line,
        "hoverinfo": "skip",
        "x": numbers(x for x, _ in places),
        "y": numbers(y for _, y in places),
    }


def _path(x: Sequence[float], y: Sequence[float], *, is_step: bool) -> list[tuple[float, float]]:
    if not is_step:
        return list(zip(x, y, strict=True))
    found = [(x[0], y[0])]
    for at, value in zip(x[1:], y[1:], strict=True):
        found += [(at, found[-1][1]), (at, value)]
    return found


@plotly_traces_of.register
def _(mark: Points, panel: Panel) -> list[Trace]:
    marker: Trace = {"symbol": mark.symbol, "size": mark.size + 2, "color": mark.colour}
    if mark.is_open:
        marker |= {"symbol": f"{mark.symbol}-open", "line": {"width": 1.6}}
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "name": escape_label(mark.label),
        "x": numbers(mark.x),
        "y": numbers(mark.y),
        "marker": marker,
    }
    for axis, half_widths in (("x", mark.x_half_widths), ("y", mark.y_half_widths)):
        if half_widths:
            known = [0.0 if math.isnan(one) else one for one in half_widths]
            trace[f"error_{axis}"] = {"type": "data", "array": numbers(known), "width": 4}
    if mark.hovers:
        trace |= _hover(texts(mark.hovers))
    return [trace]


@plotly_traces_of.register
def _(mark: Boxes, panel: Panel) -> list[Trace]:
    name = escape_label(mark.label)
    if len(mark.starts) > MOST_BARS:
        return [_boxes_as_path(mark) | {"name": name}]
    trace: Trace = {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "base": numbers(mark.starts),
        "x": numbers(e - s for s, e in zip(mark.starts, mark.ends, strict=True)),
        "y": numbers(mark.rows),
        "width": mark.height,
        "marker": {"color": mark.colour, "line": {"width": 0}},
    }
    if mark.hovers:
        trace |= _hover(texts(mark.hovers))
    else:
        trace["hoverinfo"] = "skip"
    return [trace]


def _boxes_as_path(mark: Boxes) -> Trace:
    places: list[tuple[float | None, float | None]] = []
    for start, end, row in zip(mark.starts, mark.ends, mark.rows, strict=True):
        low, high = row - mark.height / 2, row + mark.height / 2
        places += [(start, low), (end, low), (end, high), (start, high), (start, low), (None, None)]
    return _fill(places, mark.colour, {"width": 0.7, "color": mark.colour})


@plotly_traces_of.register
def _(mark: Cells, panel: Panel) -> list[Trace]:
    known = [one for row in mark.values for one in row if one is not None]
    num = len(mark.kinds)
    trace: Trace = {
        "type": "heatmap",
        "showlegend": False,
        "x": list(range(len(mark.columns))),
        "y": list(range(len(mark.rows))),
        "z": [numbers(row) for row in mark.values],
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
    }
    if mark.kinds:
        steps = [
            [at / num, hue]
            for place, (_, hue) in enumerate(mark.kinds)
            for at in (place, place + 1)
        ]
        trace |= {"zmin": -0.5, "zmax": num - 0.5, "colorscale": steps, "showscale": False}
    else:
        title = {"text": escape_label(mark.label), "side": "right"}
        trace |= {"zmin": 0.0, "zmax": max(known, default=1.0) or 1.0}
        trace |= {"colorscale": [list(stop) for stop in SCALE]}
        trace |= {"colorbar": {"title": title, "thickness": 12, "len": 0.9}}
    if mark.texts:
        trace |= {"text": [texts(row) for row in mark.texts], "texttemplate": "%{text}"}
    if mark.hovers:
        trace |= _hover([texts(row) for row in mark.hovers])
    legend = (_legend_entry(name, colour) for name, colour in mark.shown_kinds.items())
    return [trace, *legend]


def _legend_entry(name: str, colour: str) -> Trace:
    marker = {"symbol": "square", "size": 10, "color": colour}
    at: Trace = {"type": "scatter", "mode": "markers", "x": [None], "y": [None], "marker": marker}
    return at | {"name": escape_label(name)}


@plotly_traces_of.register
def _(mark: Text, panel: Panel) -> list[Trace]:
    trace = {"type": "scatter", "mode": "text", "x": [mark.x], "y": [mark.y]}
    where = {"cliponaxis": False, "textposition": mark.at, "hoverinfo": "skip", "showlegend": False}
    before = "\u00a0\n" if mark.at == "bottom center" else ""  # clear of the point at the place
    after = "\n\u00a0" if mark.at == "top center" else ""
    return [trace | {"text": texts([before + mark.text + after])} | where]


@plotly_traces_of.register
def _(mark: Arrow, panel: Panel) -> list[Trace]:
    """An invisible point that shows the text of the arrow; `arrow_traces` has the arrow itself."""
    at = {"x": [0.4 * mark.x + 0.6 * mark.to_x], "y": [0.4 * mark.y + 0.6 * mark.to_y]}
    point = {"type": "scatter", "mode": "markers", "marker": {"opacity": 0, "size": 16}}
    return [point | at | _hover(texts([mark.hover])) | {"showlegend": False}]


def _hover(said: Sequence[object]) -> Trace:
    return {"hovertext": said, "hovertemplate": "%{hovertext}<extra></extra>"}


def arrow_traces(arrows: Iterable[Arrow]) -> list[Trace]:
    """Return a trace for the arrows of each colour and width: lines with heads.

    Examples
    --------
    >>> arrow = Arrow(x=0.0, y=0.0, to_x=1.0, to_y=2.0, colour="red", width=1.0, hover="")
    >>> (trace,) = arrow_traces([arrow, arrow])
    >>> trace["x"], trace["marker"]["size"]
    ([0.0, 1.0, None, 0.0, 1.0, None], [0, 9.0, 0, 0, 9.0, 0])
    """
    alike = grouped(((one.colour, one.width), one) for one in arrows)
    return [_alike_arrows(colour, width, same) for (colour, width), same in alike.items()]


def _alike_arrows(colour: str, width: float, arrows: Sequence[Arrow]) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": numbers(x for one in arrows for x in (one.x, one.to_x, None)),
        "y": numbers(y for one in arrows for y in (one.y, one.to_y, None)),
        "line": {"color": colour, "width": max(0.6, width)},
        "marker": {
            "symbol": "arrow",
            "angleref": "previous",
            "standoff": _HEAD_STANDOFF,
            "size": [0, 6.0 + 3.0 * width, 0] * len(arrows),
            "color": colour,
            "opacity": 1,
            "line": {"width": 0},
        },
    }


@plotly_traces_of.register
def _(mark: GuideLine, panel: Panel) -> list[Trace]:
    """An empty line for the legend; the rule itself is a shape of the layout."""
    line = {"color": mark.colour, "dash": mark.dash, "width": 1.4}
    name = escape_label(mark.label)
    return [
        {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "line": line, "name": name}
    ]


@plotly_traces_of.register
def _(mark: Stripe, panel: Panel) -> list[Trace]:
    return []


def numbers(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers for JSON, at six digits; what is none or not finite is None.

    Examples
    --------
    >>> numbers([1.23456789, float("nan"), None, 3])
    [1.23457, None, None, 3.0]
    """
    return [
        None if one is None or not math.isfinite(one) else float(f"{one:.{_DIGITS}g}")
        for one in values
    ]


def texts(values: Iterable[str]) -> list[str]:
    """Return texts for plotly, which reads some tags of HTML; lines stay apart."""
    return [escape_label(one) for one in values]


def escape_label(text: str) -> str:
    """Return a text as plotly shows it letter by letter.

    Examples
    --------
    >>> escape_label("a<b>")
    'a&lt;b&gt;'
    """
    return escape(text, quote=False).replace("\n", "<br>")
