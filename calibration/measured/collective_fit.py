"""Fit of link figures to measured all-reduces: constants that all GPU models share, and departures.

The time of a cell is that of `des.costs.device_collectives` as a ring: it depends on a launch, a
floor, and the latency and pace of the slowest hop. A model's constants are the shared ones times
factors that are pulled towards 1, so few cells of a model move it little. The shared ones and those
of networks are pulled, weakly, towards NCCL's own. Cells count by the logarithm of predicted over
measured, large errors by their size and no more by their square.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from calibration.measured.collective_table import CollectiveCell, server_of_node
from des.costs.device_groups import DeviceGroup
from des.devices.gpu_kinds import gpu_ports_named
from des.devices.link_figures import DeviceFigures, NetworkConstants, TransferConstants

Real = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

START = TransferConstants(
    launch_s=20e-6,
    floor_s=35e-6,
    nvlink_step_s=3.4e-6,
    nvlink_fraction=20 / 25,
    pcie_step_s=5.7e-6,
    pcie_fraction=12 / 15.75,
)
"""First guesses: NCCL's steps and fractions (2.18, ``graph/tuning.cc``, ``graph/topo.h``); launches
of some ten microseconds.
"""

START_NETWORK = NetworkConstants(
    gpu_bandwidth_bytes_per_s=12e9, server_bandwidth_bytes_per_s=48e9, step_s=14e-6
)
"""First guess: a card of 100 Gbit/s for a GPU, four in a server, NCCL's step."""

_PULLS = (0.02, 0.02, 0.05, 0.05, 0.05, 0.05)
"""Weights of staying at the first guesses, for constants that the cells do not tell."""

_DEPARTURE_PULLS = (0.1, 0.2, 0.4, 0.4, 0.6, 0.6)
"""Weights of staying at the shared constants: launches differ, steps and fractions hardly."""

_NETWORK_PULLS = (0.003, 0.2, 1.0)
"""The same for networks: bandwidths of cards differ most, latencies hardly."""

_BROAD = 0.1
"""Relative error from which on a cell counts by its size, no more by its square."""

_SHARPNESS = 8.0
"""Power of the mean by which the fit rounds off the corner between floor and slope."""

_NVLINK_MARK_S, _PCIE_MARK_S = 1.0, 2.0
_MARKS = TransferConstants(
    launch_s=0.0,
    floor_s=0.0,
    nvlink_step_s=_NVLINK_MARK_S,
    nvlink_fraction=1.0,
    pcie_step_s=_PCIE_MARK_S,
    pcie_fraction=1.0,
)
"""Constants under which a group's slowest hop has its line rate, and a latency for its kind."""

CONSTANT_NAMES = tuple(field.name for field in fields(TransferConstants))
NETWORK_NAMES = tuple(field.name for field in fields(NetworkConstants))
_LAUNCH, _FLOOR, _NVLINK_STEP, _NVLINK_FRACTION, _PCIE_STEP, _PCIE_FRACTION = range(6)


def group_of_cell(cell: CollectiveCell, figures: DeviceFigures) -> DeviceGroup:
    """GPUs of a cell: the first ones of each machine."""
    num_servers = cell.workers // cell.gpus_per_node
    return DeviceGroup.of_server(
        server_of_node(cell.node),
        figures,
        places=range(cell.gpus_per_node),
        num_servers=num_servers,
        network=figures.of_network(cell.node) if num_servers > 1 else None,
    )


@dataclass(frozen=True, kw_only=True)
class CellTable:
    """Cells as columns: the machine's GPU model and network by number, steps, bytes, line rates."""

    cells: tuple[CollectiveCell, ...]
    source: str = ""

    @cached_property
    def rows(self) -> Rows:
        """Places of all cells."""
        return np.arange(len(self.cells))

    @cached_property
    def models(self) -> tuple[str, ...]:
        """GPU models of the machines, each once."""
        return tuple(dict.fromkeys(map(_model_of, self.cells)))

    @cached_property
    def networks(self) -> tuple[str, ...]:
        """Machines with cells over several of them, each once."""
        crossing = [cell.node for cell in self.cells if cell.workers > cell.gpus_per_node]
        return tuple(dict.fromkeys(crossing))

    @cached_property
    def columns(self) -> dict[str, Real]:
        """Values that a time depends on, one of each for every cell."""
        marked = DeviceFigures(
            pooled=_MARKS,
            networks=dict.fromkeys(self.networks, START_NETWORK),
            algorithm="ring",
            least_bytes=0.0,
            source="",
        )
        rows = []
        for cell in self.cells:
            line, mark = group_of_cell(cell, marked).inner_hop or (np.inf, 0.0)
            crosses = cell.workers > cell.gpus_per_node
            rows.append(
                {
                    "model": self.models.index(_model_of(cell)),
                    "network": self.networks.index(cell.node) if crosses else -1,
                    "gpus": cell.gpus_per_node,
                    "steps": 2 * (cell.workers - 1),
                    "sent": 2 * (cell.workers - 1) / cell.workers * cell.payload_bytes,
                    "line": line,
                    "mark": mark,
                    "time": cell.time_s,
                }
            )
        return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}

    @cached_property
    def start(self) -> Real:
        """First guesses: logarithms of shared constants, of departures, of those of networks."""
        own = np.zeros(len(self.models) * len(CONSTANT_NAMES))
        networks = np.tile(np.log(astuple(START_NETWORK)), len(self.networks))
        return np.concatenate([np.log(astuple(START)), own, networks])

    @cached_property
    def pulls(self) -> Real:
        """Weights of staying at the first guesses."""
        return np.concatenate(
            [
                _PULLS,
                np.tile(_DEPARTURE_PULLS, len(self.models)),
                np.tile(_NETWORK_PULLS, len(self.networks)),
            ]
        )

    def constants(self, vector: Real) -> tuple[Real, Real, Real]:
        """Shared constants, those of models and of networks, row by row, from their logarithms."""
        count, split = len(CONSTANT_NAMES), len(CONSTANT_NAMES) * (1 + len(self.models))
        shared = vector[:count]
        own = shared + vector[count:split].reshape(len(self.models), count)
        networks = vector[split:].reshape(len(self.networks), len(NETWORK_NAMES))
        return _bound(np.exp(shared)), _bound(np.exp(own)), np.exp(networks)

    def predicted_s(self, vector: Real, rows: Rows, *, is_rounded: bool) -> Real:
        """Times of some cells. [s]

        With ``is_rounded`` the corner between floor and slope is rounded off, for the fit.
        """
        cell = {name: column[rows] for name, column in self.columns.items()}
        _, models, networks = self.constants(vector)
        of = models[cell["model"].astype(int)]
        is_pcie = cell["mark"] == _PCIE_MARK_S
        step = np.where(is_pcie, of[:, _PCIE_STEP], of[:, _NVLINK_STEP])
        step = np.where(cell["mark"] == 0.0, 0.0, step)
        pace = cell["line"] * np.where(is_pcie, of[:, _PCIE_FRACTION], of[:, _NVLINK_FRACTION])
        if len(self.networks):
            out = networks[cell["network"].astype(int)]
            crosses = cell["network"] >= 0
            way = np.minimum(cell["gpus"] * out[:, 0], out[:, 1])
            pace = np.where(crosses, np.minimum(pace, way), pace)
            step = np.where(crosses, np.maximum(step, out[:, 2]), step)
        slope = of[:, _LAUNCH] + cell["steps"] * step + cell["sent"] / pace
        floor = of[:, _FLOOR]
        larger: Real = np.maximum(floor, slope)
        if not is_rounded:
            return larger
        ratio = np.minimum(floor, slope) / larger
        rounded: Real = larger * (1.0 + ratio**_SHARPNESS) ** (1.0 / _SHARPNESS)
        return rounded

    def figures(self, vector: Real) -> DeviceFigures:
        """Figures of fitted logarithms, to six digits."""
        shared, models, networks = (_round(part) for part in self.constants(vector))
        return DeviceFigures(
            pooled=TransferConstants(**dict(zip(CONSTANT_NAMES, shared, strict=True))),
            models={
                name: TransferConstants(**dict(zip(CONSTANT_NAMES, row, strict=True)))
                for name, row in zip(self.models, models, strict=True)
            },
            networks={
                name: NetworkConstants(**dict(zip(NETWORK_NAMES, row, strict=True)))
                for name, row in zip(self.networks, networks, strict=True)
            },
            algorithm="ring",
            least_bytes=float(min(cell.payload_bytes for cell in self.cells)),
            source=self.source,
        )


def fit_cells(table: CellTable, rows: Rows | None = None) -> Real:
    """Fit the logarithms of all constants to some cells of a table, all if not given."""
    chosen = table.rows if rows is None else rows
    measured = table.columns["time"][chosen]

    def residuals(vector: Real) -> Real:
        predicted_s = table.predicted_s(vector, chosen, is_rounded=True)
        error = np.log(predicted_s / measured)
        robust = np.sign(error) * _BROAD * np.sqrt(2 * (np.hypot(1.0, error / _BROAD) - 1.0))
        return np.concatenate([robust, table.pulls * (vector - table.start)])

    steps = np.full(len(table.start), 1e-3)
    solved: Real = least_squares(residuals, table.start, diff_step=steps).x
    return solved


def bootstrap_intervals(
    table: CellTable,
    num_draws: int,
    rng: np.random.Generator,
    on_step: Callable[[], None] = lambda: None,
) -> Real:
    """95 % intervals of all constants, (2, N): fits to cells drawn with replacement.

    The constants are the shared ones, those of models and those of networks, row by row.
    """
    count = len(table.cells)
    draws = []
    for _ in range(num_draws):
        fitted = fit_cells(table, rng.integers(count, size=count))
        draws.append(all_constants(table, fitted))
        on_step()
    found: Real = np.quantile(draws, (0.025, 0.975), axis=0)
    return found


def all_constants(table: CellTable, vector: Real) -> Real:
    """Constants in one row: shared, of models, of networks."""
    return np.concatenate([part.ravel() for part in table.constants(vector)])


def constant_names(table: CellTable) -> tuple[str, ...]:
    """Names of `all_constants`."""
    return (
        *(f"pooled.{name}" for name in CONSTANT_NAMES),
        *(f"models.{model}.{name}" for model in table.models for name in CONSTANT_NAMES),
        *(f"networks.{node}.{name}" for node in table.networks for name in NETWORK_NAMES),
    )


def _bound(constants: Real) -> Real:
    """Fractions are at most 1."""
    limits = [1.0 if name.endswith("fraction") else np.inf for name in CONSTANT_NAMES]
    return np.minimum(constants, limits)


def _round(constants: Real) -> list[Any]:
    """Constants to six digits, in lists as deep as the array."""
    rounded: list[Any] = np.vectorize(lambda value: float(f"{value:.6g}"), otypes=[float])(
        constants
    ).tolist()
    return rounded


def _model_of(cell: CollectiveCell) -> str:
    return gpu_ports_named(server_of_node(cell.node).gpus[0].model).name
