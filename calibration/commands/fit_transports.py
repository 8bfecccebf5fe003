"""Fit laws of TCP on a grid of queues, losses and flows, and test them between its points."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.commands.console import console, console_table, say
from calibration.commands.flags import WorldFlags, require_counts, require_whole_number
from calibration.commands.reference import (
    Reference,
    kept_runs_option,
    store_of_flag,
    time_limit_option,
    workers_option,
)
from calibration.packet.process import ns3_version
from des.base.atomic_write import write_together
from des.base.checks import require_positive, require_seed
from des.base.csv_text import frame_csv
from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.world.topology import Topology

with lazy_imports(__name__):
    from calibration.cases import message_cases
    from calibration.fit import transport_grid, transport_report
    from calibration.fit.transport_grid import FittedTransport, TransportGrid
    from des.figures import paper


EXAMPLES = """\
examples:
  python -m calibration transports --transport cubic
      18 laws for the links of the default world, by the extra ns3; 10 minutes on 2 cores
  python -m calibration transports --transport bbr --queues 1 --losses 0,1e-4 --flows 1 --fresh 0
  python -m scenarios.simulate --corrections runs/transports/queue-1_loss-0.0001_flows-4.json
      an iteration under one of the laws, without ns-3

files written to --out:
  transports.csv   a row for each setting: figures of its law, error on the messages of its fit
  queue-Q_loss-P_flows-N.json   each law, for --corrections of other commands
  fresh.csv        messages outside all fits: measured times, errors of the nearest law
  delays.png       delays by size of message (--figures)
"""


def require_once(owner: str, field: str, values: Sequence[float]) -> None:
    """Refuse an empty list of settings, and settings that are equal to six digits, as in names."""
    if not values or len({f"{value:g}" for value in values}) != len(values):
        raise ValueError(
            f"{owner}: {field} must be at least one number, each once, got "
            f"{','.join(map(str, values)) or 'none'} (compared to six digits)"
        )


def require_rooms(owner: str, field: str, values: Sequence[float]) -> None:
    """Refuse rooms of queues that are not positive."""
    require_once(owner, field, values)
    for value in values:
        require_positive(owner, field, value)


def require_losses(owner: str, field: str, values: Sequence[float]) -> None:
    """Refuse losses outside [0, 1)."""
    require_once(owner, field, values)
    for value in values:
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{owner}: {field} must be at least 0 and below 1, got {value!r}")


def require_numbers_of_flows(owner: str, field: str, values: Sequence[int]) -> None:
    """Refuse numbers of flows that are no counts."""
    require_once(owner, field, values)
    require_counts(owner, field, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(WorldFlags):
    """Flags of a grid of laws."""

    queues: tuple[float, ...] = option(
        (0.5, 1.0, 4.0),
        "room of the queue before a link, in its bandwidth-delay products",
        check=require_rooms,
    )
    losses: tuple[float, ...] = option(
        (0.0, 1e-4), "packets lost at random at each end of a link", check=require_losses
    )
    flows: tuple[int, ...] = option(
        (1, 2, 4), "connections that share a message", check=require_numbers_of_flows
    )
    fresh: int = option(
        48,
        "messages between the points of the grid, by which the nearest laws are tested",
        check=require_whole_number,
    )
    seed: int = option(0, "seed of these messages", check=require_seed)
    workers: int = workers_option()
    time_limit: float = time_limit_option()
    store: Path | None = kept_runs_option()
    out: Path = option(Path("runs/transports"), "folder for the files")
    figures: tuple[str, ...] = option(
        ("png",), "formats of the figure, some of png, pdf, svg; none: no files"
    )


def run(config: Config) -> None:
    """Measure, fit, test and write."""
    formats = paper.choose_formats("--figures", config.figures)
    topology = config.read_topology()
    grid = transport_grid.TransportGrid(
        packets=topology.transport.packets,
        queues_products=config.queues,
        loss_fractions=config.losses,
        nums_flows=config.flows,
    )
    ns3_version()
    reference = Reference(
        aggregation="harmonic",
        binaries=None,
        num_workers=config.workers,
        timeout_s=config.time_limit,
        store=store_of_flag(config.store),
    )
    config.out.mkdir(parents=True, exist_ok=True)
    start_s = time.perf_counter()
    fitted = _fit(grid, topology, reference)
    files = transport_report.law_files(fitted)
    _show(fitted)
    if config.fresh:
        files["fresh.csv"] = _test(config, grid, fitted, topology, reference)
    _, rate, latency_s = message_cases.message_figures(
        transport_grid.grid_cases(topology, fitted[0].packets)[0]
    )
    figure = transport_report.delay_figure(
        grid, fitted, rate_bytes_per_s=rate, round_trip_s=2.0 * latency_s
    )
    for each in formats:
        files[f"{transport_report.PLOT}.{each}"] = paper.image_bytes(figure, each)
    write_together({config.out / name: content for name, content in files.items()})
    DOCUMENT.add(files=[config.out / name for name in files])
    say(f"written: {len(files)} files in {config.out}")
    say(f"took {time.perf_counter() - start_s:.1f} s")


def _fit(grid: TransportGrid, topology: Topology, reference: Reference) -> list[FittedTransport]:
    """Measure the single messages of all cells, and fit their laws."""
    cells = list(grid.cells())
    by_cell = [transport_grid.grid_cases(topology, packets) for packets in cells]
    every = [case for cases in by_cell for case in cases]
    say(f"{len(cells)} laws of {grid.packets.congestion}, {len(every)} single messages by ns-3")
    measured = iter(reference.measure(every, "ns3"))
    return [
        transport_grid.fit_cell(packets, cases, [next(measured) for _ in cases])
        for packets, cases in zip(cells, by_cell, strict=True)
    ]


def _show(fitted: Sequence[FittedTransport]) -> None:
    """Print the figures of the laws."""
    table = console_table(
        "Laws by queue [products], and mean error on the messages of their fits",
        ("queue", "loss", "flows"),
        *("opening [round trips]", "efficiency", "error"),
    )
    for each in fitted:
        table.add_row(
            f"{each.packets.queue_products:g}",
            f"{each.packets.loss_fraction:g}",
            str(each.packets.flows),
            f"{each.law.start_up_round_trips:.2f}",
            f"{each.law.efficiency:.4f}",
            f"{each.error:.2%}",
        )
    console().print(table)
    DOCUMENT.add(laws=transport_report.grid_table(fitted).to_dict("records"))


def _test(
    config: Config,
    grid: TransportGrid,
    fitted: Sequence[FittedTransport],
    topology: Topology,
    reference: Reference,
) -> bytes:
    """Measure fresh messages, print the errors of the nearest laws, and return the rows."""
    settings = list(grid.between(config.fresh, config.seed))
    cases = transport_grid.fresh_cases(topology, settings, config.seed)
    measured = reference.measure(cases, "ns3")
    table = transport_report.fresh_table(grid, fitted, cases, measured)
    errors = table["error_percent"].to_numpy()
    without = table["error_without_percent"].to_numpy()
    say(
        f"{len(cases)} fresh messages between the points: error of the nearest law "
        f"{errors.mean():.2f} % on the mean, {np.percentile(errors, 95):.2f} % at p95; "
        f"without a law {without.mean():.2f} %, "
        f"{np.percentile(without, 95):.2f} %"
    )
    return frame_csv(table).encode()
