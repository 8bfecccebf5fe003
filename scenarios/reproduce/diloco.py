"""Bandwidth between data centres that reaches a compute utilisation, against the published table.

The tables are those of Streaming DiLoCo, arXiv 2501.18512, table 4, and of the scaling laws for
DiLoCo, arXiv 2503.09799, table 6: per model and synchronisation mode the lowest bandwidth of a
logarithmic grid that keeps the accelerators busy for a given share of the time. Targets, for each
table: 95 % of the cells on the published grid point or a neighbouring one, and a mean difference of
at most 0.3 grid steps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

import numpy as np
import pandas as pd
from pydantic import AfterValidator, Field, model_validator

from des.base.command import UsageError
from des.figures.figure import Figure
from des.figures.marks import Line, Mark, Points
from des.figures.palette import COLOURS
from des.figures.panels import Axis, Panel
from des.plan.synchronisation import (
    DiLoCo,
    ReplicatedModel,
    StreamingDiLoCo,
    Synchronisation,
    compute_utilisation,
    lowest_bandwidth_bytes_per_s,
)
from scenarios.reproduce.cases import (
    PUBLISHED,
    CaseFile,
    CaseForm,
    Count,
    PositiveNumber,
    read_cases,
    require_judged,
    without_null,
)
from scenarios.reproduce.report import Bound, Reproduction

SHIPPED = PUBLISHED / "diloco.json"
GRID_GBIT_PER_S = np.logspace(-1, 3, 50)
BYTES_PER_GBIT = 1e9 / 8.0
MODES: dict[str, Callable[[int], Synchronisation]] = {
    "data_parallel": lambda _: DiLoCo(steps_between=1),
    "diloco_h100": lambda steps: DiLoCo(steps_between=steps),
    "streaming": lambda steps: StreamingDiLoCo(steps_between=steps, overlap_steps=0),
    "streaming_overlap": lambda steps: StreamingDiLoCo(steps_between=steps),
    "streaming_overlap_fp4": lambda steps: StreamingDiLoCo(steps_between=steps, bits_per_value=4.0),
}
"""Columns of the table, for a number of steps between synchronisations, which the row gives."""

_NOTES = (
    "Ours: two replicas and the formulas of des.plan.synchronisation.",
    "There, one step of overlap is a fit to table 4 of Streaming DiLoCo; the rest is published or "
    "usual.",
    "A grid step is a factor of 1.21.",
)


def _on_the_grid(gbit_per_s: float) -> float:
    if not GRID_GBIT_PER_S[0] <= gbit_per_s <= GRID_GBIT_PER_S[-1]:
        raise ValueError(f"must be on the grid of 0.1 to 1000 Gbit/s, got {gbit_per_s!r}")
    return gbit_per_s


class DiLoCoRow(CaseForm):
    """One model of the table: per mode, a bandwidth for each utilisation."""

    model: str
    num_parameters: PositiveNumber
    num_layers: Count
    step_time_s: PositiveNumber
    steps_between_synchronisations: Count
    compute_utilisation_percent: Annotated[
        tuple[Annotated[float, Field(gt=0, lt=100)], ...], Field(min_length=1)
    ]
    bandwidth_gbit_per_s: Annotated[
        dict[str, tuple[Annotated[float, AfterValidator(_on_the_grid)] | None, ...] | None],
        Field(min_length=1),
    ]

    @model_validator(mode="after")
    def _known_modes_of_equal_length(self) -> Self:
        expected = len(self.compute_utilisation_percent)
        for name, bandwidths in self.bandwidth_gbit_per_s.items():
            if name not in MODES:
                raise ValueError(
                    f"bandwidth_gbit_per_s must have keys of {', '.join(MODES)}, got {name!r}"
                )
            if bandwidths is not None and len(bandwidths) != expected:
                raise ValueError(
                    f"bandwidth_gbit_per_s.{name} must have {expected} numbers, one for each "
                    f"compute_utilisation_percent, got {len(bandwidths)}"
                )
        return self

    @property
    def published(self) -> dict[str, list[tuple[float, float]]]:
        """Compute utilisation and published bandwidth of each cell, by mode. [percent, Gbit/s]"""
        cells = {}
        for name, bandwidths in without_null(self.bandwidth_gbit_per_s).items():
            pairs = zip(self.compute_utilisation_percent, bandwidths, strict=True)
            cells[name] = [(percent, gbit) for percent, gbit in pairs if gbit is not None]
        return cells

    @property
    def replicated_model(self) -> ReplicatedModel:
        """The model as the simulator takes it; the published table is of two replicas."""
        return ReplicatedModel(
            num_parameters=self.num_parameters,
            num_layers=self.num_layers,
            step_time_s=self.step_time_s,
        )

    def mode(self, name: str) -> Synchronisation:
        """Synchronisation mode of a column."""
        return MODES[name](self.steps_between_synchronisations)


def reproduce_cases(paths: Sequence[Path]) -> Reproduction:
    """Reproduce the rows of some files, a table each."""
    if not paths:
        raise UsageError("cases: must be at least one file, got none")
    tables = {}
    for path in paths:
        cases = tables[path.stem] = read_cases(path, DiLoCoRow, SHIPPED)
        judged = any(cells for row in cases.rows for cells in row.published.values())
        require_judged(path, judged, "a figure in bandwidth_gbit_per_s")
    if len(tables) < len(paths):
        names = ", ".join(path.stem for path in paths)
        raise UsageError(f"cases: names of files must differ, got {names}")
    return reproduce(tables)


def reproduce(tables: Mapping[str, CaseFile[DiLoCoRow]]) -> Reproduction:
    """Compute every published cell and judge each table: how many are right, and the bias."""
    frames = {name: compare(cases.rows) for name, cases in tables.items()}
    rows = [row for cases in tables.values() for row in cases.rows]
    return Reproduction(
        title="Bandwidth that reaches a compute utilisation, per synchronisation mode",
        frame=pd.concat(frames, names=["table"]).reset_index(level="table"),
        bounds=tuple(
            bound
            for name, frame in frames.items()
            for bound in bounds_of(name, frame, tables[name])
        ),
        figure=draw([row for row in rows if any(row.published.values())]),
        notes=(*(f"Published: {cases.source}" for cases in tables.values()), *_NOTES),
    )


def bounds_of(name: str, frame: pd.DataFrame, cases: CaseFile[DiLoCoRow]) -> list[Bound]:
    """Hold the cells of a table against its targets; without any found, only how many are right."""
    targets, recorded = cases.targets, cases.recorded
    bounds = [
        Bound.at_least(
            f"{name}, cells on the published or a neighbouring grid point, of {len(frame)}",
            float(frame["within_a_grid_step"].mean()),
            targets["cells_within_a_grid_step"],
            recorded=recorded.get("cells_within_a_grid_step"),
            shown=".1%",
        )
    ]
    above = frame["grid_steps_above"].dropna()
    if len(above):
        bias = float(above.mean())
        side = "above" if bias >= 0 else "below"
        bounds.append(
            Bound.at_most(
                f"{name}, mean of grid steps that ours lies {side}",
                abs(bias),
                targets["mean_grid_steps"],
                recorded=recorded.get("mean_grid_steps"),
                shown=".2f",
            )
        )
    return bounds


def compare(rows: Sequence[DiLoCoRow]) -> pd.DataFrame:
    """One row per cell: what is published, ours, and how many grid points ours lies above it."""
    cells = []
    for row in rows:
        for name, published in row.published.items():
            for percent, gbit_per_s in published:
                ours = lowest_grid_point(row, name, percent)
                steps = None if ours is None else ours - nearest_grid_point(gbit_per_s)
                cells.append(
                    {
                        "model": row.model,
                        "mode": name,
                        "compute_utilisation_percent": percent,
                        "published_gbit_per_s": gbit_per_s,
                        "ours_gbit_per_s": None if ours is None else GRID_GBIT_PER_S[ours],
                        "grid_steps_above": steps,
                        "within_a_grid_step": steps is not None and abs(steps) <= 1,
                    }
                )
    return pd.DataFrame(cells).astype({"ours_gbit_per_s": float, "grid_steps_above": "Int64"})


def lowest_grid_point(row: DiLoCoRow, name: str, utilisation_percent: float) -> int | None:
    """Index of the lowest grid point that reaches the utilisation; None if none does."""
    candidates = (GRID_GBIT_PER_S * BYTES_PER_GBIT).tolist()
    lowest = lowest_bandwidth_bytes_per_s(
        row.mode(name), row.replicated_model, utilisation_percent / 100.0, candidates
    )
    return None if lowest is None else candidates.index(lowest)


def nearest_grid_point(gbit_per_s: float) -> int:
    """Index of the grid point nearest in ratio: published figures are rounded to 0.1 Gbit/s."""
    return int(np.abs(np.log(GRID_GBIT_PER_S) - math.log(gbit_per_s)).argmin())


def draw(rows: Sequence[DiLoCoRow]) -> Figure:
    """Utilisation against bandwidth: ours as lines, the published cells as points."""
    return Figure(
        name="picture",
        title="Compute utilisation against bandwidth; points: published",
        seen=f"Compute utilisation of {len(rows)} models over the bandwidth between data centres; "
        "lines are ours, points are the published cells.",
        panels=tuple(map(_panel, rows)),
    )


def _panel(row: DiLoCoRow) -> Panel:
    marks: list[Mark] = []
    for name, hue in zip(MODES, COLOURS[1:], strict=False):
        published = row.published.get(name)
        if not published:
            continue
        utilisations = tuple(
            100.0 * compute_utilisation(row.mode(name), row.replicated_model, gbit * BYTES_PER_GBIT)
            for gbit in GRID_GBIT_PER_S
        )
        label = name.replace("_", " ")
        grid = tuple(float(gbit) for gbit in GRID_GBIT_PER_S)
        marks.append(Line(label=label, x=grid, y=utilisations, colour=hue))
        percents, gbits = zip(*published, strict=True)
        marks.append(Points(label="", x=gbits, y=percents, colour=hue, size=4.0))
    return Panel(
        x=Axis(label="bandwidth between data centres [Gbit/s]", scale="log"),
        y=Axis(label="compute utilisation [%]"),
        marks=tuple(marks),
        title=row.model,
        height=3.0,
        grid="both",
    )
