"""Calibration of the simulator while a policy is trained on it: from its flags to its effect."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from agents.ppo.checkpoint import CheckpointError
from calibration import ReferenceRunError
from calibration.loop import (
    BackgroundCalibrator,
    CalibrationLoop,
    Choices,
    Entry,
    LoggedSubject,
    Subject,
    Timetable,
    factors_text,
    percent_text,
)
from calibration.measuring.environment import BINARIES_VARIABLE
from des import Corrections
from des.base.names import counted
from scenarios.frame.run_folder import RunFolder
from scenarios.train.calibration_log import CalibrationLog


class CalibratedTraining(Protocol):
    """Training that a calibration follows."""

    @property
    def step_count(self) -> int:
        """Steps made, as the timetable of the calibration counts them."""

    def choices(self) -> Choices:
        """Placements that the policy chooses now."""

    def recalibrate(self, corrections: Corrections) -> None:
        """Simulate with other factors from now on."""


class TrainingCalibration:
    """A `CalibrationLoop` next to a training, or the reason why there is none.

    Parameters
    ----------
    initial
        Factors to simulate with until a calibration finds others.
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
        initial: Corrections,
        loop: CalibrationLoop | str,
        folder: RunFolder,
        console: Console,
        *,
        reference: str = "",
    ) -> None:
        self._initial, self._folder, self._console = initial, folder, console
        self._reference = reference
        self._loop = None if isinstance(loop, str) else loop
        self._why_not = loop if isinstance(loop, str) else ""
        self._log: CalibrationLog | None = None  # of a loop, from `begin` or `load_state` on

    @property
    def in_force(self) -> Corrections:
        """Factors to simulate with."""
        return self._initial if self._loop is None else self._loop.in_force

    def begin(self, training: CalibratedTraining) -> None:
        """Wait for the calibration before training, and put what it found in force."""
        if self._loop is None:
            self._print(f"Calibration: none, {self._why_not}")
            return
        unused = self._reference.startswith("pairwise") and os.environ.get(BINARIES_VARIABLE)
        hint = f"; {BINARIES_VARIABLE} has no program for it" if unused else ""
        self._print(f"Calibration: {self._reference}{hint}")
        if self._log is None:
            self._open_log(())
        if training.step_count == 0:
            with self._console.status("calibrating: measuring placements by the reference"):
                self.advance(training)

    def advance(self, training: CalibratedTraining) -> None:
        """Do what is due after an update.

        Raises
        ------
        ValueError
            If a calibration failed.
        """
        if self._loop is None:
            return
        before = self._loop.in_force
        try:
            entries = self._loop.advance(training.step_count, training.choices)
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
            training.recalibrate(self._loop.in_force)

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
        f"{percent_text(worst.error_after)} after any of {counted(len(fits), 'calibration')} and "
        f"{counted(len(entries) - len(fits), 'probe')}; {counted(changes, 'change')} of factors, "
        f"{factors_text(last.corrections)}."
    )


@contextmanager
def training_calibration(
    subject: Subject | LoggedSubject | str,
    folder: RunFolder,
    console: Console,
    *,
    timetable: Timetable,
    initial: Corrections,
    bound: float,
    is_begun: bool,
) -> Iterator[TrainingCalibration]:
    """Give the calibration of a training; the one before training begins at once.

    Parameters
    ----------
    subject
        What `subject_of` returned.
    initial
        Factors until a calibration finds others.
    bound
        Mean error of iteration times above which there is drift.
    is_begun
        Whether there is a checkpoint to continue from.
    """
    if isinstance(subject, str):
        yield TrainingCalibration(initial, subject, folder, console)
        return
    with CalibrationLoop(
        BackgroundCalibrator(
            replace(subject, store=folder.calibration_store)
            if isinstance(subject, Subject)
            else subject
        ),
        timetable,
        initial=initial,
        bound=bound,
    ) as loop:
        if not is_begun:
            loop.start()
        yield TrainingCalibration(initial, loop, folder, console, reference=subject.reference)
