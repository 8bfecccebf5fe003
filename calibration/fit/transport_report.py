"""Rows, files and figure of laws of a transport on a grid."""

from collections.abc import Sequence

import pandas as pd

from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.message_cases import message_figures
from calibration.fit.corrections_file import corrections_bytes
from calibration.fit.transport_grid import (
    FittedTransport,
    TransportGrid,
    law_at,
    message_error,
    nearest_cell,
)
from des.base.csv_text import frame_csv
from des.costs.start_up import start_up_on, start_up_s
from des.figures.figure import Figure
from des.figures.marks import Line
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel
from des.plan.corrections import Corrections
from des.world.packet_transport import PacketTransport

PLOT = "delays"

_SIZES_PRODUCTS = tuple(2.0 ** (step / 4.0) for step in range(-16, 17))


def cell_name(packets: PacketTransport) -> str:
    """Name of the file of a cell's law, such as ``queue-0.5_loss-1e-05_flows-4``."""
    return f"queue-{packets.queue_products:g}_loss-{packets.loss_fraction:g}_flows-{packets.flows}"


def grid_table(fitted: Sequence[FittedTransport]) -> pd.DataFrame:
    """Make a row for each cell: its settings, the figures of its law, the error of its messages."""
    rows = [
        {
            "congestion": each.packets.congestion,
            "connections": each.packets.connections,
            "queue_products": each.packets.queue_products,
            "loss_fraction": each.packets.loss_fraction,
            "num_flows": each.packets.flows,
            "start_up_round_trips": each.law.start_up_round_trips,
            "is_paced": each.law.is_paced,
            "growth": each.law.growth,
            "first_window_bytes": each.law.first_window_bytes,
            "efficiency": each.law.efficiency,
            "recovery_round_trips": each.law.recovery_round_trips,
            "recovery_after_products": each.law.recovery_after_products,
            "mean_error_percent": 100.0 * each.error,
        }
        for each in fitted
    ]
    return pd.DataFrame(rows)


def fresh_table(
    grid: TransportGrid,
    fitted: Sequence[FittedTransport],
    cases: Sequence[PlacementCase],
    measured: Sequence[Measurement],
) -> pd.DataFrame:
    """Make a row for each message outside all fits, with the error of the nearest law."""
    rows = []
    for case, found in zip(cases, measured, strict=True):
        packets = case.topology.transport.packets
        num_bytes, rate, latency_s = message_figures(case)
        cell, law = nearest_cell(grid, fitted, packets), law_at(grid, fitted, packets)
        rows.append(
            {
                "queue_products": packets.queue_products,
                "loss_fraction": packets.loss_fraction,
                "num_flows": packets.flows,
                "size_products": num_bytes / (rate * 2.0 * latency_s),
                "bandwidth_bytes_per_s": rate,
                "latency_s": latency_s,
                "there_and_back_s": found.makespan_s,
                "law": cell_name(cell.packets),
                "error_percent": 100.0 * message_error(case, found, law),
                "error_without_percent": 100.0 * message_error(case, found),
            }
        )
    return pd.DataFrame(rows)


def law_files(fitted: Sequence[FittedTransport]) -> dict[str, bytes]:
    """Make ``transports.csv`` and a file of corrections for each cell."""
    laws = {
        f"{cell_name(each.packets)}.json": corrections_bytes(Corrections(transport=each.law), None)
        for each in fitted
    }
    return {"transports.csv": frame_csv(grid_table(fitted)).encode(), **laws}


def delay_figure(
    grid: TransportGrid,
    fitted: Sequence[FittedTransport],
    *,
    rate_bytes_per_s: float,
    round_trip_s: float,
) -> Figure:
    """Return the delays of messages by the laws of the cells, over sizes, on one link."""
    x = Axis(label="size of a message [bandwidth-delay products]", scale="log")
    y = Axis(label="delay [round trips]", low=0.0)
    panels = []
    for products in grid.queues_products:
        of_queue = [each for each in fitted if each.packets.queue_products == products]
        lines = tuple(
            Line(
                label=f"loss {each.packets.loss_fraction:g}, flows {each.packets.flows}",
                x=_SIZES_PRODUCTS,
                y=_delays_round_trips(each, rate_bytes_per_s, round_trip_s),
                colour=COLOURS[place % len(COLOURS)],
                dash=("solid", "dash", "dot")[place // len(COLOURS) % 3],
            )
            for place, each in enumerate(of_queue)
        )
        panels.append(Panel(x=x, y=y, marks=lines, title=f"queue of {products:g} products"))
    packets = grid.packets
    return Figure(
        name=PLOT,
        title=f"Delay of a single message: {packets.congestion}, {packets.connections} connections",
        seen=f"Delays against an ideal link by size, for {len(fitted)} settings of queue, random "
        f"loss and number of flows, on a link of {8e-9 * rate_bytes_per_s:g} Gbit/s whose round "
        f"trip takes {1e3 * round_trip_s:g} ms.",
        panels=tuple(panels),
    )


def _delays_round_trips(
    fitted: FittedTransport, rate_bytes_per_s: float, round_trip_s: float
) -> tuple[float, ...]:
    figures = start_up_on(fitted.law, rate_bytes_per_s, round_trip_s)
    product_bytes = rate_bytes_per_s * round_trip_s
    return tuple(
        start_up_s(figures, 0.0, size * product_bytes) / round_trip_s for size in _SIZES_PRODUCTS
    )
