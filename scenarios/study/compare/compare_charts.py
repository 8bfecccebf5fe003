"""Bars of a comparison, with 95 % intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from des.figures.figure import Figure
from des.figures.marks import Points, bars_from_zero
from des.figures.palette import INK, SKY
from des.figures.panels import Axis, Panel, named_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A method's share over the best, as a fraction; half width NaN where there is none."""

    name: str
    value: float
    half_width: float


def bars_of(
    panels: Sequence[tuple[str, Sequence[Bar]]], axis_title: str, *, name: str, title: str
) -> Figure:
    """Return bars, a panel below the other; values are shown in percent.

    Bars longer than 100 % are cut there, and have no interval; the tables have whole numbers.

    Raises
    ------
    ValueError
        If there are no panels or one has no bars.
    """
    if not panels or not all(bars for _, bars in panels):
        raise ValueError("bars: panels must be one or more, each with a bar or more")
    least = [min(bars, key=lambda bar: bar.value) for _, bars in panels]
    said = "; ".join(
        f"{heading}: {bar.name} is lowest with {100 * bar.value:.2f} %"
        for (heading, _), bar in zip(panels, least, strict=True)
    )
    return Figure(
        name=name,
        title=title,
        seen=f"Bars of {sum(len(bars) for _, bars in panels)} methods with 95 % intervals. {said}.",
        panels=tuple(_panel(heading, bars, axis_title) for heading, bars in panels),
        width=8.0,
    )


def _panel(heading: str, bars: Sequence[Bar], axis_title: str) -> Panel:
    values = [100.0 * bar.value for bar in bars]
    halves = [100.0 * bar.half_width for bar in bars]
    shown = [min(value, 100.0) for value in values]
    rows = tuple(map(float, range(len(bars))))
    labels = [
        f"{bar.name}  {value:.2f}" + ("" if math.isnan(half) else f" ± {half:.2f}")
        for bar, value, half in zip(bars, values, halves, strict=True)
    ]
    whole = [at for at, value in enumerate(values) if value <= 100.0]
    points = Points(
        label="mean and 95 % interval",
        x=tuple(values[at] for at in whole),
        y=tuple(rows[at] for at in whole),
        x_half_widths=tuple(halves[at] for at in whole),
        colour=INK,
        size=3.0,
        hovers=tuple(labels[at] for at in whole),
    )
    return Panel(
        x=Axis(label=axis_title, low=0.0, high=0.01),
        y=named_rows(labels),
        marks=(points, bars_from_zero("mean", shown, SKY)),
        title=heading,
        height=0.6 + 0.3 * len(bars),
        grid="x",
    )
