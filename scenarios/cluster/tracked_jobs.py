"""Times of the jobs of a real run, from submission to end: their mean and distribution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from des.base.atomic_write import write_together
from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    import numpy as np
    import pandas as pd

    from scenarios.cluster.messages import JobStatus
    from scenarios.frame import outputs
    from scenarios.job_queue import outputs as queue_outputs

_ENDED = ("done", "failed", "cancelled")
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True, kw_only=True)
class TrackFlags:
    """Flags of the jobs whose times are printed."""

    start_id_track: int | None = option(None, "first job whose time is printed (default: none)")
    stop_id_track: int | None = option(None, "last of these jobs")

    def tracked(self) -> tuple[int, int] | None:
        """First and last of the jobs.

        Raises
        ------
        UsageError
            If one of the flags is missing, or they are in the wrong order.
        """
        first, last = self.start_id_track, self.stop_id_track
        if first is None and last is None:
            return None
        if first is None or last is None or not 1 <= first <= last:
            raise UsageError(
                "--start-id-track and --stop-id-track must be two numbers of jobs, the first at "
                f"least 1 and at most the second, got {first} and {last}"
            )
        return first, last


def tracked_jobs(jobs: Iterable[JobStatus], tracked: tuple[int, int]) -> list[JobStatus]:
    """Jobs that have ended, of those from the first to the last."""
    return [each for each in jobs if tracked[0] <= each.job <= tracked[1] and each.state in _ENDED]


def is_complete(ended: Sequence[JobStatus], tracked: tuple[int, int]) -> bool:
    """Whether all of them have ended."""
    return len(ended) == tracked[1] - tracked[0] + 1


def times_text(ended: Sequence[JobStatus], tracked: tuple[int, int]) -> str:
    """Mean time from submission to end of the jobs that are done, and its distribution."""
    first, last = tracked
    times_s = [each.age_s for each in ended if each.state == "done"]
    others = f"{len(ended) - len(times_s)} failed or cancelled"
    head = f"jobs {first} to {last}: {len(times_s)} done, {others}"
    head += f", {last - first + 1 - len(ended)} not ended"
    if not times_s:
        return f"{head}\n"
    at_s = np.quantile(times_s, _LEVELS, method="inverted_cdf")
    shares = ", ".join(
        f"{level:.0%} {each:.2f} s" for level, each in zip(_LEVELS, at_s, strict=True)
    )
    return f"{head}; mean JCT {np.mean(times_s):.2f} s\nCDF of the JCT: {shares}\n"


def write_times(folder: Path, ended: Sequence[JobStatus], policy: str) -> None:
    """Write one row per job and the picture of the distribution.

    Raises
    ------
    UsageError
        If no job is done.
    """
    rows = [
        {"job": each.job, "name": each.name, "jct_s": each.age_s, "attained_s": each.attained_s}
        for each in ended
        if each.state == "done"
    ]
    if not rows:
        raise UsageError("no tracked job is done, so there is nothing to write")
    frame = pd.DataFrame(rows)
    choice = outputs.OutputChoice()
    figure = queue_outputs.cdf_figure(frame.assign(load=0.0, scheduler=policy))
    found = choice.row_files({"jct": frame}) | choice.figure_files([figure])
    folder.mkdir(parents=True, exist_ok=True)
    write_together({folder / name: content for name, content in found.items()})
