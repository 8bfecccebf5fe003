"""Lists of CPUs and of NUMA nodes as the kernel writes them: ``0-47,96-143``."""

import re
from collections.abc import Iterable
from itertools import pairwise

Span = tuple[int, int]
"""First and last number of a range of CPUs or nodes."""

_SPANS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_MOST = 1_000_000


def parse_spans(text: str) -> tuple[Span, ...]:
    """Read a list of numbers and ranges, in the order written.

    Raises
    ------
    ValueError
        If it is none, a range falls, or ranges overlap; the message begins after the field's name.

    Examples
    --------
    >>> parse_spans("0-3,8")
    ((0, 3), (8, 8))
    """
    if not _SPANS.fullmatch(text, endpos=10_000):
        raise ValueError(f"must be numbers and ranges such as 0-47,96-143, got {text!r}")
    spans = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        spans.append((int(first), int(last or first)))
    ordered = sorted(spans)
    overlap = any(one[1] >= other[0] for one, other in pairwise(ordered))
    if overlap or any(first > last or last >= _MOST for first, last in spans):
        raise ValueError(f"must be rising ranges below {_MOST} that do not overlap, got {text!r}")
    return tuple(spans)


def format_spans(spans: Iterable[Span]) -> str:
    """Write ranges as the kernel does.

    Examples
    --------
    >>> format_spans([(0, 3), (8, 8)])
    '0-3,8'
    """
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in spans)


def spans_of(numbers: Iterable[int]) -> tuple[Span, ...]:
    """Join numbers into ranges, rising.

    Examples
    --------
    >>> spans_of([3, 1, 2, 8])
    ((1, 3), (8, 8))
    """
    spans: list[Span] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return tuple(spans)


def numbers_in(spans: Iterable[Span]) -> tuple[int, ...]:
    """Count out all numbers of ranges, in the order of the ranges.

    Examples
    --------
    >>> numbers_in([(0, 2), (8, 8)])
    (0, 1, 2, 8)
    """
    return tuple(number for first, last in spans for number in range(first, last + 1))
