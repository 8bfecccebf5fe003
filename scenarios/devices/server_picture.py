"""Picture of a server: its matrix in colours of closeness, NUMA nodes at the side."""

import io
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from des.base.command import UsageError
from des.devices.closeness import RELATIONS, distance
from des.devices.server import Server
from des.figures.palette import INK
from scenarios.frame.drawings import laid_out, new_figure, png_bytes

_COLOURS = ("#FFFFFF", "#6BAED6", "#A6DBA0", "#D9F0D3", "#FFF7BC", "#FEE391", "#FDAE6B")
"""Colours by relation: the device itself, NVLink blue, then PIX green to SYS orange."""

_INCHES_PER_DEVICE = 0.42
_FORMATS = (".png", ".svg")


def check_picture_name(path: Path) -> None:
    """Refuse a file that is neither PNG nor SVG by its name."""
    if path.suffix not in _FORMATS:
        raise UsageError(f"--picture {path}: must end with {' or '.join(_FORMATS)}")


def picture_of(server: Server, suffix: str) -> bytes:
    """Draw a server; the same server gives the same bytes on the same installation."""
    figure = _figure(server)
    if suffix == ".png":
        return png_bytes(figure)
    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "server"}):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return content.getvalue()


def _figure(server: Server) -> Figure:
    side = 2.5 + _INCHES_PER_DEVICE * len(server.device_names)
    figure = new_figure(width_inches=side + 1.0, height_inches=side)
    axes = figure.subplots()
    ranks = [[distance(token) for token in row] for row in server.tokens]
    axes.imshow(ranks, cmap=ListedColormap(_COLOURS), vmin=-0.5, vmax=len(_COLOURS) - 0.5)
    for one, row in enumerate(server.tokens):
        for other, token in enumerate(row):
            axes.annotate(token, (other, one), ha="center", va="center", fontsize=7.5, color=INK)
    _label(axes, server)
    used = sorted({rank for row in ranks for rank in row} - {0})
    axes.legend(
        handles=[Patch(color=_COLOURS[rank], label=RELATIONS[rank]) for rank in used],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize=8,
    )
    axes.set_title(Path(server.name).name, color=INK, fontsize=10)
    return laid_out(figure)


def _label(axes: Axes, server: Server) -> None:
    """Name devices on both axes, GPUs with their NUMA nodes, and part GPUs from cards."""
    nodes = [
        f"{gpu.name} (node {','.join(map(str, gpu.numa_nodes))})" if gpu.numa_nodes else gpu.name
        for gpu in server.gpus
    ]
    rows = [*nodes, *(card.name for card in server.nics)]
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    axes.set_xticks(range(len(rows)), server.device_names, fontsize=7, rotation=90)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set_visible(False)
    if server.nics:
        axes.axhline(server.num_gpus - 0.5, color=INK, linewidth=0.8)
        axes.axvline(server.num_gpus - 0.5, color=INK, linewidth=0.8)
