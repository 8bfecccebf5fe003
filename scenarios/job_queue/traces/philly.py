"""Traces of Philly (Microsoft, ATC'19): ``cluster_job_log``, a JSON list of jobs with attempts."""

from collections.abc import Iterator
from pathlib import Path

from des.base.text_files import read_json
from scenarios.job_queue.traces.calendar import seconds_of
from scenarios.job_queue.traces.trace_jobs import JobRow, ReadRows, TraceForm, difference

FIELDS = ("status", "vc", "jobid", "user", "submitted_time", "attempts")
_NOTES = (
    "times have no zone and are taken as they are; a duration is the sum of all attempts, whose "
    "GPUs are those of the first one",
)


def _read(path: Path) -> ReadRows:
    """Read a job log.

    Raises
    ------
    ValueError
        If it is no JSON list of jobs, or holds no job.
    """
    log = read_json(path)
    if not isinstance(log, list) or not all(isinstance(job, dict) for job in log):
        raise ValueError(f"{path}: must be a JSON list of jobs, as cluster_job_log of Philly is")
    return _rows(log), _NOTES


def _rows(log: list[dict[str, object]]) -> Iterator[JobRow]:
    for job in log:
        attempts = job.get("attempts") or []
        assert isinstance(attempts, list)
        spans_s = [_span_s(attempt) for attempt in attempts]
        known_s = [span_s for span_s in spans_s if span_s is not None]
        yield JobRow(
            name=str(job.get("jobid", "")),
            submit_s=seconds_of(str(job.get("submitted_time"))),
            num_gpus=_num_gpus(attempts[0]) if attempts else None,
            duration_s=sum(known_s) if known_s else None,
            is_done=job.get("status") == "Pass",
            tenant=str(job.get("vc", "")),
            user=str(job.get("user", "")),
        )


def _span_s(attempt: dict[str, object]) -> float | None:
    ends = (seconds_of(str(attempt.get(key))) for key in ("end_time", "start_time"))
    return difference(*ends)


def _num_gpus(attempt: dict[str, object]) -> float:
    detail = attempt.get("detail") or []
    assert isinstance(detail, list)
    return float(sum(len(server.get("gpus") or ()) for server in detail))


def _likeness(path: Path, head: str) -> float:
    """Share of the fields that the first job of a list has."""
    log = read_json(path) if head[:1] == "[" else None
    first = log[0] if isinstance(log, list) and log else {}
    return sum(field in first for field in FIELDS) / len(FIELDS)


FORM = TraceForm(_read, f"a list of JSON objects with {', '.join(FIELDS)}", _likeness)
