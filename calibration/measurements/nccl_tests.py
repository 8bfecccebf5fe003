"""Text and JSON of nccl-tests: bus bandwidth of a large collective, time of a small one.

NVIDIA/nccl-tests a0b82b22, ``src/util.cu`` ``writeDeviceReport``, ``writeBenchmarkLineBody``;
``doc/PERFORMANCE.md`` says what bus bandwidth is. Texts to 2.8 have no ``#wrong`` but ``error``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import JsonField, SourceText

NAME = "nccl-tests"
_DEVICE = re.compile(
    r"#\s+Rank\s+\d+ (?:Group\s+\d+ )?Pid\s+\d+ on\s+(\S+) device\s+\d+ \[.*?\] (.+)"
)
_START = re.compile(r"# (?:Collective test starting: (\w+)|nThread \d+ nGpus \d+)")
_ITERATIONS = re.compile(r" iters: (\d+)")
Facts = tuple[tuple[str, str], ...]
_LARGEST_DIFFERENCE = 0.02
"""Relative difference of a rate from size and time that rounding leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One size: bytes, microseconds, algorithm and bus bandwidth in 1e9 bytes/s."""

    place: str
    size_bytes: int
    time_us: float
    algorithm_gb_per_s: float
    bus_gb_per_s: float


def holds(file: SourceText) -> bool:
    """Whether it is the text or the JSON of a test."""
    if file.is_json:
        return file.has_keys("results", "config")
    return _START.search(file.text) is not None and "busbw" in file.text


def read(file: SourceText) -> Iterator[Reading]:
    """Read the bus bandwidth at the largest size, and the time of the smallest one.

    Raises
    ------
    ValueError
        If a row has wrong elements or a rate that is not that of its bytes and time, or no row is
        there; naming it.
    """
    hosts, rows, facts = _of_json(file) if file.is_json else _of_text(file)
    counted = (("ranks", str(len(hosts))), ("nodes", str(len(set(hosts)))))
    yield from readings_of(file, NAME, hosts, rows, (*counted, *facts))


def readings_of(
    file: SourceText,
    name: str,
    hosts: Sequence[str],
    rows: Sequence[Row],
    facts: Facts,
) -> Iterator[Reading]:
    """Readings of rows of a collective; facts have ranks and nodes, hosts may be unknown."""
    if not rows:
        raise file.wrong("results must hold a row, got none: was the test cut off?")
    for row in rows:
        _check(file, row)
    ordered = sorted(rows, key=lambda row: row.size_bytes)
    smallest, largest = ordered[0], ordered[-1]
    bandwidth = Reading(
        file=str(file.path),
        format=name,
        what="bus_bandwidth",
        value=largest.bus_gb_per_s * 1e9,
        hosts=tuple(hosts),
        series=tuple((float(row.size_bytes), row.time_us / 1e6) for row in ordered),
        facts=(*facts, ("bytes", str(largest.size_bytes))),
    )
    yield bandwidth
    small = (*facts, ("bytes", str(smallest.size_bytes)))
    yield replace(bandwidth, what="collective", value=smallest.time_us / 1e6, facts=small)


def _check(file: SourceText, row: Row) -> None:
    for field in ("time_us", "bus_gb_per_s"):
        if getattr(row, field) < 0 or (field == "time_us" and not row.time_us):
            raise file.wrong(f"{row.place}: {field} must be positive, got {getattr(row, field)}")
    counted = row.size_bytes / row.time_us / 1e3
    allowed = _LARGEST_DIFFERENCE * counted + 0.01
    if abs(counted - row.algorithm_gb_per_s) > allowed:
        raise file.wrong(
            f"{row.place}: algbw must be size / time, {counted:.3g} GB/s, got "
            f"{row.algorithm_gb_per_s:g} (are these bits?)"
        )


def _of_text(
    file: SourceText,
) -> tuple[list[str], list[Row], Facts]:
    found = [one for line in file.lines if (one := _DEVICE.match(line))]
    if not found:
        raise file.wrong("the list of devices must be given (# Rank ...), got none")
    header = next((line.split() for line in file.lines if "busbw" in line), [])
    has_root = "root" in header
    rows = [
        _text_row(file, number, line.split(), has_root)
        for number, line in enumerate(file.lines, start=1)
        if re.match(r"\s*\d+\s+\d+\s+\w+\s+\w+\s", line)
    ]
    test, iterations = _START.search(file.text), _ITERATIONS.search(file.text)
    facts = {"test": test[1] if test else None, "device": found[0][2].strip()}
    facts["iterations"] = iterations[1] if iterations else None
    named = tuple((key, value) for key, value in facts.items() if value)
    return [one[1] for one in found], rows, named


def _text_row(file: SourceText, number: int, cells: list[str], has_root: bool) -> Row:
    first = 5 if has_root else 4
    place = f"line {number}"
    if len(cells) < first + 4:
        raise file.wrong(
            f"{place}: must have time, algbw, busbw and #wrong, got {len(cells)} cells"
        )
    try:
        time_us, algorithm, bus = (float(cell) for cell in cells[first : first + 3])
        is_wrong = cells[first + 3] != "N/A" and float(cells[first + 3]) >= 1
    except ValueError as error:
        raise file.wrong(f"{place}: time, algbw, busbw: {error}") from error
    if is_wrong:
        raise file.wrong(f"{place}: #wrong must be 0, got {cells[first + 3]}")
    return Row(
        place=place,
        size_bytes=int(cells[0]),
        time_us=time_us,
        algorithm_gb_per_s=algorithm,
        bus_gb_per_s=bus,
    )


def _of_json(
    file: SourceText,
) -> tuple[list[str], list[Row], Facts]:
    report = file.json
    devices = list(report.at("config", "devices").items())
    hosts = [one.at("hostname").text() for one in devices]
    rows = [row for one in report.at("results").items() if (row := _json_row(one)) is not None]
    name = devices[0].get("device_info") if devices else None
    iterations = report.get("config", "iterations")
    program = next(iter(report.at("args").items()), None) if report.get("args") else None
    facts = (
        *((("test", program.text().rpartition("/")[2]),) if program is not None else ()),
        *((("device", name.text()),) if name is not None else ()),
        *((("iterations", f"{iterations.number():g}"),) if iterations is not None else ()),
    )
    return hosts, rows, facts


def _json_row(row: JsonField) -> Row | None:
    """Row out of place, or in place where there is no other; None of neither."""
    body = row.get("out_of_place") or row.get("in_place")
    if body is None:
        return None
    wrong = body.get("nwrong")
    if wrong is not None and wrong.number() >= 1:
        raise wrong.wrong("0")
    return Row(
        place=row.name,
        size_bytes=int(row.at("size").positive()),
        time_us=body.at("time").positive(),
        algorithm_gb_per_s=body.at("alg_bw").non_negative(),
        bus_gb_per_s=body.at("bus_bw").non_negative(),
    )
