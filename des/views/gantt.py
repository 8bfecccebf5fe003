"""Gantt chart of a simulated iteration: what every stage and every link did when."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from des.base.lazy import lazy_imports
from des.engine.result import IterationResult, Span, Transfer
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Boxes
from des.figures.palette import AMBER, BLUE, GREEN, ORANGE, PURPLE, SKY
from des.figures.panels import Axis

with lazy_imports(__name__):
    from des.figures import paper

_LOOKS: Mapping[tuple[type[Span | Transfer], str], tuple[str, str, str]] = {
    (Span, "F"): ("forward pass", BLUE, "#FFFFFF"),
    (Span, "B"): ("backward pass", ORANGE, "#000000"),
    (Span, "D"): ("input gradient", ORANGE, "#000000"),
    (Span, "W"): ("weight gradient", GREEN, "#FFFFFF"),
    (Transfer, "F"): ("activation", SKY, "#000000"),
    (Transfer, "B"): ("gradient", AMBER, "#000000"),
    (Transfer, "G"): ("sum of gradients", PURPLE, "#000000"),
}
"""Name, colour and colour of numbers of each kind of pass; messages have lighter tints."""

_FRAME_INCHES, _FRAME_DPI = (12.0, 6.75), 100
_WIDTH_INCHES = 12.0
_ROW_INCHES = (0.14, 0.42)
_MOST_INCHES = 56.0
_MOST_LABELS_PER_INCH = 8.0
_GAP_ROWS = 0.5
_MOST_BARS = 10_000
"""Passes and messages of a chart; of more the first ones are drawn, so that pages stay small."""


def gantt_figure(result: IterationResult, *, title: str = "") -> Figure:
    """Return stages and, below, the link directions in use; time runs to the right.

    The figure is as high as its rows need. Microbatches are numbered where the numbers fit. Of more
    than `_MOST_BARS` passes and messages the first are drawn, and the note says until when.
    """
    bars, drawn_s, part = _first_bars(result)
    used = [index for index, link in enumerate(result.links) if link.num_messages]
    num_stages = len(result.stages)
    row_of_link = {index: num_stages + _GAP_ROWS + row for row, index in enumerate(used)}
    num_rows = num_stages + (_GAP_ROWS + len(used) if used else 0)
    row = min(_ROW_INCHES[1], max(_ROW_INCHES[0], 6.0 / num_rows), _MOST_INCHES / num_rows)
    labels = [(float(at), _stage_label(result, at)) for at in range(num_stages)]
    labels = _thin(labels, row) + _thin(
        [(at, _link_label(result, index)) for index, at in row_of_link.items()], row
    )
    return panel_figure(
        name="gantt",
        title=title or "One iteration",
        note=f"makespan {result.makespan_s:.4g} s    bubble fraction {result.bubble_fraction:.3f}"
        f"    utilisation of all GPUs {result.utilisation:.3f}{part}",
        seen=gantt_sentence(result),
        x=Axis(label="time in s", low=0.0, high=drawn_s),
        y=Axis(low=-0.5, high=num_rows - 0.5, ticks=tuple(labels), is_reversed=True),
        marks=tuple(_marks(result, bars, row_of_link)),
        height=max(1.2, row * num_rows),
        grid="x",
        width=_WIDTH_INCHES,
    )


def gantt_sentence(result: IterationResult) -> str:
    """Return what a Gantt chart of a result shows, in a sentence."""
    busiest = max(result.stages, key=lambda stage: stage.busy_s)
    text = (
        f"Passes of {len(result.stages)} stages over {result.makespan_s:.4g} s; the stage of "
        f"{busiest.domain} from layer {busiest.first_layer} computes longest, "
        f"{100 * busiest.busy_s / result.makespan_s:.0f} % of the time"
    )
    if not result.transfers:
        return f"{text}. No link is used."
    link = max(result.links, key=lambda one: one.busy_s)
    return (
        f"{text}. Below, messages on {sum(1 for one in result.links if one.num_messages)} links; "
        f"{link.source} to {link.target} sends longest, "
        f"{100 * link.busy_s / result.makespan_s:.0f} % of the time."
    )


def gantt_rgb(result: IterationResult, *, title: str = "") -> np.ndarray:
    """Return the chart as pixels, ``uint8`` shaped (675, 1200, 3).

    The shape is the same for all results, so that charts can be the frames of a video.
    """
    content = io.BytesIO()
    figure = gantt_figure(result, title=title)
    drawn = paper.draw(figure, size=_FRAME_INCHES, dpi=_FRAME_DPI)
    drawn.savefig(content, format="rgba", dpi=_FRAME_DPI)
    width, height = (round(inches * _FRAME_DPI) for inches in _FRAME_INCHES)
    pixels = np.frombuffer(content.getvalue(), dtype=np.uint8).reshape(height, width, 4)
    return pixels[..., :3].copy()


def _first_bars(result: IterationResult) -> tuple[Sequence[Span | Transfer], float, str]:
    """Passes and messages that are drawn, until when, and a note if these are not all."""
    every: list[Span | Transfer] = [*result.spans, *result.transfers]
    if len(every) <= _MOST_BARS:
        return every, result.makespan_s, ""
    bars = sorted(every, key=lambda bar: bar.start_s)[:_MOST_BARS]
    drawn_s = max(bar.end_s for bar in bars)
    counts = f"{len(bars):,} of {len(every):,} passes and messages"
    return bars, drawn_s, f"    drawn: the first {drawn_s:.4g} s, {counts}"


def _marks(
    result: IterationResult, bars: Sequence[Span | Transfer], row_of_link: dict[int, float]
) -> Iterator[Boxes]:
    for (bar_type, kind), (name, colour, ink) in _LOOKS.items():
        own = [bar for bar in bars if isinstance(bar, bar_type) and bar.kind == kind]
        if own:
            rows, hovers = zip(
                *(_row_and_hover(result, name, bar, row_of_link) for bar in own), strict=True
            )
            yield Boxes(
                label=name,
                starts=tuple(bar.start_s for bar in own),
                ends=tuple(bar.end_s for bar in own),
                rows=rows,
                colour=colour,
                texts=tuple(str(bar.microbatch) for bar in own),
                text_colour=ink,
                hovers=hovers,
            )


def _row_and_hover(
    result: IterationResult, name: str, bar: Span | Transfer, row_of_link: dict[int, float]
) -> tuple[float, str]:
    counted = "bucket" if bar.kind == "G" else "microbatch"
    text = f"{name}, {counted} {bar.microbatch}\n{bar.start_s:.5g} to {bar.end_s:.5g} s"
    if isinstance(bar, Span):
        return float(bar.stage), f"{_stage_label(result, bar.stage)}\n{text}"
    label = _link_label(result, bar.link)
    return row_of_link[bar.link], f"{label}\n{text}\narrives {bar.arrival_s:.5g} s"


def _stage_label(result: IterationResult, index: int) -> str:
    stage = result.stages[index]
    first, last = stage.first_layer, stage.first_layer + stage.num_layers - 1
    layers = f"layer {first}" if first == last else f"layers {first}-{last}"
    return f"{short_name(stage.domain)}  {layers}"


def _link_label(result: IterationResult, index: int) -> str:
    link = result.links[index]
    return f"{short_name(link.source)}→{short_name(link.target)}"


def short_name(name: str) -> str:
    """Return the name of a domain, cut where it is long."""
    return name if len(name) <= 16 else f"{name[:15]}…"


def _thin(labels: list[tuple[float, str]], row_inches: float) -> list[tuple[float, str]]:
    """Leave out labels that would run into each other."""
    return labels[:: max(1, math.ceil(1.0 / (_MOST_LABELS_PER_INCH * row_inches)))]
