"""Traces that are a user's own CSV file, whose columns ``--columns`` names."""

from collections.abc import Mapping
from pathlib import Path

from des.base.checks import require_known
from scenarios.job_queue.traces.calendar import seconds_of
from scenarios.job_queue.traces.trace_jobs import (
    JobRow,
    ReadRows,
    difference,
    number_of,
    read_rows,
)

NEEDED = ("submit", "gpus")
TIMES = ("duration", "start", "end")
TEXTS = ("name", "tenant", "user", "model")
ROLES = (*NEEDED, *TIMES, *TEXTS, "priority")
"""Roles of columns: times in seconds, or dates and times; a duration in seconds, or an end."""


def read_own_columns(path: Path, columns: Mapping[str, str]) -> ReadRows:
    """Read a CSV file with a header; a duration is given, or runs to the end from the start.

    ``columns`` are the names in the header by role; where there is no column of the start, a job
    starts when it is submitted.

    Raises
    ------
    ValueError
        If a role is unknown or missing, a column is not there, or there is no job.
    """
    for role in columns:
        require_known(f"{path}: columns: unknown", role, ROLES)
    lacks = [role for role in NEEDED if role not in columns]
    lacks += ["duration or end"] * ("duration" not in columns and "end" not in columns)
    if lacks:
        raise ValueError(f"{path}: columns: must name those of {', '.join(lacks)}")
    rows = read_rows(path)
    missing = [name for name in columns.values() if rows and name not in rows[0]]
    if missing:
        raise ValueError(
            f"{path}: must have the columns {', '.join(missing)}; got {', '.join(rows[0])}"
        )
    return [job_by_roles(row, columns, str(number)) for number, row in enumerate(rows)], ()


def job_by_roles(row: Mapping[str, str], columns: Mapping[str, str], name: str = "") -> JobRow:
    """Job of a row with a column for each role; the name is that where no column has it."""
    cells = {role: row[name] for role, name in columns.items()}
    submit_s = _time_s(cells["submit"])
    if "duration" in cells:
        duration_s = number_of(cells["duration"])
    else:
        begin_s = _time_s(cells.get("start", cells["submit"]))
        duration_s = difference(_time_s(cells["end"]), begin_s)
    return JobRow(
        name=cells.get("name", name),
        submit_s=submit_s,
        num_gpus=number_of(cells["gpus"]),
        duration_s=duration_s,
        tenant=cells.get("tenant", ""),
        user=cells.get("user", ""),
        model=cells.get("model", ""),
        priority=int(number_of(cells.get("priority", "")) or 0),
    )


def _time_s(text: str) -> float | None:
    number = number_of(text)
    return seconds_of(text) if number is None else number
