"""Text of ping (iputils): round trips, their mean deviation and loss.

ping(8) of iputils, ``ping_common.c``: ``rtt min/avg/max/mdev``; BSD and macOS print ``round-trip
min/avg/max/stddev``.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import SourceText, middle_of, quartile_distance

NAME = "ping"
_HEAD = re.compile(r"PING (\S+) ?\(([^)\s]+)\)(?: from (\S+))?", re.MULTILINE)
_COUNTS = re.compile(
    r"(\d+) packets transmitted, (\d+) (?:packets )?received.*?([\d.]+)% packet loss"
)
_TIMES = re.compile(r"(?:rtt|round-trip) min/avg/max/\w+ = ([-\d.]+)/([-\d.]+)/([-\d.]+)/([-\d.]+)")
_ONE = re.compile(r"^(?:\[(\d+\.\d+)\] )?\d+ bytes from .*?time=([-\d.]+) ms", re.MULTILINE)


def holds(file: SourceText) -> bool:
    """Whether it is the output of ping."""
    return _HEAD.search(file.text) is not None


def read(file: SourceText) -> Iterator[Reading]:
    """Read loss, round trip and jitter to the host that was pinged; of no answer, the loss alone.

    Raises
    ------
    ValueError
        If there is no summary, or a time is not positive.
    """
    head, counts = _HEAD.search(file.text), _COUNTS.search(file.text)
    assert head is not None
    if counts is None:
        raise file.wrong("packets transmitted must be given, got no summary: was it cut off?")
    sent, received = int(counts[1]), int(counts[2])
    if not sent:
        raise file.wrong("packets transmitted must be at least 1, got 0")
    lost = Reading(
        file=str(file.path),
        format=NAME,
        what="loss",
        value=1.0 - received / sent,
        samples=sent,
        source=head[3] or "",
        target=head[2],
        time_s=_began(file),
        note="" if received else "nothing answered",
    )
    yield lost
    if not received:
        return
    times = _TIMES.search(file.text)
    if times is None:
        raise file.wrong("rtt min/avg/max/mdev must be given, got none")
    average_s, deviation_s = (file.number("rtt", times[at]) / 1e3 for at in (2, 4))
    if average_s <= 0:
        raise file.wrong(f"rtt avg must be positive, got {times[2]} ms")
    single_s = [file.number("time", one[2]) / 1e3 for one in _ONE.finditer(file.text)]
    there = replace(
        lost,
        what="round_trip",
        value=middle_of(single_s) if single_s else average_s,
        samples=received,
        spread=quartile_distance(single_s) if single_s else deviation_s,
    )
    yield there
    yield replace(there, what="jitter", value=deviation_s, spread=None)


def _began(file: SourceText) -> float | None:
    """Time of the first answer with ``-D``."""
    first = next((one[1] for one in _ONE.finditer(file.text)), None)
    return None if first is None else float(first)
