"""Axes on paper: their spans, and labels of ticks that do not run into each other."""

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis as PaperAxis
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.text import Text

from des.figures.palette import INK
from des.figures.panels import Axis
from des.figures.spans import MOST_DECADES_OF_DIGITS, Span

_ENGINEERING_FROM = 20_000.0
_APART_PIXELS = 2.0


def set_axis(axes: Axes, name: str, axis: Axis, span: Span, *, is_labelled: bool) -> None:
    """Give one axis its scale, its span, its ticks and its label."""
    own = axes.xaxis if name == "x" else axes.yaxis
    if axis.scale == "log":
        (axes.set_xscale if name == "x" else axes.set_yscale)("log")
        own.set_major_locator(_log_locator(math.log10(span[1] / span[0])))
        own.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        own.set_minor_locator(ticker.NullLocator())
    elif axis.ticks:
        own.set_ticks([at for at, _ in axis.ticks], [text for _, text in axis.ticks])
        for label in own.get_ticklabels():
            label.set_parse_math(False)
    else:
        own.set_major_locator(ticker.MaxNLocator(6, integer=axis.is_counted))
        if max(map(abs, span)) >= _ENGINEERING_FROM:
            own.set_major_formatter(ticker.EngFormatter(sep=""))
    (axes.set_xlim if name == "x" else axes.set_ylim)(*span)
    if axis.is_reversed:
        own.set_inverted(True)
    if is_labelled:
        own.set_label_text(axis.label, fontsize=9, color=INK, parse_math=False)
    own.set_visible(axis.is_shown)
    if not axis.is_shown:
        axes.spines[["bottom" if name == "x" else "left"]].set_visible(False)


def _log_locator(decades: float) -> ticker.Locator:
    if decades < 1.0:
        return ticker.MaxNLocator(6)
    subs = (1.0, 2.0, 5.0) if decades <= MOST_DECADES_OF_DIGITS else (1.0,)
    return ticker.LogLocator(subs=subs, numticks=8)


def turn_names(axes: Axes, axis: Axis, renderer: RendererAgg) -> bool:
    """Turn names below a panel that would run into each other; return whether they would."""
    labels = show_labels(axes.xaxis) if axis.ticks else []
    is_turned = _least_step(labels, renderer) > 1
    for label in labels if is_turned else []:
        label.set_rotation(90)
    return is_turned


def thin_labels(axes: Axes, renderer: RendererAgg) -> None:
    """Leave out labels between others where they run into each other, the same number each time."""
    for own in (axes.xaxis, axes.yaxis):
        labels = show_labels(own)
        step = _least_step(labels, renderer)
        for place, label in enumerate(labels):
            label.set_visible(place % step == 0)


def show_labels(own: PaperAxis) -> list[Text]:
    """Labels of the ticks between the ends of an axis, as far as they are shown."""
    low, high = sorted(own.get_view_interval())
    room = 1e-9 * (high - low)
    return [
        tick.label1
        for tick in own.get_major_ticks(len(own.get_majorticklocs()))
        if own.get_visible() and tick.label1.get_visible() and tick.label1.get_text()
        if low - room <= tick.get_loc() <= high + room
    ]


def _least_step(labels: Sequence[Text], renderer: RendererAgg) -> int:
    """Least step in which labels stand apart."""
    boxes = [label.get_window_extent(renderer).padded(_APART_PIXELS / 2) for label in labels]
    for step in range(1, len(boxes)):
        if not any(one.overlaps(other) for one, other in pairwise(boxes[::step])):
            return step
    return max(1, len(boxes))
