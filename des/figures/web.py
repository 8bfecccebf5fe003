"""Figures on pages: the data and layout that plotly.js draws, as plain values for JSON.

Only traces that are drawn as SVG are used: those of WebGL compile code at run time, which pages
that forbid ``eval`` refuse. Colours of texts and grids come from the page's style sheet.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from des.figures.figure import Figure
from des.figures.marks import Arrow, GuideLine, Mark, Stripe
from des.figures.palette import BLUE, FAINT, GREY, INK
from des.figures.panels import Axis, Panel
from des.figures.spans import MOST_DECADES_OF_DIGITS, Span, axis_spans
from des.figures.web_traces import arrow_traces, escape_label, numbers, plotly_traces_of

Spec = dict[str, Any]

PIXELS_PER_INCH = 84
_GAP, _SHARED_GAP, _TITLE, _LEGEND_LINE, _TOP, _BOTTOM = 42, 12, 20, 20, 28, 46
_BETWEEN_COLUMNS = 0.09
_MOST_COUNTED = 7
_FONT = {"family": "system-ui, sans-serif", "size": 12, "color": INK}


def web_spec(figure: Figure) -> Spec:
    """Return ``data``, ``layout`` for wide pages and ``narrow``, what differs on narrow ones."""
    data: list[Spec] = []
    shown: set[str] = set()
    for place, panel in enumerate(figure.panels):
        for trace in _panel_traces(panel):
            label = trace.get("name", "")
            trace |= {"xaxis": f"x{_number(place)}", "yaxis": f"y{_number(place)}"}
            if "showlegend" not in trace:
                trace |= {"legendgroup": label, "showlegend": bool(label) and label not in shown}
                shown.add(label)
            data.append(trace)
    wide = _layout(figure, figure.columns)
    return {"data": data, "layout": wide, "narrow": _layout(figure, 1)}


def _panel_traces(panel: Panel) -> list[Spec]:
    arrows = arrow_traces(mark for mark in panel.marks if isinstance(mark, Arrow))
    traces = (trace for mark in panel.marks for trace in plotly_traces_of(mark, panel))
    return merge_traces([*arrows, *traces])


def merge_traces(traces: Iterable[Spec]) -> list[Spec]:
    """Return traces; neighbouring points or texts of one style are merged, to draw faster.

    Examples
    --------
    >>> one = {"mode": "text", "x": [1.0], "y": [2.0], "text": ["a"]}
    >>> merge_traces([one, one | {"x": [3.0], "text": ["b"]}])
    [{'mode': 'text', 'x': [1.0, 3.0], 'y': [2.0, 2.0], 'text': ['a', 'b']}]
    """
    found: list[Spec] = []
    for trace in traces:
        if found and trace.get("mode") in ("markers", "text") and _look(trace) == _look(found[-1]):
            found[-1] = found[-1] | {key: [*found[-1][key], *trace[key]] for key in _points(trace)}
        else:
            found.append(trace)
    return found


def _look(trace: Spec) -> Spec:
    return trace | dict.fromkeys(_points(trace))


def _points(trace: Spec) -> list[str]:
    """Keys of values of single points."""
    return [key for key in ("x", "y", "text", "hovertext") if key in trace]


def _number(place: int) -> str:
    """Number of a panel in the names of its axes; the first one has none."""
    return "" if place == 0 else str(place + 1)


def _layout(figure: Figure, columns: int) -> Spec:
    """Sizes, axes and what is not a trace; panels stand in ``columns`` side by side."""
    heights = [PIXELS_PER_INCH * inches for inches in figure.row_heights(columns)]
    has_titles = any(panel.title for panel in figure.panels)
    gap = (_SHARED_GAP if figure.shares_x else _GAP) + (_TITLE if has_titles else 0)
    num_labels = len(list(figure.labels()))
    legend = 0 if num_labels < 2 else _LEGEND_LINE * (1 + num_labels // (6 if columns > 1 else 4))
    inner = sum(heights) + gap * (len(heights) - 1)
    top = _TOP + (_TITLE if has_titles else 0)
    layout: Spec = {
        "height": round(inner + top + _BOTTOM + legend),
        "margin": {"l": 56, "r": 14, "t": top, "b": _BOTTOM + legend},
        "font": _FONT,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "barmode": "overlay",
        "hovermode": "closest",
        "dragmode": "zoom" if columns > 1 or len(figure.panels) == 1 else False,
        "showlegend": num_labels > 1,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": -(_BOTTOM - 4) / inner,
            "yanchor": "top",
            "font": {"size": 11},
        },
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
        "shapes": [],
        "annotations": [],
    }
    top_of_row, spans = float(inner), axis_spans(figure)
    for row, height in enumerate(heights):
        for column in range(columns):
            place = row * columns + column
            if place < len(figure.panels):
                share = (1.0 - _BETWEEN_COLUMNS * (columns - 1)) / columns
                left = column * (share + _BETWEEN_COLUMNS)
                domain = ([left, left + share], [(top_of_row - height) / inner, top_of_row / inner])
                _add_panel(layout, figure, place, spans[place], domain)
                if figure.shares_x and place + columns < len(figure.panels):
                    hidden = {"title": {"text": ""}, "showticklabels": False}
                    layout[f"xaxis{_number(place)}"] |= hidden
        top_of_row -= height + gap
    return layout


def _add_panel(
    layout: Spec,
    figure: Figure,
    place: int,
    spans: tuple[Span, Span],
    domain: tuple[list[float], list[float]],
) -> None:
    panel = figure.panels[place]
    number = _number(place)
    x_axis, y_axis = map(_axis, (panel.x, panel.y), spans, domain)
    x_axis |= {"anchor": f"y{number}", "showgrid": panel.grid in ("x", "both")}
    y_axis |= {"anchor": f"x{number}", "showgrid": panel.grid in ("y", "both")}
    if figure.shares_x and place:
        x_axis["matches"] = "x"
    if figure.shares_y and place:
        y_axis["matches"] = "y"
    if panel.has_equal_scales:
        y_axis |= {"scaleanchor": f"x{number}", "scaleratio": 1}
    layout[f"xaxis{number}"], layout[f"yaxis{number}"] = x_axis, y_axis
    if panel.title:
        layout["annotations"].append(
            {
                "text": escape_label(panel.title),
                "x": domain[0][0],
                "y": domain[1][1],
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 12},
            }
        )
    for mark in panel.marks:
        _add_mark(layout, mark, number)


def _axis(axis: Axis, span: Span, domain: Sequence[float]) -> Spec:
    found: Spec = {
        "domain": [round(one, 5) for one in domain],
        "title": {"text": escape_label(axis.label), "font": {"size": 12}, "standoff": 6},
        "gridcolor": FAINT,
        "zeroline": False,
        "automargin": True,
        "ticklabeloverflow": "allow",  # margins have room for labels, so none is measured again
        "visible": axis.is_shown,
        "nticks": 7,
    }
    if axis.scale == "log":
        found["type"] = "log"
        if (decades := math.log10(span[1] / span[0])) >= 1.0:
            found |= {"dtick": "D2" if decades <= MOST_DECADES_OF_DIGITS else 1, "nticks": 0}
    if axis.is_counted and span[1] - span[0] <= _MOST_COUNTED:
        found["dtick"] = 1
    if axis.ticks:
        found |= {
            "tickmode": "array",
            "tickvals": [at for at, _ in axis.ticks],
            "ticktext": [escape_label(text) for _, text in axis.ticks],
            "tickfont": {"size": 11},
        }
    ends = [math.log10(one) for one in span] if axis.scale == "log" else list(span)
    found["range"] = numbers(reversed(ends) if axis.is_reversed else ends)
    return found


def _add_mark(layout: Spec, mark: Mark, number: str) -> None:
    """Add a guide line or stripe as a shape of the layout; all other marks are traces."""
    at = {"xref": f"x{number}", "yref": f"y{number}"}
    if isinstance(mark, Stripe):
        layout["shapes"].append(
            at
            | {"type": "rect", "yref": f"y{number} domain", "y0": 0, "y1": 1}
            | {"x0": mark.start, "x1": mark.end, "layer": "below", "opacity": 0.5}
            | {"fillcolor": mark.colour, "line": {"width": 0}}
        )
    elif isinstance(mark, GuideLine):
        along: Spec = (
            {"yref": f"y{number} domain", "y0": 0, "y1": 1, "x0": mark.x, "x1": mark.x}
            if mark.x is not None
            else {"xref": f"x{number} domain", "x0": 0, "x1": 1, "y0": mark.y, "y1": mark.y}
        )
        line = {"color": mark.colour, "width": 1.4, "dash": mark.dash}
        layout["shapes"].append(at | along | {"type": "line", "line": line})
