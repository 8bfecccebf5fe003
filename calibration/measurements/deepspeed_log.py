"""Log of DeepSpeed: steps by the samples a second that its timer prints, and its configuration.

deepspeedai/DeepSpeed, ``deepspeed/utils/timer.py`` ``ThroughputTimer.stop``:
``global_step=n, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=..`` (``n/N,`` in 2022); the
configuration is printed as ``train_batch_size ............. 256``.
"""

import re
from collections.abc import Iterator

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText
from calibration.measurements.training_log import LoggedStep, step_reading

NAME = "DeepSpeed log"
_STEP = re.compile(
    r"(?:global_step=|\d+/)(\d+), RunningAvgSamplesPerSec=\S+, CurrSamplesPerSec=(-?[\d.e+-]+)"
)
_BATCH = re.compile(r"\btrain_batch_size \.{3,} (\d+)")


def holds(file: SourceText) -> bool:
    """Whether it is a log with steps of DeepSpeed's timer; one of Megatron-LM says steps itself."""
    is_megatron = "elapsed time per iteration (ms)" in file.text
    return not file.is_json and _STEP.search(file.text) is not None and not is_megatron


def read(file: SourceText) -> Iterator[Reading]:
    """Read the median step.

    Raises
    ------
    ValueError
        If the sequences of a step are not printed, or a rate is not positive.
    """
    batch = _BATCH.search(file.text)
    if batch is None:
        raise file.wrong("train_batch_size must be printed, got none: samples are no steps")
    steps = []
    for number, line in enumerate(file.lines, start=1):
        if (found := _STEP.search(line)) is not None:
            rate = file.number(f"line {number}: rate", found[2])
            if not rate > 0:
                raise file.wrong(f"line {number}: rate must be positive, got {found[2]}")
            seconds = int(batch[1]) / rate
            steps.append(LoggedStep(number=int(found[1]), line=number, seconds=seconds))
    yield step_reading(file, NAME, steps, [("global_batch_size", batch[1])])
