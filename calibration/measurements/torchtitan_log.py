"""Log of torchtitan: steps by their clock times, and the model that it names at the start.

pytorch/torchtitan, ``torchtitan/components/metrics.py``: ``step: n loss: .. memory: ..GiB(..%)
tps: N tflops: N mfu: N%``; a line may stand for several steps, and each rank may print it.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from calibration.measurements.megatron_log import check_clocks, clock_seconds
from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText
from calibration.measurements.training_log import LoggedStep, step_reading

NAME = "torchtitan log"
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_STEP = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d+)?) - \S+ - INFO - step:\s*(\d+)\s+loss:.*?"
    r"tps:\s*(-?[\d,.]+)"
)
_MODEL = re.compile(r"Building (\S+) (\S+) with (?:\w+\.)?\w*Args\((.*)\)")
_FIELD = re.compile(r"(\w+)=([^,=()]+)")
_MESH = re.compile(r"Building \d+-D device mesh with \[(.*?)\], \[(.*?)\]")
_TRAINING = re.compile(
    r"local batch size (\d+)(?: \([^)]*\))?, global batch size (\d+)(?: \([^)]*\))?, "
    r"(?:gradient accumulation steps \d+, )?sequence length (\d+)"
)
_GPU = re.compile(r"CUDA capacity: (.+?) with [\d.]+GiB memory")


def holds(file: SourceText) -> bool:
    """Whether it is a log with steps of torchtitan."""
    return not file.is_json and _STEP.search(_COLOUR.sub("", file.text)) is not None


def read(file: SourceText) -> Iterator[Reading]:
    """Read the median step by the clock, with model and mesh as facts."""
    clocks: dict[int, tuple[int, float]] = {}
    for number, line in enumerate(file.lines, start=1):
        if (found := _STEP.search(_COLOUR.sub("", line))) is not None:
            if not file.number(f"line {number}: tps", found[3]) > 0:
                raise file.wrong(f"line {number}: tps must be positive, got {found[3]}")
            clocks.setdefault(int(found[2]), (number, clock_seconds(file, number, found[1])))
    check_clocks(file, list(clocks.values()))
    steps = [
        LoggedStep(number=after, line=line, seconds=(end_s - start_s) / (after - before))
        for (before, (_, start_s)), (after, (line, end_s)) in pairwise(clocks.items())
        if after > before
    ]
    first_s = next(iter(clocks.values()))[1]
    yield step_reading(file, NAME, steps, list(_facts(file)), time_s=first_s)


def _facts(file: SourceText) -> Iterator[tuple[str, str]]:
    text = _COLOUR.sub("", file.text)
    if (model := _MODEL.search(text)) is not None:
        yield "model", f"{model[1]} {model[2]}"
        yield from ((key, value.strip(" '")) for key, value in _FIELD.findall(model[3]))
    if (mesh := _MESH.search(text)) is not None:
        yield from zip(*(_words(part) for part in mesh.groups()), strict=False)
    if (training := _TRAINING.search(text)) is not None:
        names = ("micro_batch_size", "global_batch_size", "seq_length")
        yield from zip(names, training.groups(), strict=True)
    if (gpu := _GPU.search(text)) is not None:
        yield "device", gpu[1]


def _words(text: str) -> list[str]:
    return [one.strip(" '") for one in text.split(",")]
