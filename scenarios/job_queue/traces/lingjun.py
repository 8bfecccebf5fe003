"""Traces of Alibaba Lingjun 2023: a folder of ``job.csv`` and ``worker.csv``, with headers."""

from collections import defaultdict
from pathlib import Path

from des.base.strict_json import parse_json
from scenarios.job_queue.traces.calendar import slashed_seconds_of
from scenarios.job_queue.traces.trace_jobs import (
    JobRow,
    ReadRows,
    TraceForm,
    number_of,
    read_rows,
)

TABLE_NAMES = ("job.csv", "worker.csv")
JOB_COLUMNS = ("job_name", "status", "gmt_job_submitted", "gmt_job_running", "gmt_job_finished")
WORKER_COLUMNS = ("job_name", "RES")
_NOTES = (
    "GPUs are the sum over workers of the resources that end in /gpu; durations run from the "
    "later of gmt_job_submitted and gmt_job_running to gmt_job_finished, else gmt_job_stopped; "
    "times are whole minutes",
)


def _read(path: Path) -> ReadRows:
    """Read the tables of jobs and workers.

    Raises
    ------
    ValueError
        If a table is missing or torn, lacks a column, or there is no job.
    """
    gpus: dict[str, float] = defaultdict(float)
    for worker in _table(path / TABLE_NAMES[1], WORKER_COLUMNS):
        gpus[worker["job_name"]] += _gpus_of(path / TABLE_NAMES[1], worker["RES"])
    rows = [_job(job, gpus.get(job["job_name"])) for job in _table(path / "job.csv", JOB_COLUMNS)]
    return rows, _NOTES


def _table(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    rows = read_rows(path)
    missing = [column for column in columns if rows and column not in rows[0]]
    if missing:
        raise ValueError(f"{path}: must have a column {missing[0]}, got {', '.join(rows[0])}")
    return rows


def _gpus_of(path: Path, resources: str) -> float:
    """GPUs of a worker, whose resources are a JSON object of texts."""
    if not resources:
        return 0.0
    content = parse_json(resources)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: RES must hold JSON objects, got {resources[:60]!r}")
    counts = [number_of(str(value)) for name, value in content.items() if name.endswith("/gpu")]
    return sum(count or 0.0 for count in counts)


def _job(job: dict[str, str], num_gpus: float | None) -> JobRow:
    submit_s = slashed_seconds_of(job["gmt_job_submitted"])
    begin_s = slashed_seconds_of(job["gmt_job_running"])
    end_s = slashed_seconds_of(job["gmt_job_finished"])
    if end_s is None:
        end_s = slashed_seconds_of(job.get("gmt_job_stopped", ""))
    duration_s = None
    if submit_s is not None and begin_s is not None and end_s is not None:
        duration_s = end_s - max(begin_s, submit_s)
    return JobRow(
        name=job["job_name"],
        submit_s=submit_s,
        num_gpus=num_gpus,
        duration_s=duration_s,
        is_done=job["status"] in ("Succeeded", "Running"),
        tenant=job.get("namespace", ""),
        user=job.get("uid", ""),
        model=job.get("model", ""),
        priority=int(number_of(job.get("priority", "")) or 0),
    )


FORM = TraceForm(_read, f"the tables {', '.join(TABLE_NAMES)}", tables=TABLE_NAMES)
