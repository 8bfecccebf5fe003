"""A figure: panels that notebooks show as they are drawn for paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from des.base.lazy import lazy_imports
from des.figures.marks import Mark
from des.figures.panels import Axis, Panel, PanelGrid

with lazy_imports(__name__):
    from des.figures import paper


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Figure(PanelGrid):
    """A grid of panels, drawn by `des.figures.paper` and by `des.figures.web`."""

    def _repr_png_(self) -> bytes:
        """The figure as notebooks show it, small enough to be kept with them."""
        return paper.image_bytes(self, dpi=72)


def panel_figure(
    *,
    name: str,
    title: str,
    seen: str,
    x: Axis,
    y: Axis,
    marks: Iterable[Mark],
    note: str = "",
    width: float = 7.0,
    **look: Any,
) -> Figure:
    """Return a figure of one panel; ``look`` holds what else a `Panel` takes."""
    panel = Panel(x=x, y=y, marks=tuple(marks), **look)
    return Figure(name=name, title=title, seen=seen, panels=(panel,), note=note, width=width)
