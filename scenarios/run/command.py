"""Simulate a training run of many iterations on a moving network, with background jobs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agents.planners.names import PLANNER_NAMES
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.flags import to_dict
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from des.plan.plan_texts import PERFECT_DEVICES
from des.program.lowering import lower
from des.training.training_history import IterationRow, TrainingHistory
from des.training.training_run import run_training
from des.world.domain import layer_times_text
from scenarios.frame.outputs import OutputChoice, repetition_of, require_no_run, write_files
from scenarios.frame.report import Report
from scenarios.iteration.iteration_tables import plain_console
from scenarios.run.training_run_config import DECIDERS, PROG, Config
from scenarios.run.training_run_scenario import (
    TrainingRunScenario,
    load_training_run,
    read_plan,
)

with lazy_imports(__name__):
    from rich import progress as rich_progress

    from agents.replanning import link_sight, training_planner
    from des.views import plan_views
    from scenarios.run import spot_run, training_run_figure


OF_A_PLANNER = (
    *("horizon_epochs", "restart_s", "pays_bytes", "replan_threshold", "replan_every"),
    *("link_delay_s", "links_in_use", "link_noise", "link_belief"),
)
"""Flags that say nothing where the placement stays."""
OF_OTHER_JOBS = ("mean_duration_s", "gpu_fraction", "memory_fraction", "most_jobs")
"""Flags without effect where no background jobs arrive."""
OF_A_PROPOSAL = ("horizon_epochs", "schedule")
"""Flags for planners of one plan: rules and schedulers have a horizon and choose the schedule."""
OF_A_PLAN = (
    *("network", "model", "num_layers", "profile", "profile_gpu", "extrapolate", "placement"),
    *("parallelism", "replicas", "shares", "trainer", "planner", "schedule", "microbatches"),
    *("microbatch_size", "sequence_length", "precision", "corrections"),
)
"""Flags of what a complete plan says."""


def idle_fields(config: Config) -> tuple[str, ...]:
    """Names of the fields that the others make idle."""
    of_a_plan = () if config.plan is None else OF_A_PLAN
    of_a_planner: tuple[str, ...] = OF_A_PLANNER if config.planner is None else ()
    if config.planner in DECIDERS and config.planner not in PLANNER_NAMES:
        of_a_planner = OF_A_PROPOSAL
        if config.is_two_levels:
            of_a_planner = ("schedule",)
    return of_a_plan + of_a_planner + (OF_OTHER_JOBS if config.arrivals_per_s == 0 else ())


def check_given(config: Config, given: Collection[str]) -> None:
    """Check that no flag was given that has no effect.

    Raises
    ------
    UsageError
        If there is one.
    """
    for name in OF_A_PLAN if config.plan is not None else ():
        if name in given:
            raise UsageError(f"{PROG}: {name} must not be given with plan, which says it")
    for name in idle_fields(config):
        if name in given:
            needed = "arrivals_per_s above 0"
            if name in (*OF_A_PLANNER, *OF_A_PROPOSAL):
                needed = "a planner" if config.planner is None else "a planner of one plan"
            raise UsageError(
                f"{PROG}: {name} must be left out without {needed}, got {getattr(config, name)!r}"
            )


_EXAMPLES = f"""\
examples:
  python -m scenarios.training_run
      8 hours of Llama 2 70B on East, Central and West, whose links are redrawn every 20 minutes
  python -m scenarios.training_run --dynamics markov_fast --arrivals-per-s 0.001 --planner exact \\
      --model llama2_7b --num-layers 16
      links that get congested, background jobs, and a move if it pays within four epochs
  python -m scenarios.training_run --placement "East*28,Central*26,West*26" --epochs 6 --epoch-s 600
  python -m scenarios.training_run --network spot.yaml --planner sampled --epochs 72
      a day on sites that come and go, by the section availability of the file

Plans are completed to what the trainer runs on the GPUs there are, and --planner search_bound
searches such plans in every epoch, in microbatches of the first one's size unless --microbatch-size
says another; --plan FILE takes a complete plan of eastwest decide --json.
Under --trainer reference a placement with --parallelism stays as it is; under --trainer ideal each
domain counts as one perfect device.

files written to --out:
  iterations.csv, epochs.csv   time series of the training; all times in seconds
  loads.csv                    what other jobs take of each domain, from each time on
  report.html                  question and answer, the last plan, and the run over time
  training_run.png             iteration times, what other jobs take, and moves, as a figure; with
                               it map, gantt, links and memory of the last plan (--figures)
  result.json                  sums, and the flags that they came from
where sites come and go: sites.csv (which are up, what is held), rules.csv, report.html, sites.png
  and result.json

exit codes: 0 done; 2 a flag, a file or the plan is wrong, or the files cannot be written;
  {EXIT_CODES}
"""


@command_given(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config, given: frozenset[str]) -> None:
    """Run the command on its settings."""
    check_given(config, given)
    world = config.world(config.network) if config.plan is None else read_plan(config.plan).topology
    if world.availability is not None:
        idle = idle_fields(config)
        return spot_run.run_on_spot(config, given, world, world.availability, idle=idle)
    if config.partial:
        raise UsageError(f"{PROG}: partial must be left out of a world without availability")
    OutputChoice(figures=config.figures, parquet=config.parquet)  # refused before minutes of work
    require_no_run(config.out)
    scenario = load_training_run(config)
    SPEAKER.note(layers_note(scenario.workload))
    history = run(config, scenario)
    paths = write_files(config.out, training_run_files(config, scenario, history))
    perfect = {} if history.epochs[-1].plan.parallelism else {"devices": PERFECT_DEVICES}
    DOCUMENT.add(**training_run_summary(config, scenario, history), **perfect, files=paths)
    show_training_run(config, scenario, history, paths)


def run(config: Config, scenario: TrainingRunScenario) -> TrainingHistory:
    """Simulate what the flags describe.

    Raises
    ------
    ValueError
        If a plan does not fit into the memory.
    """
    with _progress(config.epochs * config.epoch_s) as bar:
        return run_training(
            scenario.topology,
            scenario.workload,
            scenario.planner,
            scenario.settings,
            scenario.corrections,
            watch=bar,
        )


@contextmanager
def _progress(horizon_s: float) -> Iterator[_Bar]:
    """A bar in a terminal, nothing elsewhere."""
    console = plain_console(sys.stderr)
    with rich_progress.Progress(
        rich_progress.BarColumn(),
        rich_progress.TaskProgressColumn(),
        rich_progress.TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        yield _Bar(progress, horizon_s)


class _Bar:
    """Progress: share of the run's time that has been simulated."""

    def __init__(self, progress: rich_progress.Progress, horizon_s: float) -> None:
        self._progress = progress
        self._task = progress.add_task("training run", total=horizon_s)

    def __call__(self, row: IterationRow) -> None:
        self._progress.update(self._task, completed=row.start_s + row.duration_s)


def training_run_summary(
    config: Config, scenario: TrainingRunScenario, history: TrainingHistory
) -> dict[str, object]:
    """Return the content of result.json."""
    left_out = {"out", "figures", "parquet", "partial", *idle_fields(config)}
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
        "layer_times": {one.name: one.layer_times for one in scenario.topology.domains},
        "link_bytes": math.fsum(row.num_bytes for row in history.iterations),
        "config": {name: to for name, to in to_dict(config).items() if name not in left_out},
    }


def training_run_files(
    config: Config, scenario: TrainingRunScenario, history: TrainingHistory
) -> dict[str, bytes]:
    """Make the content of all files; it depends on the flags alone, not on where it is written."""
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
    said = training_run_summary(config, scenario, history)
    text = json.dumps(said, indent=2, allow_nan=False) + "\n"
    frames = {series: history.to_frame(series) for series in ("iterations", "epochs", "loads")}
    views = plan_views.plan_views(
        scenario.topology,
        lower(
            scenario.topology,
            scenario.workload,
            history.epochs[-1].plan,
            scenario.corrections,
        ),
        scenario.corrections,
        title="The last plan, on links at base figures",
    )
    page = Report(
        title=_title(config),
        question=f"How long do {said['num_iterations']} iterations take, and what do moves cost?",
        answer=f"{history.total_s / 3600:.3g} h, {said['mean_iteration_s']:.4g} s an iteration; "
        f"{said['num_plan_changes']} changes of plan take {history.migration_s:.1f} s.",
        repeat=repetition_of(PROG, config),
        first=views.first,
        figures=(
            training_run_figure.training_run_figure(history, title="The run over time"),
            *views.more,
        ),
    )
    files = choice.row_files(frames) | {"result.json": text.encode()}
    return files | choice.report_files(page)


def show_training_run(
    config: Config, scenario: TrainingRunScenario, history: TrainingHistory, paths: Sequence[Path]
) -> None:
    """Print the sums and where the files are."""
    console = plain_console(sys.stdout)
    console.print(_title(config), style="bold", soft_wrap=True)
    said = training_run_summary(config, scenario, history)
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
    planner = scenario.planner
    if isinstance(planner, link_sight.SeenLinks):
        planner = planner.planner
    if isinstance(planner, training_planner.TwoLevels):
        SPEAKER.note(
            (
                f"two levels: the planner was asked {planner.num_asked} times; sites were re-bound "
                f"{planner.num_rebound} times, found within {1e3 * planner.longest_s:.0f} ms",
            )
        )
    console.print(f"layer times: {layer_times_text(scenario.topology.domains)}", soft_wrap=True)
    if not history.epochs[-1].plan.parallelism:
        console.print(PERFECT_DEVICES, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def _title(config: Config) -> str:
    if config.plan is not None:
        return f"the plan of {config.plan}"
    links = "links of the world" if config.dynamics is None else f"{config.dynamics} links"
    decided = "fixed placement" if config.planner is None else f"re-planned by {config.planner}"
    return f"{config.model} on {config.network}, {links}, {decided}"
