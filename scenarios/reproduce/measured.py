"""Figures of measured training runs, predicted from shapes of layers and a data sheet.

Iteration times of Megatron-DeepSpeed on A100 clusters: of vTrain (J. Bang et al., MICRO 2024) on
one node and on many, and of Megatron-Turing NLG 530B; of Megatron-LM with full and with selective
recomputation, and its memory (V. Korthikanti et al., MLSys 2023); throughput and memory of four
schedules from profiled times (Zero Bubble, ICLR 2024); Llama 3 405B in TorchTitan, and the
utilisation of INTELLECT-1. The bound of each table is its target for the mean absolute error; the
best published error stands next to it. The five constants of layer times were fitted on the public
rows of vTrain that come with EastWest; other rows, in --cases, were not seen.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from des.base.command import UsageError
from des.figures.figure import Figure
from des.figures.marks import Line, Points
from des.figures.palette import BLUE, GREY, INK
from des.figures.panels import Axis, Panel
from scenarios.reproduce import (
    measured_korthikanti,
    measured_outer_steps,
    measured_sharded,
    measured_zero_bubble,
)
from scenarios.reproduce.cases import PUBLISHED, existing_cases
from scenarios.reproduce.measured_tables import (
    MeasuredTable,
    count_other_rankings,
    predict_table,
    regime_lines,
    table_bounds,
    table_frame,
)
from scenarios.reproduce.report import Reproduction

SHIPPED = PUBLISHED / "measured"


class KnownTable(NamedTuple):
    """Title of a table in pictures, and the module that predicts its form."""

    title: str
    predict: Callable[[Path, Path], MeasuredTable]


TABLES = {
    "vtrain_multi": KnownTable("vTrain, 64-512 A100", predict_table),
    "vtrain_single": KnownTable("vTrain, one node", predict_table),
    "mtnlg": KnownTable("Megatron-Turing NLG 530B", predict_table),
    "korthikanti": KnownTable("Korthikanti et al.", measured_korthikanti.predict_table),
    "zb_throughput": KnownTable("Zero Bubble, 8-32 A100", measured_zero_bubble.predict_table),
    "torchtitan": KnownTable("TorchTitan, 512 H100", measured_sharded.predict_table),
    "intellect1": KnownTable("INTELLECT-1, three continents", measured_outer_steps.predict_table),
}
"""Tables by the beginning of a file's name."""

SHOWN = ("table", "run", "quantity", "measured", "predicted", "error_percent")
FITTED = (
    "Fitted: efficiencies of matrix products and of memory, launches of a layer, overhead of an "
    "iteration, latency of a step; all on the 56 + 72 public rows of vTrain (vtrain_multi.json, "
    "vtrain_single.json) by `python -m calibration kernels`, none per table or per run. "
    "Times with profiled layers have one more for each place, from its other public runs. "
    "Everything else is a data sheet's or the file's."
)


def reproduce_cases(folder: Path) -> Reproduction:
    """Reproduce the tables of a folder."""
    return reproduce(predict_folder(folder))


def predict_folder(folder: Path) -> list[MeasuredTable]:
    """Predict all tables of a folder that are known, by the beginning of their files' names.

    Raises
    ------
    UsageError
        If there is no such folder, or none of the tables in it.
    ValueError
        If a file is wrong; naming file, row, field, what is allowed and what came.
    """
    existing_cases(folder, kind="folder")
    tables = []
    for name, known in TABLES.items():
        for path in sorted(folder.glob(f"{name}*.json")):
            tables.append(known.predict(path, SHIPPED / f"{name}.json"))
    if not tables:
        names = ", ".join(f"{name}*.json" for name in TABLES)
        raise UsageError(f"cases: must be a folder with any of {names}; {folder} has none")
    return tables


def reproduce(tables: Sequence[MeasuredTable]) -> Reproduction:
    """Judge the mean absolute error of each quantity of each table."""
    bounds, unjudged = table_bounds(tables)
    return Reproduction(
        title="Figures of measured runs, from shapes of layers",
        frame=table_frame(tables),
        bounds=bounds,
        unjudged=unjudged,
        shown=SHOWN,
        figure=draw(tables),
        notes=(
            *regime_lines(tables),
            *count_other_rankings(tables),
            *(note for table in tables for note in table.notes),
            FITTED,
        ),
    )


def draw(tables: Sequence[MeasuredTable]) -> Figure:
    """Predicted against measured figures of each table's quantities, with lines at 20 % off."""
    wanted = [
        (table, quantity)
        for table in tables
        for quantity in dict.fromkeys(cell.quantity for cell in table.cells)
    ]
    num_cells = sum(len(table.cells) for table in tables)
    return Figure(
        name="picture",
        title="Predicted against measured",
        seen=f"{num_cells} measured figures of {len(tables)} tables against those that are "
        "predicted; grey lines are 20 % off.",
        panels=tuple(_panel(table, quantity) for table, quantity in wanted),
        columns=min(3, len(wanted)),
        width=4.0 * min(3, len(wanted)),
    )


def _panel(table: MeasuredTable, quantity: str) -> Panel:
    cells = [cell for cell in table.cells if cell.quantity == quantity]
    measured = tuple(float(cell.measured) for cell in cells)
    ends = (0.7 * min(measured), 1.4 * max(measured))
    lines = [
        Line(
            label="",
            x=ends,
            y=(factor * ends[0], factor * ends[1]),
            colour=INK if factor == 1.0 else GREY,
            width=0.8,
        )
        for factor in (1.0, 0.8, 1.2)
    ]
    predicted = tuple(float(cell.predicted) for cell in cells)
    points = Points(label="", x=measured, y=predicted, colour=BLUE, size=4.0)
    return Panel(
        x=Axis(label=f"measured {quantity}", scale="log"),
        y=Axis(label=f"predicted {quantity}", scale="log"),
        marks=(*lines, points),
        title=_title(table.name),
        height=3.2,
        grid="both",
    )


def _title(name: str) -> str:
    return next((known.title for key, known in TABLES.items() if name.startswith(key)), name)
