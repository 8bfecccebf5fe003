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
from des.figures.palette import COLOURS, INK
from scenarios.frame.drawings import laid_out, new_figure, png_bytes

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


def times_picture(collective: Collective, group: DeviceGroup, sizes: list[float]) -> bytes:
    """Draw the times of all algorithms, and cells that were measured, as a PNG."""
    cells = measured_cells(group) if collective == "all_reduce" else []
    shown = [*sizes, *(float(cell.payload_bytes) for cell in cells)]
    least, most = min([_LEAST_BYTES, *shown]), max([_MOST_BYTES, *shown])
    payloads = np.geomspace(least, most, 200).tolist()
    if collective == "all_reduce":
        times = [all_reduce_time(group, payload) for payload in payloads]
    else:
        times = [collective_time(group, collective, payload) for payload in payloads]
    figure = new_figure(width_inches=6.5, height_inches=4.0)
    axes = figure.subplots()
    for name, colour in zip(times[0].times_s, COLOURS, strict=False):
        axes.plot(
            payloads,
            [1e3 * each.times_s[name] for each in times],
            color=colour,
            linewidth=2.0 if name == times[-1].algorithm else 1.0,
            label=name,
        )
    if cells:
        axes.scatter(
            [cell.payload_bytes for cell in cells],
            [1e3 * cell.time_s for cell in cells],
            color=INK,
            s=22,
            zorder=3,
            label="measured",
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("buffer [bytes]", color=INK)
    axes.set_ylabel("time [ms]", color=INK)
    server, places = group.parts[0]
    axes.set_title(
        f"{collective}, {len(places)} GPUs of {server.name} x {len(group.parts)}",
        color=INK,
        fontsize="medium",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return png_bytes(laid_out(figure))
