"""Panels of a figure as values: what is drawn, its title, and a sentence on what is seen."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from des.figures.marks import Cells, Mark

Ticks = tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a panel: it spans its bounds and all that is drawn.

    A counted one has ticks at whole numbers.
    """

    label: str = ""
    scale: Literal["linear", "log"] = "linear"
    low: float | None = None
    high: float | None = None
    ticks: Ticks = ()
    is_reversed: bool = False
    is_shown: bool = True
    is_counted: bool = False


def named_rows(names: Iterable[str]) -> Axis:
    """Return an axis with a name at each row, the first at the top.

    Examples
    --------
    >>> named_rows(["a", "b"]).ticks, named_rows(["a", "b"]).high
    (((0.0, 'a'), (1.0, 'b')), 1.5)
    """
    ticks = tuple((float(row), name) for row, name in enumerate(names))
    return Axis(ticks=ticks, low=-0.5, high=len(ticks) - 0.5, is_reversed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes and what is drawn in it; ``height`` is in inches of the paper."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    title: str = ""
    height: float = 2.6
    has_equal_scales: bool = False
    grid: Literal["x", "y", "both", "none"] = "y"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PanelGrid:
    """Panels row by row below a title.

    Attributes
    ----------
    name
        Stem of the figure's files: lower-case letters, digits, ``_`` and ``-``.
    title
        Header: what is shown.
    seen
        Sentence on what is seen, which describes the figure to those who cannot see it.
    note
        Line of figures below the title; none where it is empty.
    shares_x
        Whether panels of a column have one x axis.
    """

    name: str
    title: str
    seen: str
    panels: tuple[Panel, ...]
    note: str = ""
    columns: int = 1
    width: float = 7.0
    shares_x: bool = False
    shares_y: bool = False

    def __post_init__(self) -> None:
        if not self.name or set(self.name) - set("abcdefghijklmnopqrstuvwxyz0123456789_-"):
            raise ValueError(f"figure: name must be of letters, digits, _ and -, got {self.name!r}")
        if not self.panels:
            raise ValueError(f"figure {self.name}: panels must have at least one, got none")
        for field in ("title", "seen"):
            if not getattr(self, field).strip():
                raise ValueError(f"figure {self.name}: {field} must be a text, got none")

    def __repr__(self) -> str:
        return f"<figure {self.name}: {self.title}. {self.seen}>"

    @property
    def num_rows(self) -> int:
        """Rows of panels."""
        return math.ceil(len(self.panels) / self.columns)

    def row_heights(self, columns: int) -> list[float]:
        """Height of each row of panels, that many side by side. [inches]"""
        heights = [panel.height for panel in self.panels]
        return [max(heights[at : at + columns]) for at in range(0, len(heights), columns)]

    def labels(self) -> Iterator[str]:
        """Yield the names of the series, each once, in the order of drawing."""
        found: dict[str, None] = {}
        for panel in self.panels:
            for mark in panel.marks:
                labels = (
                    mark.shown_kinds if isinstance(mark, Cells) else (getattr(mark, "label", ""),)
                )
                found |= {label: None for label in labels if label}
        yield from found
