"""Gantt chart of a simulated iteration: what every stage and every link did when.

Only matplotlib's object interface is used, so drawing changes no state outside the figure.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from des.engine.result import IterationResult, Span, Transfer

# Blue and orange of M. Okabe and K. Ito's colour-blind-safe palette; messages in lighter tints.
_PASS_COLOUR = {"F": "#0072B2", "B": "#E69F00", "D": "#E69F00", "W": "#009E73"}
_PASS_INK = {"F": "white", "B": "black", "D": "black", "W": "white"}
_PASS_NAME = {
    "F": "forward pass",
    "B": "backward pass",
    "D": "input gradient",
    "W": "weight gradient",
}
_MESSAGE_COLOUR = {"F": "#56B4E9", "B": "#F5CE73", "G": "#CC79A7"}
_MESSAGE_NAME = {"F": "activation", "B": "gradient", "G": "sum of gradients"}
_IDLE_COLOUR = "#EEEEEE"
_QUIET_COLOUR = "#555555"

_WIDTH_INCHES = 13.0
_FRAME_INCHES = (12.0, 6.75)
_DOTS_PER_INCH = 100
_TOP_INCHES, _RIGHT_INCHES, _BOTTOM_INCHES = 0.95, 0.3, 0.6
_TALLEST_FIGURE_INCHES = 60.0
_ROW_INCHES = (0.14, 0.42)
_TALLEST_FRAME_ROW_INCHES = 0.8
_GAP_ROWS = 0.5
_BAR_HEIGHT_ROWS = 0.82
_HAIRLINE_POINTS = 0.7
_NUMBER_POINTS, _LABEL_POINTS, _SMALLEST_LABEL_POINTS = 6.5, 9.5, 6.0
_POINTS_PER_INCH = 72
_CHARACTER_WIDTH = 0.62
"""Width of a character of the default font over its size, generously."""


def draw_gantt(result: IterationResult, *, title: str = "") -> Figure:
    """Draw stages and, below, the link directions in use; time runs to the right.

    The figure is as high as its rows need. Microbatches are numbered where the numbers fit.
    """
    return _draw(result, title, None)


def gantt_png(result: IterationResult, *, title: str = "") -> bytes:
    """Return the chart as a PNG file; equal results give equal bytes."""
    content = io.BytesIO()
    figure = draw_gantt(result, title=title)
    figure.savefig(content, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return content.getvalue()


def gantt_rgb(result: IterationResult, *, title: str = "") -> np.ndarray:
    """Return the chart as pixels, ``uint8`` shaped (675, 1200, 3).

    The shape is the same for all results, so that charts can be the frames of a video.
    """
    content = io.BytesIO()
    _draw(result, title, _FRAME_INCHES).savefig(content, format="rgba", dpi=_DOTS_PER_INCH)
    width, height = (round(inches * _DOTS_PER_INCH) for inches in _FRAME_INCHES)
    pixels = np.frombuffer(content.getvalue(), dtype=np.uint8).reshape(height, width, 4)
    return pixels[..., :3].copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Sizes in inches, positions in rows from the top."""

    width: float
    height: float
    left: float
    row: float
    row_of_link: dict[int, float]
    labels: dict[float, str]
    num_rows: float

    @property
    def rectangle(self) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of the axes as fractions of the figure."""
        high = self.row * self.num_rows
        return (
            self.left / self.width,
            1 - (_TOP_INCHES + high) / self.height,
            (self.width - self.left - _RIGHT_INCHES) / self.width,
            high / self.height,
        )

    def points_per_s(self, makespan_s: float) -> float:
        """Width of a second on paper."""
        return self.rectangle[2] * self.width * _POINTS_PER_INCH / makespan_s


def _layout(result: IterationResult, size_inches: tuple[float, float] | None) -> _Layout:
    stages = {float(row): _stage_label(result, row) for row in range(len(result.stages))}
    used = [index for index, link in enumerate(result.links) if link.num_messages]
    row_of_link = {index: len(stages) + _GAP_ROWS + row for row, index in enumerate(used)}
    links = {row: _link_label(result, index) for index, row in row_of_link.items()}
    num_rows = max([*stages, *links]) + 1
    around = _TOP_INCHES + _BOTTOM_INCHES
    if size_inches is None:
        thinnest, thickest = _ROW_INCHES
        row = min(thickest, max(thinnest, 6.0 / num_rows))
        row = min(row, (_TALLEST_FIGURE_INCHES - around) / num_rows)
        size_inches = _WIDTH_INCHES, row * num_rows + around
    else:
        row = min(_TALLEST_FRAME_ROW_INCHES, (size_inches[1] - around) / num_rows)
    longest = max(map(len, [*stages.values(), *links.values()]))
    character = _CHARACTER_WIDTH * _label_points(row) / _POINTS_PER_INCH
    return _Layout(
        width=size_inches[0],
        height=size_inches[1],
        left=0.25 + longest * character,
        row=row,
        row_of_link=row_of_link,
        labels=_thinned(stages, row) | _thinned(links, row),
        num_rows=num_rows,
    )


def _stage_label(result: IterationResult, index: int) -> str:
    stage = result.stages[index]
    first, last = stage.first_layer, stage.first_layer + stage.num_layers - 1
    layers = f"layer {first}" if first == last else f"layers {first}-{last}"
    return f"{_short(stage.domain)}  {layers}"


def _link_label(result: IterationResult, index: int) -> str:
    link = result.links[index]
    return f"{_short(link.source)}→{_short(link.target)}"


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"


def _label_points(row_inches: float) -> float:
    fitting = 0.8 * row_inches * _POINTS_PER_INCH
    return min(_LABEL_POINTS, max(_SMALLEST_LABEL_POINTS, fitting))


def _thinned(labels: dict[float, str], row_inches: float) -> dict[float, str]:
    """Leave out labels that would run into each other."""
    step = math.ceil(_SMALLEST_LABEL_POINTS / (0.8 * row_inches * _POINTS_PER_INCH))
    return dict(list(labels.items())[:: max(1, step)])


def _draw(result: IterationResult, title: str, size_inches: tuple[float, float] | None) -> Figure:
    layout = _layout(result, size_inches)
    figure = Figure(figsize=(layout.width, layout.height), dpi=_DOTS_PER_INCH)
    FigureCanvasAgg(figure)  # so that it can be drawn without a window
    axes = figure.add_axes(layout.rectangle)
    _draw_bars(axes, result, layout)
    _draw_numbers(axes, result, layout)
    _draw_axes(axes, result, layout)
    _draw_head(figure, result, layout, title)
    return figure


def _draw_bars(axes: Axes, result: IterationResult, layout: _Layout) -> None:
    points_per_s = layout.points_per_s(result.makespan_s)
    num_stages = len(result.stages)
    idle = [(0.0, result.makespan_s, float(stage)) for stage in range(num_stages)]
    axes.add_collection(_bars(idle, [_IDLE_COLOUR] * num_stages, points_per_s))
    for bars, row_of, colour_of in (
        (result.spans, dict(enumerate(map(float, range(num_stages)))), _PASS_COLOUR),
        (result.transfers, layout.row_of_link, _MESSAGE_COLOUR),
    ):
        boxes = [(bar.start_s, bar.end_s, row_of[bar[0]]) for bar in bars]
        colours = [colour_of[bar.kind] for bar in bars]
        axes.add_collection(_bars(boxes, colours, points_per_s))


def _bars(
    boxes: Sequence[tuple[float, float, float]], colours: Sequence[str], points_per_s: float
) -> PolyCollection:
    """Bars from start to end on a row: white between wide ones, narrow ones a hairline at least."""
    start_s, end_s, row = np.array(boxes, dtype=float).reshape(-1, 3).T
    top, bottom = row - _BAR_HEIGHT_ROWS / 2, row + _BAR_HEIGHT_ROWS / 2
    corners = [[start_s, top], [end_s, top], [end_s, bottom], [start_s, bottom]]
    width_points = (end_s - start_s) * points_per_s
    is_wide = width_points > 2 * _HAIRLINE_POINTS
    white_points = np.minimum(0.6, 0.12 * width_points)
    hairline_points = np.maximum(0.0, _HAIRLINE_POINTS - width_points)
    return PolyCollection(
        list(np.array(corners).transpose(2, 0, 1)),
        facecolors=colours,
        edgecolors=np.where(is_wide, "white", colours).tolist(),
        linewidths=np.where(is_wide, white_points, hairline_points).tolist(),
        snap=False,  # rounded to whole pixels, bars thinner than one would vanish
    )


def _draw_numbers(axes: Axes, result: IterationResult, layout: _Layout) -> None:
    if layout.row * _POINTS_PER_INCH * _BAR_HEIGHT_ROWS < _NUMBER_POINTS:
        return
    points_per_s = layout.points_per_s(result.makespan_s)
    rows: list[tuple[Span | Transfer, float, str]] = [
        *((span, float(span.stage), _PASS_INK[span.kind]) for span in result.spans),
        *((move, layout.row_of_link[move.link], "black") for move in result.transfers),
    ]
    for bar, row, ink in rows:
        text = str(bar.microbatch)
        width = (len(text) + 0.6) * _CHARACTER_WIDTH * _NUMBER_POINTS
        if (bar.end_s - bar.start_s) * points_per_s >= width:
            axes.text(
                (bar.start_s + bar.end_s) / 2,
                row,
                text,
                color=ink,
                fontsize=_NUMBER_POINTS,
                horizontalalignment="center",
                verticalalignment="center_baseline",
            )


def _draw_axes(axes: Axes, result: IterationResult, layout: _Layout) -> None:
    axes.set_xlim(0.0, result.makespan_s)
    axes.set_ylim(layout.num_rows - 0.5, -0.5)
    axes.set_yticks(
        list(layout.labels),
        list(layout.labels.values()),
        fontsize=_label_points(layout.row),
        parse_math=False,
    )
    axes.set_xlabel("time in s")
    axes.tick_params(length=0, axis="y")
    axes.grid(axis="x", color="#CCCCCC", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def _draw_head(figure: Figure, result: IterationResult, layout: _Layout, title: str) -> None:
    left = layout.left / layout.width
    figures = (
        f"makespan {result.makespan_s:.4g} s    bubble fraction {result.bubble_fraction:.3f}    "
        f"utilisation of all GPUs {result.utilisation:.3f}"
    )
    first, second = 1 - 0.18 / layout.height, 1 - 0.5 / layout.height
    figure.text(left, first, title, fontsize=12, fontweight="bold", va="top", parse_math=False)
    figure.text(left, second, figures, fontsize=9.5, color=_QUIET_COLOUR, va="top")
    done = {span.kind for span in result.spans}
    names = {name: _PASS_COLOUR[kind] for kind, name in _PASS_NAME.items() if kind in done}
    sent = {move.kind for move in result.transfers}
    names |= {name: _MESSAGE_COLOUR[kind] for kind, name in _MESSAGE_NAME.items() if kind in sent}
    figure.legend(
        handles=[Patch(color=colour, label=name) for name, colour in names.items()],
        loc="upper right",
        bbox_to_anchor=(1 - _RIGHT_INCHES / layout.width, 1 - 0.42 / layout.height),
        ncols=len(names),
        fontsize=9,
        frameon=False,
        borderaxespad=0.0,
        handlelength=1.0,
        columnspacing=1.2,
    )
