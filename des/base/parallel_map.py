"""Interface of a map over this process or others, with results in order."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

_T = TypeVar("_T")
_U = TypeVar("_U")


class ParallelMap(Protocol):
    """Applies a function to all of some items, in order, in this process or in others."""

    def __call__(self, function: Callable[[_T], _U], items: Iterable[_T], /) -> Iterator[_U]:
        """Return an iterator over the results."""
