"""A figure: panels that notebooks show as they are drawn for paper."""

from __future__ import annotations

from dataclasses import dataclass

from des.base.lazy import lazy_imports
from des.figures.panels import PanelGrid

with lazy_imports(__name__):
    from des.figures import paper


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Figure(PanelGrid):
    """A grid of panels, drawn by `des.figures.paper` and by `des.figures.web`."""

    def _repr_png_(self) -> bytes:
        """The figure as notebooks show it, small enough to be kept with them."""
        return paper.image_bytes(self, dpi=72)
