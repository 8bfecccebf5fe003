"""Rehearse a launch on one machine: its runtime, over emulated links, against the prediction."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from des.base.atomic_write import write_together
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports
from des.base.text_files import read_text
from scenarios.frame.outputs import repeated_settings, repetition_of
from scenarios.iteration.runtime_job import RUNTIME, read_runtime_job
from scenarios.rehearse.emulated_links import require_emulation
from scenarios.rehearse.rehearsal import RehearsalFlags, ended_s

with lazy_imports(__name__):
    from des.figures import paper
    from scenarios.rehearse import planner_runs, planner_table, time_differences
    from scenarios.reproduce import report

if TYPE_CHECKING:
    from scenarios.rehearse.rehearsed_world import RehearsedWorld

PROG = "python -m scenarios.rehearse"

_PARTS = 4
"""Parts of the difference that are shown."""
_OF_PLANNERS = ("worlds", "seed", "seconds")
"""Flags that need ``--planners``."""
_EXAMPLES = f"""\
examples:
  python -m scenarios.rehearse launch
      a launch of the reference runtime, ten times as fast, all receives first
  python -m scenarios.rehearse launch --receives stock --out rehearsal
      receives where torch posts them; writes rehearsal/rehearsal.png
  python -m scenarios.rehearse launch --scale 1 --iterations 10 --hosts linux_default
      at full length, on hosts as Linux comes
  python -m scenarios.rehearse --planners megatron_even,dtfm,decide --worlds 3 --out planners
      plans of planners for drawn worlds, all predicted before the first one runs; the same command
      resumes an earlier run; with fewer worlds it takes the first ones alone

A process for each stage trains a small Llama, with messages of the plan's size over links of its
rates and latencies, all scaled. Needs root, /dev/net/tun, a C compiler and util-linux.

files written to --out with --planners:
  predictions.json     settings, and the predicted time of every plan; its hash is printed first
  launches/            the launch of each plan
  runs/                measured times of each plan
  table.csv, table.md, report.html, picture.png

exit codes: 0 done; 1 a target of --planners is missed; 2 a flag or a file is wrong, links cannot be
  emulated, or a process died; {EXIT_CODES}
"""


@dataclass(frozen=True, kw_only=True)
class Config(RehearsalFlags, JsonFlag):
    """Settings of a rehearsal, or of those of planners."""

    folder: Path | None = option(
        None, "folder of launch files of the reference runtime", is_positional=True
    )
    planners: tuple[str, ...] = option((), "planners to rehearse, in place of a launch")
    worlds: int = option(12, "with --planners: worlds of four sites, the first ones of a suite")
    seed: int = option(0, "with --planners: seed of the worlds")
    seconds: float = option(3.0, "with --planners: length of each world's quickest step [s]")
    out: Path | None = option(None, "folder for the picture", default_text="none is drawn")
    scale: float = option(0.1, "factor on all times of the plan")


@command_given(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config, given: frozenset[str]) -> int:
    """Run the command on its settings."""
    if config.planners:
        return _rehearse_planners(config, given)
    if config.folder is None:
        raise UsageError(f"{PROG}: FOLDER or planners must be given, got neither")
    for name in sorted(given & set(_OF_PLANNERS)):
        raise UsageError(f"{PROG}: {name} must be left out without planners, got it")
    require_emulation()
    world = config.world(config.folder, config.scale)
    job = read_runtime_job(read_text(config.folder / RUNTIME, "launch "))
    steps = config.measured(config.folder, world)
    predicted = world.predicted()
    times_s = [ended_s(step) for step in steps]
    middle = times_s.index(statistics.median_low(times_s))
    found = time_differences.Comparison.of_records(predicted, steps[middle], job.stages_of_rank)
    sys.stdout.write("\n".join(_lines(config, world, found, times_s)) + "\n")
    DOCUMENT.add(
        predicted_s=predicted.makespan_s,
        measured_s=times_s,
        median_s=found.measured.makespan_s,
        parts={part.name: part.difference_s for part in found.parts()},
    )
    if config.out is not None:
        config.out.mkdir(parents=True, exist_ok=True)
        write_together({config.out / "rehearsal.png": paper.image_bytes(found.figure(), "png")})
    return 0


def _rehearse_planners(config: Config, given: Set[str]) -> int:
    """Rehearse the plans of planners, with a verdict on each target."""
    for name in sorted(given & {"folder", "scale", "compute"}):
        raise UsageError(f"{PROG}: {name} must be left out with planners, got it")
    if config.out is None:
        raise UsageError(f"{PROG}: out must be given with planners, got none")
    settings = repeated_settings(config)
    require_emulation()
    study = planner_runs.PlannerStudy(
        planners=config.planners,
        num_worlds=config.worlds,
        seed=config.seed,
        seconds=config.seconds,
        flags=config,
    )
    frame = planner_runs.measure_frame(study, config.out, settings)
    return report.publish(
        planner_table.planner_table(frame),
        config.out,
        repetition_of(PROG, config),
    )


def _lines(
    config: Config,
    world: RehearsedWorld,
    found: time_differences.Comparison,
    times_s: Sequence[float],
) -> list[str]:
    predicted_s, measured_s = found.predicted.makespan_s, found.measured.makespan_s
    rank, wait = found.last_rank, found.largest_wait()
    site = found.predicted.stages[
        next(stage for stage, one in found.rank_of_stage.items() if one == rank)
    ].domain
    return [
        f"rehearsed: {config.folder}, times x {config.scale:g}, links x {world.link_factor:.3g}, "
        f"receives {config.receives}, {world.num_connections} connections a pair, {config.hosts}",
        f"predicted {predicted_s:.4f} s, measured {measured_s:.4f} s (median of {len(times_s)}, "
        f"{min(times_s):.4f} to {max(times_s):.4f}), {measured_s / predicted_s - 1.0:+.1%}",
        f"difference at rank {rank} in {site}, whose passes end last [s]:",
        *(
            f"  {part.difference_s:+.4f}  {part.name} ({part.predicted_s:.4f} predicted)"
            for part in found.parts()[:_PARTS]
        ),
        f"largest wait: {wait.difference_s:+.4f} s for {wait.name}",
    ]
