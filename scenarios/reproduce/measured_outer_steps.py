"""Compute utilisation of INTELLECT-1: DiLoCo whose outer steps nothing hides.

Bandwidths between its sites were not published, so the time of an all-reduce is taken as measured,
and what is predicted is the rule alone: an outer step starts when the last inner one is over.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from des.plan.synchronisation import DiLoCo, ReplicatedModel
from scenarios.reproduce.cases import CaseForm, Count, PositiveNumber, read_measured
from scenarios.reproduce.measured_tables import ErrorTarget, MeasuredCell, MeasuredTable

UTILISATION = "compute_utilisation_percent"
_SECONDS_PER_MINUTE = 60.0


class OuterSetup(BaseModel):
    """Period of the outer steps, size of the model, and the target for the mean error."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    steps_between: Count
    num_parameters: PositiveNumber
    target_error: PositiveNumber | None = None


class OuterRow(CaseForm):
    """A scenario; one without an all-reduce is what the others are compared with."""

    scenario: str
    mfu: PositiveNumber | None = None
    inner_min: PositiveNumber
    all_reduce_s: PositiveNumber | None
    util: Annotated[float, Field(gt=0, le=100)]


def predict_table(path: Path, shipped: Path) -> MeasuredTable:
    """Read a table of scenarios and predict it; a file without setup takes the shipped one's.

    Raises
    ------
    ValueError
        If a file is wrong; naming file, row, field, what is allowed and what came.
    """
    rows, setup = read_measured(path, shipped, OuterRow, OuterSetup)
    return MeasuredTable(
        name=path.stem,
        cells=tuple(_cells(rows, setup)),
        targets=(ErrorTarget(quantity=UTILISATION, noun="scenarios", target=setup.target_error),),
        notes=(
            f"{path.stem}: utilisation only, from measured inner steps and all-reduces, as no "
            "bandwidths were published.",
        ),
    )


def predicted_percent(row: OuterRow, setup: OuterSetup) -> float:
    """Share of the time in which a replica computes. [%]"""
    mode = DiLoCo(steps_between=setup.steps_between, behind_backward=False)
    inner_s = _SECONDS_PER_MINUTE * row.inner_min
    model = ReplicatedModel(
        num_parameters=setup.num_parameters,
        num_layers=1,
        step_time_s=inner_s / setup.steps_between,
    )
    return 100.0 * inner_s / (inner_s + mode.exposed_s(row.all_reduce_s or 0.0, model))


def _cells(rows: tuple[OuterRow, ...], setup: OuterSetup) -> Iterator[MeasuredCell]:
    """Cells of the scenarios that exchange anything; the others say nothing of the rule."""
    for row in rows:
        if row.all_reduce_s is not None:
            yield MeasuredCell(
                run=row.scenario,
                quantity=UTILISATION,
                measured=row.util,
                predicted=predicted_percent(row, setup),
            )
