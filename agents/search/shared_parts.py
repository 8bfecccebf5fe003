"""Parts that searches of several worlds, jobs and trainers have in common."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agents.search.kernels.records import Room, new_room

PartT = TypeVar("PartT")


@dataclass(frozen=True, kw_only=True)
class SharedParts:
    """Parts of figures, and room to work in, of any number of searches.

    ``numbers`` are short names of values that parts depend on.
    """

    parts: dict[Hashable, Any] = field(default_factory=dict)
    numbers: dict[Hashable, int] = field(default_factory=dict)
    rooms: dict[tuple[int, int, int, int], Room] = field(default_factory=dict)

    def part(self, key: Hashable, work_out: Callable[[], PartT]) -> PartT:
        """Look a part up, or work it out."""
        found: PartT | None = self.parts.get(key)
        if found is None:
            found = self.parts[key] = work_out()
        return found

    def number(self, value: Hashable) -> int:
        """Number of a value, the same for equal ones."""
        return self.numbers.setdefault(value, len(self.numbers))

    def room(self, sizes: tuple[int, int, int, int]) -> Room:
        """Room of some sizes, see `new_room`."""
        if sizes not in self.rooms:
            self.rooms[sizes] = new_room(*sizes)
        return self.rooms[sizes]
