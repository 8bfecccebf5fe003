"""Levels of a tree of switches, coarse to fine: which unit of each level every node is in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import numpy.typing as npt

HEIGHT_NAMES = ("leaf", "spine", "core")
"""Names of the lowest levels of switches where a file gives none, as topograph's labels have it."""

NVLINK = "nvlink"
"""Level of the NVLink domains."""

ANY = "any"
"""Level of the whole cluster."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """A level of a cluster: its units, and the unit of every node.

    ``units`` are names of switches, racks or NVLink domains; ``unit_of_node`` (nodes,) are places
    in it, -1 of a node that is in none.
    """

    name: str
    units: tuple[str, ...]
    unit_of_node: npt.NDArray[np.int64]


def height_levels(parent_of: Mapping[str, str | None]) -> dict[str, str]:
    """Names of levels of switches by their height: leaf, spine, core, tier4 and so on.

    Examples
    --------
    >>> height_levels({"s0": "s2", "s1": "s2", "s2": None})
    {'s0': 'leaf', 's1': 'leaf', 's2': 'spine'}
    """
    heights = dict.fromkeys(parent_of, 1)
    for switch in child_first(parent_of):
        parent = parent_of[switch]
        if parent is not None:
            heights[parent] = max(heights[parent], heights[switch] + 1)
    return {
        switch: HEIGHT_NAMES[height - 1] if height <= len(HEIGHT_NAMES) else f"tier{height}"
        for switch, height in heights.items()
    }


def child_first(parent_of: Mapping[str, str | None]) -> Sequence[str]:
    """Switches in an order in which children precede their parents.

    Raises
    ------
    ValueError
        If a parent is unknown, or switches form a circle; the message names them.
    """
    children: dict[str, list[str]] = {switch: [] for switch in parent_of}
    for switch, parent in parent_of.items():
        if parent is None:
            continue
        if parent not in children:
            raise ValueError(f"switch {switch}: unknown switch {parent!r} above it")
        children[parent].append(switch)
    try:
        return tuple(TopologicalSorter(children).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ValueError(f"switches must be a tree, got a circle {circle}") from None


def level_order(
    level_of: Mapping[str, str], parent_of: Mapping[str, str | None]
) -> tuple[str, ...]:
    """Names of levels, coarse to fine.

    Raises
    ------
    ValueError
        If two levels stand above each other, or a switch is on the level of its parent.
    """
    below: dict[str, set[str]] = {level: set() for level in level_of.values()}
    for switch, parent in parent_of.items():
        if parent is not None:
            below[level_of[parent]].add(level_of[switch])
    for switch, parent in parent_of.items():
        if parent is not None and level_of[parent] == level_of[switch]:
            raise ValueError(
                f"switch {switch}: level must be finer than that of {parent} above it, "
                f"got {level_of[switch]!r}"
            )
    heights: dict[str, int] = {}
    try:
        for level in TopologicalSorter(below).static_order():
            heights[level] = 1 + max((heights[lower] for lower in below[level]), default=0)
    except CycleError as error:
        circle = " above ".join(error.args[1])
        raise ValueError(f"levels must have one order, got {circle}") from None
    return tuple(sorted(below, key=lambda level: -heights[level]))


def tree_levels(
    switch_of_node: Iterable[str | None],
    level_of: Mapping[str, str],
    parent_of: Mapping[str, str | None],
) -> tuple[Level, ...]:
    """Levels of a tree, coarse to fine; units stand in the order of the switches."""
    order = child_first(parent_of)
    names = level_order(level_of, parent_of)
    units = {
        name: [switch for switch, level in level_of.items() if level == name] for name in names
    }
    place = {switch: at for members in units.values() for at, switch in enumerate(members)}
    row = {name: at for at, name in enumerate(names)}
    lines: dict[str | None, list[int]] = {None: [-1] * len(names)}
    for switch in reversed(order):
        line = list(lines[parent_of[switch]])
        line[row[level_of[switch]]] = place[switch]
        lines[switch] = line
    table = np.array([lines[switch] for switch in switch_of_node], dtype=np.int64)
    return tuple(
        Level(name=name, units=tuple(units[name]), unit_of_node=np.ascontiguousarray(table[:, at]))
        for name, at in row.items()
    )
