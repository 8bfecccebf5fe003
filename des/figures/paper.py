"""Figures on paper: drawn by matplotlib's object interface, saved as PNG, PDF or SVG.

Nothing outside the figure is changed, and equal figures give equal bytes on one installation.
"""

import io
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Paper
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch

from des.figures.marks import Boxes, Cells
from des.figures.palette import FAINT, INK
from des.figures.panels import Panel, PanelGrid
from des.figures.paper_axes import set_axis, thin_labels, turn_names
from des.figures.paper_marks import SMALL, draw_boxes, draw_mark
from des.figures.spans import Span, axis_spans

FORMATS = ("png", "pdf", "svg")
"""Formats of saved figures."""

_DPI = 130
_TALLEST_INCHES = 60.0
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}


def require_formats(owner: str, formats: Sequence[str]) -> None:
    """Refuse a format that figures cannot be saved in, or one given twice."""
    for one in formats:
        if one not in FORMATS or list(formats).count(one) > 1:
            raise ValueError(
                f"{owner}: figures must be some of {', '.join(FORMATS)}, each once; "
                f"got {','.join(formats)}"
            )


def choose_formats(owner: str, formats: Sequence[str]) -> tuple[str, ...]:
    """Return the formats of a flag, checked; ``none`` alone asks for no files."""
    chosen = () if tuple(formats) == ("none",) else tuple(formats)
    require_formats(owner, chosen)
    return chosen


def image_bytes(figure: PanelGrid, image_format: str = "png", *, dpi: int = _DPI) -> bytes:
    """Draw a figure and return the content of its file.

    Raises
    ------
    ValueError
        If the format is not one of `FORMATS`.
    """
    require_formats("figure", (image_format,))
    content = io.BytesIO()
    metadata = _METADATA[image_format]
    with mpl.rc_context({"svg.hashsalt": figure.name, "svg.fonttype": "path"}):
        paper = draw(figure, dpi=dpi)
        if image_format == "png":  # the file of `savefig`, which draws everything twice
            canvas = FigureCanvasAgg(paper)
            canvas.print_png(content, metadata=metadata)  # type: ignore[no-untyped-call]
        else:
            paper.savefig(content, format=image_format, metadata=metadata)
    return content.getvalue()


def draw(figure: PanelGrid, *, size: tuple[float, float] | None = None, dpi: int = _DPI) -> Paper:
    """Draw a figure on paper as large as its panels need, or of a size in inches."""
    around = 0.95 + 0.16 * bool(figure.note) + 0.25 * _legend_rows(figure)
    heights = figure.row_heights(figure.columns)
    height = min(_TALLEST_INCHES, around + sum(one + 0.55 for one in heights))
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    paper = Paper(figsize=size or (figure.width, height), dpi=dpi, layout=layout)
    canvas = FigureCanvasAgg(paper)  # so that it can be drawn without a window
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    every: list[Axes] = (
        paper.subplots(
            figure.num_rows,
            figure.columns,
            squeeze=False,
            sharex="col" if figure.shares_x else False,
            sharey=figure.shares_y,
            height_ratios=heights,
        )
        .ravel()
        .tolist()
    )
    paper.suptitle(
        figure.title + (f"\n{figure.note}" if figure.note else ""),
        fontsize=10.5,
        color=INK,
        x=0.01,
        ha="left",
        parse_math=False,
    )
    drawn = list(zip(every, figure.panels, axis_spans(figure), strict=False))
    for place, (axes, panel, spans) in enumerate(drawn):
        is_last = place + figure.columns >= len(figure.panels)
        _draw_panel(axes, panel, spans, has_x=is_last or not figure.shares_x)
    for axes in every[len(figure.panels) :]:
        axes.set_visible(False)
    _draw_legend(paper, figure, every)
    layout.execute(paper)  # sizes of boxes; drawing comes once, at the end
    turned = [turn_names(axes, panel.x, renderer) for axes, panel, _ in drawn]
    if any(turned):
        layout.execute(paper)
    for axes, panel, _ in drawn:
        thin_labels(axes, renderer)
        draw_boxes(axes, [mark for mark in panel.marks if isinstance(mark, Boxes)])
    paper.set_layout_engine("none")
    return paper


def _legend_rows(figure: PanelGrid) -> int:
    num = len(list(figure.labels()))
    return 0 if num < 2 else -(-num // _legend_columns(figure))


def _legend_columns(figure: PanelGrid) -> int:
    widest = max(map(len, figure.labels()), default=1)
    return max(1, min(6, int(figure.width * 12 / (widest + 6))))


def _draw_panel(axes: Axes, panel: Panel, spans: tuple[Span, Span], *, has_x: bool) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color(INK)
    axes.tick_params(length=0, pad=5, colors=INK, labelsize=SMALL)
    axes.set_axisbelow(True)
    if panel.grid != "none":
        axes.grid(axis=panel.grid, color=FAINT, linewidth=0.7)
    for mark in panel.marks:
        if not isinstance(mark, Boxes):
            draw_mark(mark, axes)
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize=9, color=INK, parse_math=False)
    if panel.has_equal_scales:
        axes.set_aspect("equal", adjustable="box")
    set_axis(axes, "x", panel.x, spans[0], is_labelled=has_x)
    set_axis(axes, "y", panel.y, spans[1], is_labelled=True)


def _draw_legend(paper: Paper, figure: PanelGrid, every: Sequence[Axes]) -> None:
    """One legend below all panels, where there is more than one series."""
    found: dict[str, Artist] = {}
    for axes in every:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    for panel in figure.panels:
        for mark in panel.marks:
            if isinstance(mark, Boxes) and mark.label:
                found.setdefault(mark.label, Patch(color=mark.colour))
            if isinstance(mark, Cells):
                found |= {name: Patch(color=hue) for name, hue in mark.shown_kinds.items()}
    if len(found) > 1:
        legend = paper.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=_legend_columns(figure),
            frameon=False,
            fontsize=SMALL,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
