"""JSON of rccl-tests (``-Z json -x FILE``): a record for each size, in a list or a line each.

ROCm/rccl-tests, ``src/common.cu``: ``{"name": "AllReduce", "nodes", "ranks", "size", "inPlace",
"time", "algBw", "busBw", "wrong"}``, in microseconds and GB/s. Texts are those of nccl-tests.
"""

import re
from collections.abc import Iterator

from calibration.measurements.nccl_tests import Row, readings_of
from calibration.measurements.reading import Reading
from calibration.measurements.source_text import JsonField, SourceText

NAME = "rccl-tests"


def holds(file: SourceText) -> bool:
    """Whether it has records of rccl-tests."""
    return file.is_json and '"busBw"' in file.text


def read(file: SourceText) -> Iterator[Reading]:
    """Read the bus bandwidth at the largest size, and the time of the smallest one."""
    value = file.json.value
    listed = value if isinstance(value, list) else [value]
    records = JsonField(file=str(file.path), name="records", value=listed)
    rows, first = [], None
    for one in records.items():
        if one.at("wrong").value not in ("0", "N/A", 0):
            raise one.at("wrong").wrong("0")
        first = first or one
        if one.at("inPlace").number() == 0:
            rows.append(
                Row(
                    place=one.name,
                    size_bytes=int(one.at("size").positive()),
                    time_us=one.at("time").positive(),
                    algorithm_gb_per_s=one.at("algBw").non_negative(),
                    bus_gb_per_s=one.at("busBw").non_negative(),
                )
            )
    if first is None:
        raise file.wrong("records must hold a row, got none")
    test = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", first.at("name").text()).lower()
    counts = [(name, f"{first.at(name).positive():g}") for name in ("ranks", "nodes")]
    yield from readings_of(file, NAME, (), rows, (*counts, ("test", test)))
