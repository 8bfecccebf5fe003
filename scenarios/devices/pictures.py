"""Pictures of servers, of comparisons of placements, and of times of collectives.

A server is its matrix in colours of closeness, a comparison has a bar for each rule, and times are
over sizes, with the cells that were measured.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agents.devices.placement_rules import RuleOutcome
from calibration.measured.collective_table import (
    SHIPPED_TABLE,
    CollectiveCell,
    read_measured_table,
    server_of_node,
)
from des.base.command import UsageError
from des.costs.device_collectives import Collective, all_reduce_time, collective_time
from des.costs.device_groups import DeviceGroup
from des.devices.closeness import RELATIONS, distance
from des.devices.server import Server
from des.figures.figure import Figure, panel_figure
from des.figures.marks import Cells, GuideLine, Points, bars_from_zero, series_line
from des.figures.palette import BLUE, INK
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
    return panel_figure(
        name="server",
        title=Path(server.name).name,
        seen=f"Closeness of {len(names)} devices, GPUs before network cards.",
        x=Axis(ticks=tuple((float(place), name) for place, name in enumerate(names))),
        y=named_rows(rows),
        marks=(cells, *(borders if server.nics else ())),
        height=max(1.5, side),
        grid="none",
        width=max(4.0, side + 2.0),
    )


def rules_figure(found: Sequence[RuleOutcome], title: str) -> Figure:
    """Return NVLinks, all-reduce time and fragmentation of each rule; no bar: not computed."""
    panels = {
        "NVLinks inside": [each.nvlinks for each in found],
        "all-reduce [ms]": [1e3 * (each.all_reduce_s or 0.0) for each in found],
        "fragmentation afterwards": [each.fragmentation_fraction for each in found],
    }
    return Figure(
        name="picture",
        title=title,
        seen=f"NVLinks, all-reduce time and fragmentation of {len(found)} rules.",
        panels=tuple(
            Panel(
                x=Axis(label=label, low=0.0),
                y=named_rows("" if place else each.rule for each in found),
                marks=(bars_from_zero("", values, BLUE),),
                height=0.5 + 0.25 * len(found),
                grid="x",
            )
            for place, (label, values) in enumerate(panels.items())
        ),
        columns=3,
        width=9.0,
    )


_LEAST_BYTES, _MOST_BYTES = 2.0**12, 2.0**30


def measure_cells(group: DeviceGroup) -> list[CollectiveCell]:
    """Cells of the shipped table whose machine, GPUs and network are those of a group."""
    server, places = group.parts[0]
    own = server.part(places)
    models = [gpu.model for gpu in own.gpus]
    found = []
    for cell in read_measured_table(SHIPPED_TABLE).cells:
        there = server_of_node(cell.node).part(range(cell.gpus_per_node))
        is_joined = len(group.parts) == 1 or group.figures.networks.get(cell.node) == group.network
        if (
            (cell.workers, cell.gpus_per_node) == (group.num_ranks, len(places))
            and there.tokens == own.tokens
            and [gpu.model for gpu in there.gpus] == models
            and is_joined
        ):
            found.append(cell)
    return found


def times_figure(collective: Collective, group: DeviceGroup, sizes: list[float]) -> Figure:
    """Return the times of all algorithms, and cells that were measured, over sizes."""
    cells = measure_cells(group) if collective == "all_reduce" else []
    shown = [*sizes, *(float(cell.payload_bytes) for cell in cells)]
    least, most = min([_LEAST_BYTES, *shown]), max([_MOST_BYTES, *shown])
    payloads = np.geomspace(least, most, 200).tolist()
    if collective == "all_reduce":
        times = [all_reduce_time(group, payload) for payload in payloads]
    else:
        times = [collective_time(group, collective, payload) for payload in payloads]
    curves = [
        series_line(
            name,
            payloads,
            (1e3 * each.times_s[name] for each in times),
            place,
            width=2.0 if name == times[-1].algorithm else 1.0,
        )
        for place, name in enumerate(times[0].times_s)
    ]
    measured = Points(
        label="measured",
        x=tuple(float(cell.payload_bytes) for cell in cells),
        y=tuple(1e3 * cell.time_s for cell in cells),
        colour=INK,
        size=4.0,
    )
    server, places = group.parts[0]
    return panel_figure(
        name="times",
        title=f"{collective}, {len(places)} GPUs of {server.name} x {len(group.parts)}",
        seen=f"Times of {len(curves)} algorithms by size of the buffer, and {len(cells)} measured.",
        x=Axis(label="buffer [bytes]", scale="log"),
        y=Axis(label="time [ms]", scale="log"),
        marks=(*curves, *([measured] if cells else ())),
        height=3.0,
        grid="both",
    )
