"""Picture of a collective: time against size, with the cells that were measured."""

import numpy as np

from calibration.measured.collective_table import (
    SHIPPED_TABLE,
    CollectiveCell,
    read_measured_table,
    server_of_node,
)
from des.costs.device_collectives import Collective, all_reduce_time, collective_time
from des.costs.device_groups import DeviceGroup
from des.figures.figure import Figure
from des.figures.marks import Points, series_line
from des.figures.palette import INK
from des.figures.panels import Axis, Panel

_LEAST_BYTES, _MOST_BYTES = 2.0**12, 2.0**30


def measured_cells(group: DeviceGroup) -> list[CollectiveCell]:
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
    cells = measured_cells(group) if collective == "all_reduce" else []
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
    return Figure(
        name="times",
        title=f"{collective}, {len(places)} GPUs of {server.name} x {len(group.parts)}",
        seen=f"Times of {len(curves)} algorithms by size of the buffer, and {len(cells)} measured.",
        panels=(
            Panel(
                x=Axis(label="buffer [bytes]", scale="log"),
                y=Axis(label="time [ms]", scale="log"),
                marks=(*curves, *([measured] if cells else ())),
                height=3.0,
                grid="both",
            ),
        ),
    )
