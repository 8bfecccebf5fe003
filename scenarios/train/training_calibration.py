"""Calibration of the simulator while a policy is trained on it: from its flags to its effect."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from agents.flat.policy_plans import placements_of
from agents.flat.recalibration import recalibrate
from agents.flat.task import PlacementTask
from agents.ppo.checkpoint import CheckpointError
from agents.ppo.trainer import Trainer
from calibration import ReferenceRunError, WorkloadFamily
from calibration.fit.fit import require_enough
from calibration.loop import (
    BackgroundCalibrator,
    CalibrationLoop,
    Choices,
    Entry,
    Subject,
    Timetable,
    default_interval_steps,
    factors_text,
    percent_text,
)
from calibration.reference.astra_config import Backend
from calibration.reference.environment import BINARIES_VARIABLE
from des import Corrections
from scenarios.frame.run_folder import RunFolder
from scenarios.train.calibration_log import CalibrationLog
from scenarios.train.training_config import Config

MOST_CHOICES = 256
"""Last decisions that represent the policy to a calibration."""

MICROBATCH_SIZES, SEQUENCE_LENGTH = (1, 2, 4), 4096
"""The first size is trained on; by the others bandwidths and latencies can be told apart."""


class TrainingCalibration:
    """A `CalibrationLoop` next to a trainer, or the reason why there is none.

    Parameters
    ----------
    task
        Task of the training.
    loop
        The calibrating loop, or the reason why there is none.
    reference
        By what it is calibrated, `calibration.loop.Subject.reference`.
    folder
        Log of the calibrations.
    console
        Console for progress.
    """

    def __init__(
        self,
        task: PlacementTask,
        loop: CalibrationLoop | str,
        folder: RunFolder,
        console: Console,
        *,
        reference: str = "",
    ) -> None:
        self._task, self._folder, self._console = task, folder, console
        self._reference = reference
        self._loop = None if isinstance(loop, str) else loop
        self._why_not = loop if isinstance(loop, str) else ""
        self._log: CalibrationLog | None = None  # of a loop, from `begin` or `load_state` on

    @property
    def in_force(self) -> Corrections:
        """Factors to simulate with."""
        return self._task.corrections if self._loop is None else self._loop.in_force

    def begin(self, trainer: Trainer) -> None:
        """Wait for the calibration before training, and put what it found in force."""
        if self._loop is None:
            self._print(f"Calibration: none, {self._why_not}")
            return
        unused = self._reference.startswith("pairwise") and os.environ.get(BINARIES_VARIABLE)
        hint = f"; {BINARIES_VARIABLE} has no program for it" if unused else ""
        self._print(f"Calibration: {self._reference}{hint}")
        if self._log is None:
            self._open_log(())
        if trainer.step_count == 0:
            with self._console.status("calibrating: measuring placements by the reference"):
                self.advance(trainer)

    def advance(self, trainer: Trainer) -> None:
        """Do what is due after an update.

        Raises
        ------
        ValueError
            If a calibration failed.
        """
        if self._loop is None:
            return
        before = self._loop.in_force

        def choose() -> Choices:
            return placements_of(self._task, trainer.recent_actions(MOST_CHOICES))

        try:
            entries = self._loop.advance(trainer.step_count, choose)
        except ReferenceRunError as error:
            raise ValueError(
                "calibration failed; once the reason is mended, --resume continues from the last "
                f"checkpoint: {error}"
            ) from error
        for entry in entries:
            assert self._log is not None
            self._log.append(entry)
            self._print(entry.line())
        if self._loop.in_force != before:
            recalibrate(trainer.rollouts, self._loop.in_force)

    def state(self) -> dict[str, object] | None:
        """Everything that `load_state` needs, as plain content; None without calibration."""
        if self._loop is None:
            return None
        return {"reference": self._reference, **self._loop.state()}

    def load_state(self, state: Mapping[str, Any] | None, *, source: Path) -> None:
        """Continue from what `state` returned.

        Raises
        ------
        CheckpointError
            If only one of the two was with calibration, or the content is not that of a loop;
            ``source`` is the file that is named.
        """
        if (state is None) != (self._loop is None):
            here, there = ("with", "without") if state is None else ("without", "with")
            raise CheckpointError(
                f"checkpoint {source}: calibration must be as in this run, which is {here} "
                f"({self._why_not or 'by its flags'}), got one {there}"
            )
        if self._loop is not None and state is not None:
            if state.get("reference") != self._reference:
                raise CheckpointError(
                    f"checkpoint {source}: calibration must be {self._reference}, as in this run, "
                    f"got {state.get('reference')} (see {BINARIES_VARIABLE})"
                )
            try:
                self._loop.load_state(state)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise CheckpointError(
                    f"checkpoint {source}: calibration must be what a calibration has left, "
                    f"got {type(error).__name__}: {error}"
                ) from error
            self._open_log(self._loop.entries)

    def print_summary(self) -> None:
        """Summary of the calibration and its cost."""
        if self._loop is None:
            return
        self._print(fidelity_line(self._loop.entries, self._reference))
        cpu_s, rest_s = self._loop.cpu_s, time.process_time()
        self._print(
            f"Since this start, calibrating took {cpu_s:.1f} s of CPU time in a process of its "
            f"own, {cpu_s / (cpu_s + rest_s):.1%} of it and this one together; training waited "
            f"{self._loop.waited_s:.1f} s for it."
        )

    def lines(self) -> tuple[str, ...]:
        """Tell all that repeats when the run is repeated, a line each."""
        if self._loop is None:
            return (f"Calibration: none, {self._why_not}",)
        entries = self._loop.entries
        return fidelity_line(entries, self._reference), *(entry.line() for entry in entries)

    def _open_log(self, earlier: Sequence[Entry]) -> None:
        """Bring the log in line with the checkpoint, and say so where it was not."""
        self._log = CalibrationLog(self._folder.calibrations_csv, earlier)
        if self._log.note:
            self._print(self._log.note)

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False)


def fidelity_line(entries: list[Entry], reference: str) -> str:
    """Sum up the calibrations of a training by a reference."""
    fits = [entry for entry in entries if entry.kind == "fit"]
    changes = sum(entry.is_changed for entry in entries)
    worst = max(entries, key=lambda entry: entry.error_after)
    first, last = fits[0], fits[-1]
    return (
        f"Fidelity to {reference}: mean error of iteration times "
        f"{percent_text(first.error_before)} before the first calibration, "
        f"{percent_text(last.error_after)} after the last, at most "
        f"{percent_text(worst.error_after)} after any of {_counted(len(fits), 'calibration')} and "
        f"{_counted(len(entries) - len(fits), 'probe')}; {_counted(changes, 'change')} of factors, "
        f"{factors_text(last.corrections)}."
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


@contextmanager
def training_calibration(
    config: Config,
    task: PlacementTask,
    subject: Subject | str,
    folder: RunFolder,
    console: Console,
) -> Iterator[TrainingCalibration]:
    """Give the calibration of a training; the one before training begins at once.

    ``subject`` is what `subject_of` returned.
    """
    if isinstance(subject, str):
        yield TrainingCalibration(task, subject, folder, console)
        return
    interval_steps = config.calibration_interval_steps or default_interval_steps(config.steps)
    with CalibrationLoop(
        BackgroundCalibrator(replace(subject, store=folder.calibration_store)),
        Timetable(
            total_steps=config.steps,
            interval_steps=interval_steps,
            steps_per_update=config.num_envs * config.steps_per_rollout,
        ),
        initial=task.corrections,
        bound=config.calibration_bound,
    ) as loop:
        if not folder.checkpoint_pt.exists():
            loop.start()
        yield TrainingCalibration(task, loop, folder, console, reference=subject.reference)


def subject_of(config: Config, task: PlacementTask) -> Subject | str:
    """Say what is calibrated and how, or why nothing is.

    Raises
    ------
    ValueError
        If the requested reference cannot run what is trained or is not there, or there are
        fewer placements than a fit needs.
    """
    wanted = config.calibration
    if wanted == "none":
        return "as requested"
    if wanted == "auto" and config.corrections is not None:
        return "as factors were given with --corrections"
    require_enough(config.calibration_placements)
    try:
        return _subject(config, task, "pairwise" if wanted == "auto" else wanted)
    except ReferenceRunError as error:
        raise ValueError(f"{BINARIES_VARIABLE}: {error}") from error
    except ValueError as error:
        if wanted != "auto":
            raise
        return f"as what is trained cannot be calibrated: {error}"


def _subject(config: Config, task: PlacementTask, backend: str) -> Subject:
    """Describe the calibration by a reference, on the workload of the task and others like it."""
    folder, workload = os.environ.get(BINARIES_VARIABLE), task.workload
    return Subject(
        topology=task.world.world(0),
        workload=workload,
        schedule=task.schedule,
        family=WorkloadFamily(
            models=(config.model,),
            num_layers=config.num_layers,
            num_microbatches=(workload.num_microbatches, workload.num_microbatches),
            microbatch_sizes=MICROBATCH_SIZES,
            sequence_lengths=(SEQUENCE_LENGTH,),
            schedules=(task.schedule,),
        ),
        backend=cast(Backend, backend),  # checked with the flags
        binaries=Path(folder) if folder and backend != "pairwise" else None,
        num_placements=config.calibration_placements,
        seed=config.seed,
    )
