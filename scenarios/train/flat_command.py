"""Learn to place a model's layers on domains joined by moving links; compare with planners."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from calibration import ReferenceRunError
from des import check_job_fits, read_topology
from des.base.command import EXIT_CODES, UsageError
from des.base.flags import parse_given, with_quick_sizes
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from scenarios.frame.outputs import OutputChoice
from scenarios.frame.report import Repetition
from scenarios.frame.run_folder import RunFolder
from scenarios.train.training_config import (
    MEASURED_STEPS,
    PROG,
    QUICK_STEPS,
    Config,
    ppo_config,
    recorded,
    replacement_of,
)
from scenarios.train.world_runs import run_in_folder

with lazy_imports(__name__):
    from rich.console import Console

    from agents.flat import batched_env, env
    from agents.flat.task import PlacementTask
    from agents.ppo import devices
    from agents.ppo import trainer as ppo_trainer
    from agents.ppo.rollout import RolloutSource
    from calibration.loop import LoggedSubject, Subject
    from des.base import console as base_console
    from scenarios.frame import metrics_log
    from scenarios.study.targets import after_training
    from scenarios.train import calibration_subject, outcome, training_calibration, training_loop
    from scenarios.train import rollouts as train_rollouts

_EPILOG = f"""\
examples:
  {PROG} flat --quick --out runs/try
  {PROG} flat --actions per_layer --replacement full
  {PROG} --backend astra-aware
  {PROG} --resume

exit codes: 0 done; 2 a flag or a file is wrong, or the folder is in use; {EXIT_CODES}
"""


def resolve(arguments: Sequence[str], prog: str = PROG) -> tuple[Config, frozenset[str]]:
    """Read the command line, ``--quick`` worked in; also return the names of the given fields."""
    config, given = parse_given(
        Config, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG
    )
    if config.quick:
        return with_quick_sizes(config, given, QUICK_STEPS), given
    return (
        config if config.backend == "des" else with_quick_sizes(config, given, MEASURED_STEPS)
    ), given


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code; bad input is a ``ValueError``.

    Raises
    ------
    UsageError
        Also if a backend other than ``des`` is not installed, or gives no result.
    """
    config, given = resolve(arguments, prog)
    try:
        return run_in_folder(config, given, recorded, _prepare)
    except ReferenceRunError as error:
        raise UsageError(f"{prog}: --backend {config.backend}: {error}") from error


def _prepare(config: Config) -> Callable[[RunFolder], bool]:
    """Read and check all that the flags name, before anything is written."""
    task = make_scenario_task(config)
    return partial(_is_complete, config, task, training_loop.flat_subject(config, task))


def _is_complete(
    config: Config,
    task: PlacementTask,
    subject: Subject | LoggedSubject | str,
    folder: RunFolder,
) -> bool:
    """Train, evaluate, report; ``subject`` is calibrated."""
    console = base_console.FittedConsole()
    devices.keep_freed_memory()
    devices.use_torch_threads(config.torch_threads)
    with (
        training_calibration.training_calibration(
            subject,
            folder,
            console,
            timetable=training_loop.flat_timetable(config),
            initial=task.corrections,
            bound=config.calibration_bound,
            is_begun=folder.checkpoint_pt.exists(),
        ) as calibration,
        _rollouts(config, task, console) as rollouts,
    ):
        trainer = ppo_trainer.PPOTrainer(rollouts, ppo_config(config), config.seed, config.steps)
        training_loop.restore(trainer, calibration, folder, task.fingerprint())
        calibration.begin(training_loop.FlatTraining(task=task, trainer=trainer))
        complete = training_loop.train(task, trainer, calibration, folder, console)
    calibration.print_summary()
    SPEAKER.note(layers_note(task.workload))
    cost = _cost_of_steps(config, folder)
    for line in cost:
        console.print(line, soft_wrap=True, markup=False)
    if not complete:
        return False
    sizes = None
    if config.kpi:
        sizes = after_training.QUICK_SIZES if config.quick else after_training.SIZES
    evaluation = outcome.Evaluation(
        task=replace(task, corrections=calibration.in_force),
        num_draws=config.evaluation_draws,
        seed=config.evaluation_seed,
        fidelity=(*calibration.lines(), *cost),
        choice=OutputChoice(figures=config.figures, parquet=config.parquet),
        target_sizes=sizes,
    )
    repeat = Repetition(
        command=f"{PROG} --config {shlex.quote(str(folder.config_json))}",
        configuration=folder.read_config(),
    )
    outcome.evaluate_and_report(evaluation, folder, repeat, console)
    return True


def _cost_of_steps(config: Config, folder: RunFolder) -> tuple[str, ...]:
    """Say what a step of an environment cost that a reference simulator judges."""
    if config.backend == "des" or not folder.metrics_csv.exists():
        return ()
    log = metrics_log.read_metrics(folder.metrics_csv)
    num_steps, wall_s = int(log["step"].max()), float(log["wall_s"].sum())
    return (
        f"Backend {config.backend}: {num_steps:,} placements judged, "
        f"{1e3 * wall_s / num_steps:.1f} ms of wall time a step, learning included",
    )


@contextmanager
def _rollouts(config: Config, task: PlacementTask, console: Console) -> Iterator[RolloutSource]:
    """Give the rollouts of the training.

    Code that is not compiled yet is compiled here, while the calibration before training begins in
    its own process and compiles what it alone needs.
    """
    with ExitStack() as stack:
        with console.status("preparing; after a change of the sources this compiles the simulator"):
            if config.ray is None:
                batched_env.compile_steps(task)
            rollouts = stack.enter_context(
                train_rollouts.make_rollouts(
                    task,
                    num_envs=config.num_envs,
                    num_workers=config.rollout_workers,
                    seed=config.seed,
                    num_processes=config.workers,
                    device=ppo_config(config).device,
                    ray=config.ray,
                    preempt_share=config.preempt_share,
                )
            )
        yield rollouts


def make_scenario_task(config: Config) -> PlacementTask:
    """Read the files that the configuration names and put the task together.

    Raises
    ------
    ValueError
        If a file or name is wrong, or the job is larger than all domains together.
    """
    topology = read_topology(config.network)
    if config.endpoints is not None:
        transport = replace(topology.transport, endpoints=config.endpoints)
        topology = replace(topology, transport=transport)
    workload = config.workload(config.microbatches)
    check_job_fits(topology, workload)
    return env.make_task(
        topology=topology,
        workload=workload,
        backend=config.backend,
        schedule=config.schedule,
        actions=config.actions,
        epochs_per_episode=config.epochs_per_episode,
        iterations_per_epoch=config.iterations_per_epoch,
        replacement=replacement_of(config),
        corrections=calibration_subject.first_factors(config, topology, workload),
    )
