"""Show the nodes and jobs of a cluster."""

import sys
from dataclasses import dataclass
from pathlib import Path

from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.base.names import one_line, printable
from scenarios.cluster import tracked_jobs
from scenarios.cluster.access import AccessFlags
from scenarios.cluster.tracked_jobs import TrackFlags

with lazy_imports(__name__):
    from scenarios.cluster import messages, rpc

EXAMPLES = """\
examples:
  python -m scenarios.cluster status
  python -m scenarios.cluster status --json
  python -m scenarios.cluster status --start-id-track 10 --stop-id-track 40 --out runs/jct
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(AccessFlags, TrackFlags):
    """Flags of the command."""

    out: Path | None = option(
        None, "folder for jct.csv and jct_cdf.png of the tracked jobs", default_text="none"
    )

    def __post_init__(self) -> None:
        if self.tracked() is None and self.out is not None:
            raise UsageError("--out must be with --start-id-track and --stop-id-track")


def run(config: Config) -> None:
    """Print the status."""
    found = rpc.call_once(config, "Status", messages.StatusRequest(), messages.Status)
    DOCUMENT.add(**found.model_dump(mode="json"))  # with the metrics that jobs have pushed
    sys.stdout.write(status_text(found))
    tracked = config.tracked()
    if tracked is not None:
        ended = tracked_jobs.tracked_jobs(found.jobs, tracked)
        sys.stdout.write(f"\n{tracked_jobs.times_text(ended, tracked)}")
        if config.out is not None:
            tracked_jobs.write_times(config.out, ended, found.policy)
            sys.stdout.write(f"written: {config.out}\n")


def status_text(status: "messages.Status") -> str:
    """Status as two tables."""
    nodes: list[tuple[str, ...]] = [("node", "state", "address", "GPUs", "free")]
    nodes += [
        (each.node, each.state, each.address, str(each.num_gpus), str(each.num_free))
        for each in status.nodes
    ]
    head = ("job", "name", "state", "GPUs", "on", "iteration", "held s", "age s", "reason")
    jobs: list[tuple[str, ...]] = [head]
    jobs += [_row(each) for each in status.jobs]
    return f"policy {status.policy}, {status.now_s:.0f} s\n\n{_table(nodes)}\n{_table(jobs)}"


def _row(job: "messages.JobStatus") -> tuple[str, ...]:
    places = " ".join(f"{node}:{','.join(map(str, gpus))}" for node, gpus in job.gpus.items())
    figures = (str(job.iteration), f"{job.attained_s:.1f}", f"{job.age_s:.1f}")
    reason = one_line(job.reason, 200)
    return (str(job.job), job.name, job.state, str(job.num_gpus), places, *figures, reason)


def _table(rows: list[tuple[str, ...]]) -> str:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
