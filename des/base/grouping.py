"""Values in groups by their keys."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

_KeyT = TypeVar("_KeyT")
_ValueT = TypeVar("_ValueT")


def grouped(pairs: Iterable[tuple[_KeyT, _ValueT]]) -> defaultdict[_KeyT, list[_ValueT]]:
    """Return values by their keys, both in the order in which they come.

    Examples
    --------
    >>> found = grouped([("a", 1), ("b", 2), ("a", 3)])
    >>> found["a"], found["c"]
    ([1, 3], [])
    """
    found: defaultdict[_KeyT, list[_ValueT]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found
