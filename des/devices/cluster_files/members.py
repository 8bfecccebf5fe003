"""Places from lists of members: each child has one parent, each node one switch and one block."""

from collections.abc import Iterable, Mapping

from des.devices.cluster import Switch
from des.devices.cluster_levels import height_levels


class Members:
    """Parent of every member of some lists, in the order in which members come."""

    def __init__(self, kind: str, parent_kind: str) -> None:
        self._kind, self._parent_kind = kind, parent_kind
        self.parent_of: dict[str, str] = {}

    def add(self, parent: str, members: Iterable[str]) -> None:
        """Take the members of a parent.

        Raises
        ------
        ValueError
            If one has another parent, or stands twice.
        """
        for member in members:
            if member in self.parent_of:
                first = self.parent_of[member]
                got = f"{parent} twice" if first == parent else f"{first} and {parent}"
                raise ValueError(
                    f"{self._kind} {member} must be in one {self._parent_kind}, got {got}"
                )
            self.parent_of[member] = parent


def switches_by_height(
    names: Iterable[str],
    parent_of: Mapping[str, str],
    labels: Mapping[str, tuple[tuple[str, str], ...]],
) -> tuple[Switch, ...]:
    """Switches of a file that names no levels: leaf, spine and core, by height."""
    parents = {name: parent_of.get(name) for name in names}
    for child, parent in parent_of.items():
        if child not in parents:
            raise ValueError(f"switch {parent}: unknown switch {child!r} below it")
    levels = height_levels(parents)
    return tuple(
        Switch(name=name, level=levels[name], parent=parent, labels=labels.get(name, ()))
        for name, parent in parents.items()
    )
