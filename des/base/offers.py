"""Entry points by which other packages add rows to tables: found by group, loaded when read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from importlib import metadata

RowT = TypeVar("RowT")

PREFIX = "eastwest."
"""First part of the names of all groups."""


@lru_cache(maxsize=8)
def _offers_on(_path: tuple[str, ...]) -> tuple[metadata.EntryPoint, ...]:
    """Entry points of our groups on the search path of this process, each once.

    Unlike `importlib.metadata.entry_points` it does not stop at the first metadata of a
    package: an older build's, left in a source folder, would hide those of the installation.
    """
    offers = [
        offer
        for distribution in metadata.distributions()
        for offer in distribution.entry_points
        if offer.group.startswith(PREFIX)
    ]
    return tuple(dict.fromkeys(offers))


def offered_names(group: str) -> tuple[str, ...]:
    """Names that packages offer in a group, in the order of the alphabet."""
    offers = _offers_on(tuple(sys.path))
    return tuple(sorted({offer.name for offer in offers if offer.group == group}))


def offered(owner: str, group: str, name: str) -> object:
    """Load what a package offers.

    Raises
    ------
    ValueError
        If several packages offer the name, or what is offered cannot be loaded. Naming ``owner``.
    KeyError
        If none offers it.
    """
    found = [
        offer for offer in _offers_on(tuple(sys.path)) if (offer.group, offer.name) == (group, name)
    ]
    if not found:
        raise KeyError(name)
    if len(found) > 1:
        values = " and ".join(offer.value for offer in found)
        raise ValueError(f"{owner} {name} must be offered by one package, got {values}")
    try:
        return found[0].load()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{owner} {name}: {found[0].value} cannot be loaded: {error}") from error


class OfferedRows(Mapping[str, RowT]):
    """A table of own rows, and of those that other packages offer, which are loaded when read.

    Parameters
    ----------
    own
        Rows of this project; their names cannot be offered by others.
    group
        Group of the entry points, such as ``eastwest.schedules``.
    row_of
        Makes a row of a name and what was loaded for it; raises ``ValueError`` for another thing.
    """

    def __init__(
        self, own: Mapping[str, RowT], group: str, row_of: Callable[[str, object], RowT]
    ) -> None:
        self._own, self._group, self._row_of = dict(own), group, row_of

    def __getitem__(self, name: str) -> RowT:
        if name in self._own:
            return self._own[name]
        owner = self._group.removeprefix(PREFIX).removesuffix("s")
        return self._row_of(name, offered(owner, self._group, name))

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in offered_names(self._group) if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)
