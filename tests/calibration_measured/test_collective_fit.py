"""Fit of link figures: constants that are known come back, shipped figures, cells left out."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.measured.collective_errors import (
    cell_errors,
    errors_left_out,
    halves_errors,
    unexplained,
)
from calibration.measured.collective_fit import (
    CellTable,
    all_constants,
    bootstrap_intervals,
    constant_names,
    fit_cells,
    group_of_cell,
)
from calibration.measured.collective_table import SHIPPED_TABLE, CollectiveCell, read_measured_table
from des.costs.device_collectives import all_reduce_time
from des.devices.figures_file import shipped_link_figures
from des.devices.link_figures import DeviceFigures, NetworkConstants, TransferConstants

A100 = TransferConstants(
    launch_s=30e-6,
    floor_s=45e-6,
    nvlink_step_s=2e-6,
    nvlink_fraction=0.7,
    pcie_step_s=5.7e-6,
    pcie_fraction=12 / 15.75,
)
KNOWN = DeviceFigures(
    pooled=A100,
    models={"a100": A100},
    networks={
        "a100_dgx": NetworkConstants(
            gpu_bandwidth_bytes_per_s=8e9, server_bandwidth_bytes_per_s=32e9, step_s=14e-6
        )
    },
    algorithm="ring",
    least_bytes=0.0,
    source="made up",
)


def shipped() -> CellTable:
    """Shipped cells from 1 MiB on."""
    table = read_measured_table(SHIPPED_TABLE)
    return CellTable(cells=tuple(cell for cell in table.cells if cell.payload_bytes >= 2**20))


def made_up() -> CellTable:
    """Cells of DGX A100 whose times are those of known figures."""
    rows = [(2, 2), (4, 4), (8, 8), (2, 1), (4, 2), (8, 4), (16, 8)]
    cells = []
    for workers, gpus_per_node in rows:
        for power in range(18, 29, 2):
            cell = CollectiveCell(
                node="a100_dgx",
                workers=workers,
                gpus_per_node=gpus_per_node,
                payload_bytes=2**power,
                time_s=1.0,
            )
            time_s = all_reduce_time(group_of_cell(cell, KNOWN), cell.payload_bytes).time_s
            cells.append(replace(cell, time_s=time_s))
    return CellTable(cells=tuple(cells))


def test_known_constants_come_back():
    table = made_up()
    figures = table.figures(fit_cells(table))

    own, network = figures.models["a100"], figures.networks["a100_dgx"]
    assert own.launch_s == pytest.approx(30e-6, rel=0.05)
    assert own.floor_s == pytest.approx(45e-6, rel=0.1)
    assert own.nvlink_step_s == pytest.approx(2e-6, rel=0.1)
    assert own.nvlink_fraction == pytest.approx(0.7, rel=0.02)
    assert network.gpu_bandwidth_bytes_per_s == pytest.approx(8e9, rel=0.02)
    assert network.server_bandwidth_bytes_per_s == pytest.approx(32e9, rel=0.02)
    assert network.step_s == pytest.approx(14e-6, rel=0.05)
    assert unexplained(table.cells) == [None] * len(table.cells)


def test_one_wild_cell_moves_no_constant_far():
    table = made_up()
    wild = replace(table.cells[-1], time_s=10 * table.cells[-1].time_s)
    plain, moved = (
        all_constants(each, fit_cells(each))
        for each in (table, CellTable(cells=(*table.cells[:-1], wild)))
    )

    assert np.median(np.abs(moved / plain - 1)) < 0.02


def test_the_fit_has_the_times_of_the_collectives():
    """What is fitted is `all_reduce_time`, but for the digits of the figures."""
    table = shipped()
    vector = fit_cells(table)
    figures = table.figures(vector)

    predicted_s = table.predicted_s(vector, table.rows, is_rounded=False)
    times_s = [
        all_reduce_time(group_of_cell(cell, figures), cell.payload_bytes).time_s
        for cell in table.cells
    ]
    assert times_s == pytest.approx(predicted_s.tolist(), rel=1e-4)


def test_shipped_figures_are_those_of_the_shipped_table():
    table, shipped_figures = shipped(), shipped_link_figures()
    fitted = table.figures(fit_cells(table))

    assert fitted.models.keys() == shipped_figures.models.keys()
    for name, own in fitted.models.items():
        for field in ("launch_s", "floor_s", "nvlink_fraction", "pcie_fraction"):
            there = getattr(shipped_figures.models[name], field)
            assert getattr(own, field) == pytest.approx(there, rel=0.01)


def test_errors_on_cells_left_out_keep_within_15_and_35_per_cent():
    """Median and 95th percentile; 10 and 30 without the four cells that nothing explains."""
    table = shipped()
    halves = halves_errors(table, 20, 0)
    folds = np.abs(errors_left_out(table, 4, np.random.default_rng(0)))

    assert np.median(halves.medians) < 0.15
    assert np.median(halves.p95s) < 0.35
    assert np.median(halves.medians_explained) < 0.10
    assert np.median(halves.p95s_explained) < 0.30
    assert np.median(folds) < 0.15
    assert np.quantile(folds, 0.95) < 0.35


def test_cells_above_the_line_between_others_are_named():
    cells = shipped().cells
    named = [cell.label for cell, why in zip(cells, unexplained(cells), strict=True) if why]

    assert named == [
        "a100_dgx, 4 GPUs, 2 each, 4 MiB",
        "a100_dgx, 16 GPUs, 8 each, 4 MiB",
        "a100_dgx, 16 GPUs, 8 each, 8 MiB",
        "a100_pairwise_nvlink, 2 GPUs, 2 each, 1 MiB",
    ]


def test_a_cell_that_takes_longer_than_a_larger_one_is_named():
    row = CollectiveCell(node="h100_dgx", workers=2, gpus_per_node=2, payload_bytes=1, time_s=1.0)
    cells = [replace(row, payload_bytes=2**power, time_s=time_s)
             for power, time_s in ((20, 2.0), (21, 1.0), (22, 3.0))]  # fmt: skip

    assert unexplained(cells) == ["100% longer than a larger message", None, None]


def test_a_cell_measured_twice_is_no_reason_to_name_it():
    row = CollectiveCell(node="h100_dgx", workers=2, gpus_per_node=2, payload_bytes=1, time_s=1.0)

    assert unexplained([row, replace(row, time_s=1.3), replace(row, payload_bytes=2)]) == [
        None,
        "30% longer than a larger message",
        None,
    ]


def test_intervals_hold_the_constants_and_have_their_names():
    table = made_up()
    vector = fit_cells(table)
    low, high = bootstrap_intervals(table, 10, np.random.default_rng(0))

    names = constant_names(table)
    assert len(names) == len(low) == len(set(names))
    inside = (low <= all_constants(table, vector) * 1.05) & (
        all_constants(table, vector) <= high * 1.05
    )
    assert inside.mean() > 0.8
    assert np.abs(cell_errors(table, vector)).max() < 0.1
