"""Log of Megatron-LM: time of an iteration, and the arguments that it prints at the start.

NVIDIA/Megatron-LM, ``megatron/training/training.py`` ``training_log``, and ``arguments.py``
``_print_args``.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText
from calibration.measurements.training_log import LoggedStep, step_reading

NAME = "Megatron-LM log"
_STEP = re.compile(
    r"iteration\s+(\d+)\s*/\s*\d+ \|.*?elapsed time per iteration \(ms\):\s*(-?[\d.]+)"
)
_ARGUMENT = re.compile(r"(?:\[\w+\]:)?\s*(\w+) \.{3,} (.+?)\s*$")
_VOCABULARY = re.compile(r"> padded vocab .*\(new size: (\d+)\)")
_CLOCK = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def holds(file: SourceText) -> bool:
    """Whether it is a log with iterations of Megatron-LM."""
    return not file.is_json and "elapsed time per iteration (ms)" in file.text


def read(file: SourceText) -> Iterator[Reading]:
    """Read the median step, with the arguments as facts."""
    steps = []
    clocks: list[tuple[int, float]] = []
    for number, line in enumerate(file.lines, start=1):
        if (found := _STEP.search(line)) is None:
            continue
        steps.append(
            LoggedStep(
                number=int(found[1]),
                line=number,
                seconds=file.number(f"line {number}: time", found[2]) / 1e3,
            )
        )
        if (clock := _CLOCK.search(line)) is not None:
            clocks.append((number, clock_seconds(file, number, clock[1])))
    check_clocks(file, clocks)
    found_in = (_ARGUMENT.match(line) for line in file.lines)
    arguments = {one[1]: one[2] for one in found_in if one is not None}
    if (vocabulary := _VOCABULARY.search(file.text)) is not None:
        arguments["padded_vocab_size"] = vocabulary[1]
    yield step_reading(
        file,
        NAME,
        steps,
        [(key, value) for key, value in arguments.items() if value != "None"],
        time_s=clocks[0][1] if clocks else None,
    )


def clock_seconds(file: SourceText, line: int, clock: str) -> float:
    """Seconds since 1970 of a date and time, taken for UTC as logs name no zone."""
    try:
        found = datetime.fromisoformat(clock.replace(",", "."))
    except ValueError as error:
        raise file.wrong(f"line {line}: time: {error}, got {clock}") from error
    return found.replace(tzinfo=UTC).timestamp()


def check_clocks(file: SourceText, clocks: list[tuple[int, float]]) -> None:
    """Refuse times that go back."""
    for (_, before_s), (line, after_s) in pairwise(clocks):
        if after_s < before_s:
            raise file.wrong(
                f"line {line}: time must not go back, got {before_s - after_s:g} s: clocks jumped"
            )
