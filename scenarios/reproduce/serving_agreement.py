"""Agreement of an answer with the expected one: texts and whole numbers equal, others near."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

TOLERANCE = 1e-6
"""Relative or absolute difference of numbers that are not whole."""
_KEYS = {"requests": "request_id", "instances": "id"}


def first_difference(expected: Any, answer: Any) -> str | None:
    """Say where an answer differs first, or None.

    Columns of ``requests`` and ``instances`` may come in any order of their names.

    Examples
    --------
    >>> first_difference({"a": [1, 2.0]}, {"a": [1, 2.0000001], "b": 0})
    >>> first_difference({"a": [1]}, {"a": [2]})
    '.a[0]: expected 1, got 2'
    """
    return next(_differences(expected, answer, ""), None)


def _differences(expected: Any, answer: Any, place: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(answer, dict):
        key = _KEYS.get(place.removeprefix("."), "")
        if key in expected and key in answer:
            expected, answer = _by_name(expected, key), _by_name(answer, key)
        for name, value in expected.items():
            if name in answer:
                yield from _differences(value, answer[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}: expected a value, got none"
    elif isinstance(expected, list) and isinstance(answer, list) and len(expected) == len(answer):
        for number, (one, other) in enumerate(zip(expected, answer, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif not _is_same(expected, answer):
        yield f"{place}: expected {expected!r}, got {answer!r}"


def _is_same(expected: Any, answer: Any) -> bool:
    if isinstance(expected, float) and isinstance(answer, int | float):
        return math.isclose(expected, answer, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(expected == answer)


def _by_name(table: Mapping[str, list[Any]], key: str) -> dict[str, list[Any]]:
    order = sorted(range(len(table[key])), key=table[key].__getitem__)
    return {
        name: [column[place] for place in order] if len(column) == len(order) else column
        for name, column in table.items()
    }
