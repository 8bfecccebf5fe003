"""Jobs of a trace, and the rows that were left out, by reason."""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from des.base.text_files import read_text
from des.cluster.queued_job import QueuedJob

NOT_DONE = "failed or killed"
"""Reason of rows that are left out where only completed jobs are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as a trace has it; times count from any zero of the trace."""

    name: str
    submit_s: float | None
    num_gpus: float | None
    duration_s: float | None
    is_done: bool = True
    tenant: str = ""
    user: str = ""
    model: str = ""
    priority: int = 0


ReadRows = tuple[Iterable[JobRow], Sequence[str]]
"""Rows of a trace, and notes on what was made of them."""


class TraceForm(NamedTuple):
    """A form of traces: files whose first line is like it, or folders of some tables."""

    read: Callable[[Path], ReadRows]
    mark: str
    """Words for what it is recognised by."""
    likeness: Callable[[Path, str], float] = lambda path, head: 0.0
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTrace:
    """Jobs of a trace in order of arrival from 0, numbered in this order.

    ``dropped`` counts the rows left out by reason; ``notes`` say what is not as in the file, and
    ``told_by`` by what the form was recognised.
    """

    form: str
    jobs: tuple[QueuedJob, ...]
    dropped: Mapping[str, int]
    notes: tuple[str, ...] = ()
    told_by: str = ""

    @property
    def report(self) -> tuple[str, ...]:
        """Lines on the rows that were read and left out."""
        total = len(self.jobs) + sum(self.dropped.values())
        lines = [f"trace of form {self.form}: {len(self.jobs)} of {total} rows are jobs"]
        lines += [f"left out, {reason}: {count}" for reason, count in self.dropped.items()]
        told = [f"form {self.form}, by {self.told_by}"] if self.told_by else []
        return (*told, *lines, *self.notes)


def jobs_of_rows(
    path: Path,
    form: str,
    rows: Iterable[JobRow],
    *,
    keeps_failed: bool,
    notes: Sequence[str] = (),
) -> JobTrace:
    """Make jobs of rows: whole GPUs, time from 0, numbers in order of arrival.

    Raises
    ------
    ValueError
        If no row is a job.
    """
    dropped: Counter[str] = Counter()
    kept: list[tuple[float, int, JobRow]] = []
    num_parts = 0
    for place, row in enumerate(rows):
        reason = _reason(row, keeps_failed=keeps_failed)
        if reason:
            dropped[reason] += 1
        else:
            assert row.submit_s is not None
            assert row.num_gpus is not None
            kept.append((row.submit_s, place, row))
            num_parts += row.num_gpus != math.ceil(row.num_gpus)
    if not kept:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "no rows"
        raise ValueError(f"{path}: must hold jobs in the form {form}, got none ({reasons})")
    kept.sort(key=lambda each: each[:2])
    start_s = kept[0][0]
    if num_parts:
        notes = (*notes, f"{num_parts} jobs with parts of a GPU have whole ones here")
    return JobTrace(
        form=form,
        jobs=tuple(_job(number, row, start_s) for number, (_, _, row) in enumerate(kept)),
        dropped=dict(sorted(dropped.items())),
        notes=tuple(notes),
    )


def _reason(row: JobRow, *, keeps_failed: bool) -> str:
    """Reason to leave a row out; none for a job."""
    for number, missing in (
        (row.submit_s, "no time of submission"),
        (row.num_gpus, "no number of GPUs"),
        (row.duration_s, "no duration"),
    ):
        if number is None or not math.isfinite(number):
            return missing
    reasons = {
        "negative time of submission": row.submit_s is not None and row.submit_s < 0,
        "no GPUs": row.num_gpus is not None and row.num_gpus <= 0,
        "negative duration": row.duration_s is not None and row.duration_s < 0,
        "duration of 0": row.duration_s == 0,
        NOT_DONE: not row.is_done and not keeps_failed,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


_KEPT = ("name", "tenant", "user", "model", "priority")
"""Fields of a row that a job has as they are."""


def _job(number: int, row: JobRow, start_s: float) -> QueuedJob:
    assert row.submit_s is not None
    assert row.num_gpus is not None
    assert row.duration_s is not None
    return QueuedJob(
        job_id=number,
        arrival_s=row.submit_s - start_s,
        num_gpus=math.ceil(row.num_gpus),
        service_s=row.duration_s,
        **{field: getattr(row, field) for field in _KEPT},
    )


def read_rows(
    path: Path, columns: Sequence[str] = (), *, delimiter: str = ","
) -> list[dict[str, str]]:
    """Read a CSV file; ``columns`` name those of a file without a header line.

    Raises
    ------
    ValueError
        If the file cannot be read, or a row has more or fewer cells than there are columns.
    """
    reader = csv.reader(io.StringIO(read_text(path)), delimiter=delimiter)
    lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    if not columns and lines:
        columns = lines.pop(0)[1]
    for number, row in lines:
        if len(row) != len(columns):
            raise ValueError(
                f"{path}, line {number}: must have {len(columns)} cells, got {len(row)}"
            )
    return [dict(zip(columns, row, strict=True)) for _, row in lines]


def difference(later_s: float | None, earlier_s: float | None) -> float | None:
    """Time between two times; None where one of them is not known. [s]"""
    return None if later_s is None or earlier_s is None else later_s - earlier_s


def number_of(text: str) -> float | None:
    """Number that a cell holds; None for an empty cell, ``None``, ``null`` and other texts.

    Examples
    --------
    >>> number_of("12"), number_of("None")
    (12.0, None)
    """
    try:
        return float(text)
    except ValueError:
        return None
