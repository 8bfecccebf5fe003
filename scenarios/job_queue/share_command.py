"""Compare job times by shares of links with the same jobs simulated message by message."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.lazy import lazy_imports
from des.figures.figure import Figure
from des.figures.marks import Points
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel
from scenarios.frame.outputs import OutputFlags, write_outputs
from scenarios.frame.run_folder import RunFolder

with lazy_imports(__name__):
    import pandas as pd

    from scenarios.frame import rows_report
    from scenarios.frame.report import Report
    from scenarios.job_queue import share_errors

PROG = "python -m scenarios.link_shares"
_SHARINGS = ("fair", "fifo")
_EPILOG = f"""\
examples:
  {PROG}
  {PROG} --mixes 20 --iterations 4 --sharing fifo --out runs/link_shares

files written to --out: config.json; jobs.csv (a row for each job: error of its time, and how many
times slower than alone it is; --parquet: also as Parquet); report.html and its picture

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the comparison."""

    mixes: int = option(100, "mixes of 2 to 4 jobs that share links")
    iterations: int = option(8, "iterations of the median job in the time of a mix")
    sharing: str = option("fair", "sharing of links in the true simulation: fair or fifo")
    seed: int = option(0, "first seed")
    out: Path | None = option(None, "new or empty folder for the files", default_text="none")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    if config.sharing not in _SHARINGS:
        raise UsageError(
            f"--sharing: must be one of {', '.join(_SHARINGS)}; got {config.sharing!r}"
        )

    choice = config.choice()
    settings = to_dict(config)
    with nullcontext() if config.out is None else RunFolder.created(config.out, settings) as folder:
        jobs, lines = _measure(config)
        if folder is not None:
            write_outputs(folder.path, choice, _report(config, jobs, lines), {"jobs": jobs})
    DOCUMENT.add(rows=jobs, lines=lines, out=config.out)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _measure(config: Config) -> tuple[pd.DataFrame, list[str]]:
    """Error and slowdown of each job, and a summary."""

    def tell(number: int) -> None:
        sys.stderr.write(f"\r{number} of {config.mixes} mixes")
        sys.stderr.flush()

    errors, slower = share_errors.share_errors(
        config.mixes, config.iterations, config.seed, config.sharing, tell
    )
    sys.stderr.write("\n")
    jobs = pd.DataFrame({"error": errors, "times_slower_than_alone": slower})
    off = jobs["error"].abs()
    return jobs, [
        f"{config.sharing}: {len(jobs)} jobs of {config.mixes} mixes, in the mean "
        f"{slower.mean() - 1.0:.1%} slower than alone",
        f"error of their times by shares: mean {off.mean():.2%}, 95th percentile "
        f"{off.quantile(0.95):.2%}, largest {off.max():.1%}, bias {errors.mean():+.2%}",
        f"if nothing were shared: mean {(1.0 - 1.0 / slower).mean():.2%}",
    ]


def share_errors_figure(jobs: pd.DataFrame, said: str) -> Figure:
    """Return the error of each job by shares over how much slower than alone it is."""
    points = Points(
        label="each job",
        x=tuple(jobs["times_slower_than_alone"]),
        y=tuple(100.0 * jobs["error"]),
        colour=BLUE,
    )
    axes = Axis(label="true time over that of the job alone"), Axis(label="error by shares [%]")
    return Figure(
        name="share_errors",
        title="Error of job times by shares of links",
        seen=f"Errors of {len(jobs)} jobs over how much their links slow them: {said}.",
        panels=(Panel(x=axes[0], y=axes[1], marks=(points,)),),
    )


def _report(config: Config, jobs: pd.DataFrame, lines: Sequence[str]) -> Report:
    described = jobs.describe().rename_axis("figure").reset_index()
    return rows_report.rows_report(
        config,
        PROG,
        title="Shares of links against simulated messages",
        question="How far off are the times of jobs that share links by shares?",
        answer=". ".join(lines) + ".",
        tables={"Jobs": described},
        figures=[share_errors_figure(jobs, lines[1])],
    )
