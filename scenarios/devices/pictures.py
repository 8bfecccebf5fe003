"""Picture of a server: its matrix in colours of closeness, NUMA nodes at the side."""

from pathlib import Path

from des.base.command import UsageError
from des.devices.closeness import RELATIONS, distance
from des.devices.server import Server
from des.figures.figure import Figure
from des.figures.marks import Cells, GuideLine
from des.figures.palette import INK
from des.figures.panels import Axis, Panel, named_rows
from des.figures.paper import FORMATS

_COLOURS = ("#FFFFFF", "#6BAED6", "#A6DBA0", "#D9F0D3", "#FFF7BC", "#FEE391", "#FDAE6B")
"""Colours by relation: the device itself, NVLink blue, then PIX green to SYS orange."""

_INCHES_PER_DEVICE = 0.42
_FORMATS = tuple(f".{one}" for one in FORMATS if one != "pdf")


def check_picture_name(path: Path) -> None:
    """Refuse a file that is neither PNG nor SVG by its name."""
    if path.suffix not in _FORMATS:
        raise UsageError(f"--picture {path}: must end with {' or '.join(_FORMATS)}")


def server_figure(server: Server) -> Figure:
    """Return the matrix of a server: a row and a column for each GPU and card."""
    names = (*server.device_names,)
    rows = [
        f"{gpu.name} (node {','.join(map(str, gpu.numa_nodes))})" if gpu.numa_nodes else gpu.name
        for gpu in server.gpus
    ] + [card.name for card in server.nics]
    cells = Cells(
        label="",
        rows=tuple(rows),
        columns=names,
        values=tuple(tuple(map(distance, row)) for row in server.tokens),
        texts=tuple(map(tuple, server.tokens)),
        kinds=tuple(zip(RELATIONS, _COLOURS, strict=True)),
    )
    at = server.num_gpus - 0.5
    borders = (GuideLine(label="", colour=INK, x=at), GuideLine(label="", colour=INK, y=at))
    side = _INCHES_PER_DEVICE * len(rows)
    panel = Panel(
        x=Axis(ticks=tuple((float(place), name) for place, name in enumerate(names))),
        y=named_rows(rows),
        marks=(cells, *(borders if server.nics else ())),
        height=max(1.5, side),
        grid="none",
    )
    return Figure(
        name="server",
        title=Path(server.name).name,
        seen=f"Closeness of {len(names)} devices, GPUs before network cards.",
        panels=(panel,),
        width=max(4.0, side + 2.0),
    )
