"""Marks of figures: lines with bands, areas, points, bars, boxes, cells, arrows and rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from des.figures.palette import colour

Numbers = tuple[float, ...]
Dash = Literal["solid", "dash", "dot"]
TextPlace = Literal["middle center", "top center", "bottom center", "middle right", "middle left"]
Symbol = Literal["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x"]

SYMBOLS: tuple[Symbol, ...] = ("circle", "square", "triangle-up", "diamond", "triangle-down", "x")
"""Symbols of series of points, in order."""


def _require_equal_lengths(owner: object, *fields: str, **columns: Sequence[object]) -> None:
    """Refuse columns of different lengths, fields or others; an empty column is none."""
    columns = {name: getattr(owner, name) for name in fields} | columns
    lengths = {name: len(column) for name, column in columns.items() if column}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"{type(owner).__name__}: columns must be of equal length, got {said}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve with, if ``low`` and ``high`` are given, a band around it; NaN breaks the line."""

    label: str
    x: Numbers
    y: Numbers
    colour: str
    low: Numbers = ()
    high: Numbers = ()
    dash: Dash = "solid"
    width: float = 1.8
    is_step: bool = False
    symbol: Symbol | None = None

    def __post_init__(self) -> None:
        _require_equal_lengths(self, "x", "y", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A filled area between two curves."""

    label: str
    x: Numbers
    low: Numbers
    high: Numbers
    colour: str
    is_step: bool = False

    def __post_init__(self) -> None:
        _require_equal_lengths(self, "x", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points, with half widths of intervals along an axis, and texts that show on hovering."""

    label: str
    x: Numbers
    y: Numbers
    colour: str
    symbol: Symbol = "circle"
    size: float = 6.0
    is_open: bool = False
    x_half_widths: Numbers = ()
    y_half_widths: Numbers = ()
    hovers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_equal_lengths(self, "x", "y", "x_half_widths", "y_half_widths", "hovers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Boxes on rows, from a start to an end each: one kind of bars of a chart over time."""

    label: str
    starts: Numbers
    ends: Numbers
    rows: Numbers
    colour: str
    height: float = 0.82
    texts: tuple[str, ...] = ()
    text_colour: str = "#000000"
    hovers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_equal_lengths(self, "starts", "ends", "rows", "texts", "hovers")


def series_line(
    label: object, x: Iterable[float], y: Iterable[float], place: int, **look: Any
) -> Line:
    """Return the line of a series, in the colour of its place among others."""
    return Line(
        label=str(label),
        x=tuple(map(float, x)),
        y=tuple(map(float, y)),
        colour=colour(place),
        **look,
    )


def bars_from_zero(
    label: str, values: Iterable[float], colour: str, hovers: tuple[str, ...] = ()
) -> Boxes:
    """Return boxes from 0 to a value on each row."""
    ends = np.array([*values], dtype=float)
    return Boxes(
        label=label,
        starts=tuple(np.minimum(ends, 0.0).tolist()),
        ends=tuple(np.maximum(ends, 0.0).tolist()),
        rows=tuple(map(float, range(len(ends)))),
        colour=colour,
        height=0.6,
        hovers=hovers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A matrix as coloured cells, a row from above for each of ``rows``; None leaves one empty.

    Without ``kinds``, values are from 0 to the largest on a scale; otherwise they are places in
    ``kinds``, which are names with colours.
    """

    label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[str, ...], ...] = ()
    hovers: tuple[tuple[str, ...], ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _require_equal_lengths(self, "rows", "values")
        for row in self.values:
            _require_equal_lengths(self, "columns", row=row)

    @property
    def shown_kinds(self) -> dict[str, str]:
        """Names and colours of the kinds that there are cells of."""
        found = {one for row in self.values for one in row}
        return {name: colour for at, (name, colour) in enumerate(self.kinds) if at in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A directed link between two places of a map."""

    x: float
    y: float
    to_x: float
    to_y: float
    colour: str
    width: float
    hover: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text at a place."""

    x: float
    y: float
    text: str
    at: TextPlace = "middle center"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideLine:
    """A straight line over the whole panel, at ``x`` or at ``y``, with its name at the end."""

    label: str
    colour: str
    x: float | None = None
    y: float | None = None
    dash: Dash = "dash"

    def __post_init__(self) -> None:
        if (self.x is None) == (self.y is None):
            raise ValueError(
                f"GuideLine {self.label}: must have x or y, got {self.x!r} and {self.y!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripe:
    """A vertical stripe behind everything, from one x to another."""

    start: float
    end: float
    colour: str = "#BBBBBB"


Mark = Line | Area | Points | Boxes | Cells | Arrow | Text | GuideLine | Stripe
