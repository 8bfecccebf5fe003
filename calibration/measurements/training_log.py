"""Steps of a training run in a log: those that count, and their median."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText, middle_of, quartile_distance

WARM_UP_STEPS = 5
"""First steps, which compile and fill caches, are left out."""

_CRASHES = (
    "Traceback (most recent call last)",
    "CUDA out of memory",
    "ChildFailedError",
    "SIGKILL",
)
_CHECKPOINTS = ("saving checkpoint", "saved checkpoint", "Saving the checkpoint", "Saving a full")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """Time of one step, or the mean of those after the one before, and the line that has it."""

    number: int
    line: int
    seconds: float


def step_reading(
    file: SourceText,
    name: str,
    steps: Sequence[LoggedStep],
    facts: Sequence[tuple[str, str]],
    *,
    time_s: float | None = None,
) -> Reading:
    """Median of the steps that count.

    Means that hold one of the first steps, or have a checkpoint before them, are left out.

    Raises
    ------
    ValueError
        If a time is not positive, numbers of steps go back, or none is left.
    """
    for before, after in pairwise(steps):
        if after.number <= before.number:
            raise file.wrong(
                f"line {after.line}: iteration must be above {before.number}, got {after.number}: "
                "one run a file"
            )
    for step in steps:
        if not 0 < step.seconds < float("inf"):
            raise file.wrong(f"line {step.line}: time must be positive, got {step.seconds:g} s")
    after_save = _after_checkpoints(file, steps)
    befores = [0, *(one.number for one in steps)]
    counted = [
        one
        for before, one in zip(befores, steps, strict=False)
        if before >= WARM_UP_STEPS and one.line not in after_save
    ]
    crash = next(((n, one) for n, one in enumerate(file.lines, 1) if _is_crash(one)), None)
    if not counted:
        end = f"; line {crash[0]}: {crash[1].strip():.60}" if crash else ""
        raise file.wrong(
            f"iteration must go beyond the first {WARM_UP_STEPS}, which warm up, got "
            f"{steps[-1].number if steps else 'none'}{end}"
        )
    seconds = [one.seconds for one in counted]
    return Reading(
        file=str(file.path),
        format=name,
        what="step",
        value=middle_of(seconds),
        samples=len(seconds),
        spread=quartile_distance(seconds),
        time_s=time_s,
        series=tuple((float(one.number), one.seconds) for one in counted),
        facts=tuple(facts),
        note=f"the run ended at line {crash[0]}: {crash[1].strip():.60}" if crash else "",
    )


def _is_crash(line: str) -> bool:
    return any(word in line for word in _CRASHES)


def _after_checkpoints(file: SourceText, steps: Sequence[LoggedStep]) -> set[int]:
    """Lines of the steps that a checkpoint comes before."""
    found = set()
    lines = [step.line for step in steps]
    for number, text in enumerate(file.lines, start=1):
        if any(word in text for word in _CHECKPOINTS):
            found.add(next((line for line in lines if line > number), 0))
    return found
