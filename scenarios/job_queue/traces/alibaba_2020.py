"""Traces of Alibaba PAI 2020: a folder of ``job_table.csv`` and ``task_table.csv``, no headers."""

from collections import defaultdict
from pathlib import Path

from scenarios.job_queue.traces.trace_jobs import (
    JobRow,
    ReadRows,
    TraceForm,
    difference,
    number_of,
    read_rows,
)

TABLE_NAMES = ("job_table.csv", "task_table.csv")
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK_COLUMNS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
_NOTES = (
    "GPUs are the sum over tasks of instances times plan_gpu, which is in percent; a job's "
    "start_time is its submission, and its duration runs from its first task's start",
)


def _read(path: Path) -> ReadRows:
    """Read the tables of jobs and tasks.

    Raises
    ------
    ValueError
        If a table is missing or torn, or there is no job.
    """
    tasks = read_rows(path / TABLE_NAMES[1], TASK_COLUMNS)
    gpus: dict[str, float] = defaultdict(float)
    starts_s: dict[str, float] = {}
    for task in tasks:
        name = task["job_name"]
        count, percent = number_of(task["inst_num"]), number_of(task["plan_gpu"])
        gpus[name] += (count or 0.0) * (percent or 0.0) / 100.0
        start_s = number_of(task["start_time"])
        if start_s is not None:
            starts_s[name] = min(start_s, starts_s.get(name, start_s))
    jobs = read_rows(path / TABLE_NAMES[0], JOB_COLUMNS)
    rows = []
    for job in jobs:
        name = job["job_name"]
        submit_s = number_of(job["start_time"])
        rows.append(
            JobRow(
                name=name,
                submit_s=submit_s,
                num_gpus=gpus.get(name, 0.0),
                duration_s=difference(number_of(job["end_time"]), starts_s.get(name, submit_s)),
                is_done=job["status"] == "Terminated",
                user=job["user"],
            )
        )
    return rows, _NOTES


FORM = TraceForm(_read, f"the tables {', '.join(TABLE_NAMES)}", tables=TABLE_NAMES)
