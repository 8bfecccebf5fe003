"""Log of NeMo 2: time of a step as its progress printer says it.

NVIDIA-NeMo/NeMo, ``nemo/lightning/pytorch/callbacks/progress_printer.py``: ``Training epoch e,
iteration n/N | ... | train_step_timing in s: x``. Sizes of the model are not printed.
"""

import re
from collections.abc import Iterator

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText
from calibration.measurements.training_log import LoggedStep, step_reading

NAME = "NeMo log"
_STEP = re.compile(
    r"Training epoch \d+, iteration (\d+)/\d+ \|(?:.*?global_batch_size: (\d+))?.*?"
    r"train_step_timing in s: (-?[\d.e+-]+)"
)


def holds(file: SourceText) -> bool:
    """Whether it is a log with steps of NeMo."""
    return not file.is_json and "train_step_timing in s: " in file.text


def read(file: SourceText) -> Iterator[Reading]:
    """Read the median step."""
    lines = [(at, one) for at, line in enumerate(file.lines, 1) if (one := _STEP.search(line))]
    steps = [
        LoggedStep(number=int(one[1]) + 1, line=at, seconds=file.number(f"line {at}: time", one[3]))
        for at, one in lines
    ]
    facts = [("global_batch_size", one[2]) for _, one in lines[-1:] if one[2]]
    yield step_reading(file, NAME, steps, facts)
