"""Simulate a training run of many iterations on a moving network, beside jobs of others."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from agents.planners import PLANNERS
from calibration.corrections_file import read_corrections
from des import (
    ALIASES,
    ARCHITECTURES,
    DEFAULT_SCHEDULE,
    NO_CORRECTIONS,
    SCHEDULES,
    Corrections,
    Placement,
    Plan,
    Topology,
    Workload,
    build_workload,
    read_topology,
)
from des.background import BackgroundLoad
from des.dynamics import DYNAMICS
from des.migration import RESTART_S
from des.training_history import IterationRow, TrainingHistory
from des.training_run import run_training
from des.training_settings import Planner, TrainingRun
from scenarios.command import UsageError, exit_code_of
from scenarios.config import option, parse, to_dict
from scenarios.iteration_tables import plain_console
from scenarios.plots import png_bytes
from scenarios.replanning import Replanning
from scenarios.simulate import write_files
from scenarios.training_run_figure import training_run_figure

PROG = "python -m scenarios.training_run"
_EXAMPLES = """\
examples:
  python -m scenarios.training_run
      8 hours of Llama 2 70B on East, Central and West, whose links are drawn anew every 20 minutes
  python -m scenarios.training_run --dynamics markov_fast --arrivals-per-s 0.001 --planner exact \\
      --model llama2_7b --num-layers 16
      links that get congested, jobs of others, and a move wherever it pays within four epochs
  python -m scenarios.training_run --placement "East*28,Central*26,West*26" --epochs 6 --epoch-s 600

files written to --out:
  iterations.csv, epochs.csv   time series of the training; all times in seconds
  loads.csv                    what other jobs take of each domain, from each time on
  training_run.png             all of them as a figure
  result.json                  sums, and the flags that they came from

exit codes: 0 done; 2 a flag, a file or the plan is wrong, or the files cannot be written
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is simulated; the fields are the flags."""

    network: str = option("east_central_west", "topology file, or a shipped world", is_file=True)
    dynamics: str | None = option(
        None, f"how links move: one of {', '.join(DYNAMICS)}; none: as the world says"
    )
    model: str = option("llama2_70b", f"one of {', '.join([*ARCHITECTURES, *ALIASES])}")
    num_layers: int | None = option(None, "divide the model into that many equal layers")
    placement: str | None = option(
        None,
        "domain, by number or name, times layers, such as 0*28,1*26,2*26; "
        "none: even parts over all domains in order",
    )
    planner: str | None = option(
        None, f"asked every epoch, one of {', '.join(PLANNERS)}; none: the placement stays"
    )
    horizon_epochs: float = option(4.0, "epochs within which a move has to pay for itself")
    schedule: str = option(DEFAULT_SCHEDULE, f"one of {', '.join(SCHEDULES)}")
    microbatches: int = option(32, "microbatches of an iteration")
    microbatch_size: int = option(1, "sequences of a microbatch")
    sequence_length: int = option(4096, "tokens of a sequence")
    corrections: Path | None = option(
        None, "factors found by calibration, a JSON file", is_file=True
    )
    epochs: int = option(24, "epochs of the run")
    epoch_s: float = option(1200.0, "seconds of an epoch")
    seed: int = option(0, "seed of the links and the jobs")
    arrivals_per_s: float = option(0.0, "jobs of others that come to each domain; 0: none come")
    mean_duration_s: float = option(1800.0, "mean time for which one of them runs")
    gpu_fraction: float = option(0.125, "share of a domain's GPUs that it takes")
    memory_fraction: float = option(0.05, "share of a domain's memory that it takes")
    most_jobs: int = option(4, "of them that may run in a domain at a time; the others wait")
    restart_s: float = option(RESTART_S, "seconds that any change of plan takes")
    pays_bytes: bool = option(True, "whether a change of plan has to move the model state")
    out: Path = option(Path("runs/training_run"), "folder for the files")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    history = run(config)
    paths = write_files(config.out, output_files(config, history))
    show(config, history, paths)


def run(config: Config) -> TrainingHistory:
    """Simulate what the flags describe.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong, or a plan does not fit into the memory.
    """
    topology = read_topology(config.network)
    if config.dynamics is not None:
        if config.dynamics not in DYNAMICS:
            allowed = ", ".join(DYNAMICS)
            raise UsageError(f"{PROG}: dynamics must be one of {allowed}; got {config.dynamics!r}")
        topology = replace(topology, dynamics=DYNAMICS[config.dynamics])
    workload = build_workload(
        config.model,
        num_layers=config.num_layers,
        num_microbatches=config.microbatches,
        microbatch_size=config.microbatch_size,
        sequence_length=config.sequence_length,
    )
    path = config.corrections
    corrections = NO_CORRECTIONS if path is None else read_corrections(path)
    settings = TrainingRun(
        num_epochs=config.epochs,
        epoch_s=config.epoch_s,
        seed=config.seed,
        background=(background_load(config),) * topology.num_domains,
        restart_s=config.restart_s,
        pays_bytes=config.pays_bytes,
    )
    planner: Plan | Planner
    if config.planner is None:
        planner = _fixed_plan(config, topology, workload)
    else:
        planner = _replanner(config, workload, settings, corrections)
    with _progress(config.epochs * config.epoch_s) as bar:
        return run_training(topology, workload, planner, settings, corrections, watch=bar)


def background_load(config: Config) -> BackgroundLoad | None:
    """Jobs of others in each domain; None where none come."""
    if config.arrivals_per_s == 0:
        return None
    return BackgroundLoad(
        arrivals_per_s=config.arrivals_per_s,
        mean_duration_s=config.mean_duration_s,
        gpu_fraction=config.gpu_fraction,
        memory_fraction=config.memory_fraction,
        most_jobs=config.most_jobs,
    )


def _fixed_plan(config: Config, topology: Topology, workload: Workload) -> Plan:
    if config.placement is None:
        placement = Placement.even(topology.num_domains, workload.num_layers)
    else:
        placement = Placement.parse(config.placement, list(topology.index_of))
    return Plan(placement=placement, schedule=config.schedule)


def _replanner(
    config: Config, workload: Workload, settings: TrainingRun, corrections: Corrections
) -> Planner:
    if config.placement is not None:
        raise UsageError(f"{PROG}: placement must be left out where planner is given")
    if config.planner not in PLANNERS:
        allowed = ", ".join(PLANNERS)
        raise UsageError(f"{PROG}: planner must be one of {allowed}; got {config.planner!r}")
    replanning = Replanning(
        planner=PLANNERS[config.planner],
        workload=workload,
        schedule=config.schedule,
        run=settings,
        horizon_epochs=config.horizon_epochs,
        corrections=corrections,
    )
    return replanning.decide(np.random.default_rng(config.seed))


@contextmanager
def _progress(horizon_s: float) -> Iterator["_Bar"]:
    """A bar in a terminal, nothing elsewhere."""
    console = plain_console(sys.stderr)
    with Progress(
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        yield _Bar(progress, horizon_s)


class _Bar:
    """How much of the time of the run has been simulated."""

    def __init__(self, progress: Progress, horizon_s: float) -> None:
        self._progress = progress
        self._task = progress.add_task("training run", total=horizon_s)

    def __call__(self, row: IterationRow) -> None:
        self._progress.update(self._task, completed=row.start_s + row.duration_s)


def summary(config: Config, history: TrainingHistory) -> dict[str, object]:
    """Return the content of result.json."""
    changes = [row for row in history.epochs if row.migration_s > 0]
    return {
        "num_iterations": len(history.iterations),
        "total_s": history.total_s,
        "training_s": history.training_s,
        "migration_s": history.migration_s,
        "idle_s": history.idle_s,
        "mean_iteration_s": history.training_s / len(history.iterations),
        "num_plan_changes": len(changes),
        "moved_bytes": history.moved_bytes,
        "link_bytes": math.fsum(row.num_bytes for row in history.iterations),
        "config": {name: value for name, value in to_dict(config).items() if name != "out"},
    }


def output_files(config: Config, history: TrainingHistory) -> dict[str, bytes]:
    """Make the content of all files; it depends on the flags alone, not on where it is written."""
    figure = training_run_figure(history, title=_title(config))
    files = {
        f"{series}.csv": history.to_frame(series).to_csv(index=False, lineterminator="\n").encode()
        for series in ("iterations", "epochs", "loads")
    }
    said = json.dumps(summary(config, history), indent=2, allow_nan=False) + "\n"
    return files | {"training_run.png": png_bytes(figure), "result.json": said.encode()}


def show(config: Config, history: TrainingHistory, paths: Sequence[Path]) -> None:
    """Print the sums and where the files are."""
    console = plain_console(sys.stdout)
    console.print(_title(config), style="bold", soft_wrap=True)
    said = summary(config, history)
    console.print(
        f"{said['num_iterations']} iterations of {said['mean_iteration_s']:.3f} s on average "
        f"in {history.total_s:.1f} s",
        soft_wrap=True,
    )
    console.print(
        f"{said['num_plan_changes']} changes of plan: {history.moved_bytes / 1e9:.1f} GB moved, "
        f"{history.migration_s:.1f} s; {history.idle_s:.1f} s idle",
        soft_wrap=True,
    )
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def _title(config: Config) -> str:
    links = "links of the world" if config.dynamics is None else f"{config.dynamics} links"
    decided = "fixed placement" if config.planner is None else f"re-planned by {config.planner}"
    return f"{config.model} on {config.network}, {links}, {decided}"


if __name__ == "__main__":
    raise SystemExit(main())
