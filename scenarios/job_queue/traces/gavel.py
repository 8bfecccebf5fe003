"""Traces of Gavel and Shockwave: tab text of steps, and a JSON file of throughputs."""

from collections.abc import Mapping
from pathlib import Path

from des.base.text_files import read_json
from scenarios.job_queue.traces.trace_jobs import (
    JobRow,
    ReadRows,
    TraceForm,
    number_of,
    read_rows,
)

COLUMNS = (
    *("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir"),
    *("total_steps", "scale_factor", "priority_weight", "SLO", "arrival_time"),
)
THROUGHPUTS = "throughputs.json"
"""File next to the trace: steps per second by type of GPU, type of job and number of GPUs."""


def _read(path: Path) -> ReadRows:
    """Read a trace, durations from its steps and the throughputs on the first type of GPU.

    ``throughputs.json`` has the form ``{type of GPU: {type of job: {number of GPUs: steps/s}}}``.

    Raises
    ------
    ValueError
        If a file cannot be read or there is no job.
    """
    first = path.read_text("utf-8").splitlines()[0].split("\t") if path.is_file() else []
    columns = (*COLUMNS, "mode") if len(first) == len(COLUMNS) + 1 else COLUMNS
    rows_read = read_rows(path, columns, delimiter="\t")
    speeds = read_json(path.parent / THROUGHPUTS)
    if not isinstance(speeds, dict) or not speeds:
        raise ValueError(f"{path.parent / THROUGHPUTS}: must map types of GPU to throughputs")
    gpu_type, of_type = next(iter(speeds.items()))
    rows = [
        JobRow(
            name=str(number),
            submit_s=number_of(row["arrival_time"]),
            num_gpus=number_of(row["scale_factor"]),
            duration_s=_duration_s(of_type, row),
            model=row["job_type"],
            priority=int(number_of(row["priority_weight"]) or 0),
        )
        for number, row in enumerate(rows_read)
    ]
    return rows, (f"durations are steps over the throughput on {gpu_type}",)


def _duration_s(speeds: Mapping[str, Mapping[str, float]], row: Mapping[str, str]) -> float | None:
    steps, width = number_of(row["total_steps"]), number_of(row["scale_factor"])
    per_s = speeds.get(row["job_type"], {}).get(f"{width:g}" if width is not None else "")
    return None if steps is None or not per_s else steps / per_s


FORM = TraceForm(
    _read,
    f"a line of {len(COLUMNS)} cells parted by tabs, or one more",
    lambda path, head: float(head.count("\t") + 1 in (len(COLUMNS), len(COLUMNS) + 1)),
)
