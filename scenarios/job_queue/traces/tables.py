"""Traces that are one CSV file: Helios, Acme, Alibaba 2020, 2023 and spot, Tiresias, Muri, Blox."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from scenarios.job_queue.traces.calendar import seconds_of
from scenarios.job_queue.traces.own_columns import job_by_roles
from scenarios.job_queue.traces.trace_jobs import (
    JobRow,
    ReadRows,
    difference,
    number_of,
    read_rows,
)

Row = Mapping[str, str]

_ROLES = ("name", "model", "submit", "duration", "gpus")
_TIRESIAS = ("job_id", "model_name", "submit_time", "duration", "num_gpu")
_BLOX = ("id", "model", "arrival_s", "iterations", "gpus")
"""Columns of forms without states of jobs, which have these roles, see `own_columns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """A trace of one table.

    Attributes
    ----------
    columns
        Columns that it must have; all of them, in order, where it has no header line.
    row
        Job of a row.
    """

    columns: tuple[str, ...]
    row: Callable[[Row], JobRow]
    has_header: bool = True
    notes: tuple[str, ...] = ()

    def read(self, path: Path) -> ReadRows:
        """Read a file.

        Raises
        ------
        ValueError
            If a row is torn.
        """
        rows = read_rows(path, () if self.has_header else self.columns)
        return map(self.row, rows), self.notes

    @property
    def mark(self) -> str:
        """Words for what it is recognised by."""
        if self.has_header:
            return f"the columns {', '.join(self.columns)}"
        return "five cells without a header, all but the second numbers"

    def likeness(self, _: Path, head: str) -> float:
        """Share of the columns that are in a first line, or of the numbers that are."""
        cells = cells_of(head)
        fits = [column in cells for column in self.columns]
        if not self.has_header:
            numbers = [number_of(cell) is not None for cell in (*cells[:1], *cells[2:])]
            fits = numbers if len(cells) == len(self.columns) else [False]
        return sum(fits) / len(fits)


def cells_of(head: str) -> list[str]:
    """Cells of a first line."""
    return [cell.strip() for cell in head.split(",")]


def _product(*texts: str) -> float | None:
    product = 1.0
    for text in texts:
        number = number_of(text)
        if number is None:
            return None
        product *= number
    return product


def _logged(row: Row, tenant: str, duration_s: float | None) -> JobRow:
    """Job of Helios and Acme, whose tenant is in a column of its own."""
    return JobRow(
        name=row["job_id"],
        submit_s=seconds_of(row["submit_time"]),
        num_gpus=number_of(row["gpu_num"]),
        duration_s=duration_s,
        is_done=row["state"] == "COMPLETED",
        tenant=row[tenant],
        user=row["user"],
    )


def _alibaba_2023(row: Row) -> JobRow:
    whole = number_of(row["num_gpu"])
    part = number_of(row["gpu_milli"])
    is_part = whole == 1.0 and part is not None
    created_s, ended_s = number_of(row["creation_time"]), number_of(row["deletion_time"])
    started_s = number_of(row["scheduled_time"])
    return JobRow(
        name=row["name"],
        submit_s=created_s,
        num_gpus=part / 1000.0 if is_part and part is not None else whole,
        duration_s=difference(ended_s, created_s if started_s is None else started_s),
        is_done=row["pod_phase"] in ("Succeeded", "Running"),
        tenant=row["qos"],
    )


def _alibaba_spot(row: Row) -> JobRow:
    return JobRow(
        name=row["job_name"],
        submit_s=number_of(row["submit_time"]),
        num_gpus=_product(row["gpu_request"], row["worker_num"]),
        duration_s=number_of(row["duration"]),
        tenant=row["organization"],
        priority=1 if row["job_type"] == "HP" else 0,
    )


TABLE_FORMS: Mapping[str, TableForm] = MappingProxyType(
    {
        "helios": TableForm(
            columns=("job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration"),
            row=lambda row: _logged(row, "vc", number_of(row["duration"])),
        ),
        "acme": TableForm(
            columns=(
                *("job_id", "user", "gpu_num", "type", "state"),
                *("submit_time", "start_time", "end_time"),
            ),
            row=lambda row: _logged(
                row, "type", difference(seconds_of(row["end_time"]), seconds_of(row["start_time"]))
            ),
            notes=("durations are end less start; the column duration is not used",),
        ),
        "alibaba_2023": TableForm(
            columns=(
                *("name", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase"),
                *("creation_time", "deletion_time", "scheduled_time"),
            ),
            row=_alibaba_2023,
            notes=("a pod that was never scheduled counts from its creation",),
        ),
        "alibaba_spot": TableForm(
            columns=(
                *("job_name", "organization", "gpu_model", "gpu_request", "worker_num"),
                *("submit_time", "duration", "job_type"),
            ),
            row=_alibaba_spot,
        ),
        "tiresias": TableForm(
            columns=_TIRESIAS,
            row=partial(job_by_roles, columns=dict(zip(_ROLES, _TIRESIAS, strict=True))),
        ),
        "blox": TableForm(
            columns=_BLOX,
            row=partial(job_by_roles, columns=dict(zip(_ROLES, _BLOX, strict=True))),
            has_header=False,
            notes=("an iteration takes 1 s, as the file has no other",),
        ),
    }
)
"""Forms of one table by name."""
