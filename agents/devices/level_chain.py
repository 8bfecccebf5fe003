"""Levels of a cluster that lie inside each other, NVLink domains among them where they do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from des.devices.cluster import Cluster
from des.devices.cluster_levels import Level

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """Levels coarse to fine; ``units`` (levels, nodes) are places of units, -1 for none."""

    names: tuple[str, ...]
    units: Whole
    num_units: tuple[int, ...]


def chain_of(cluster: Cluster) -> Chain:
    """Levels of the switches, and that of the NVLink domains where it lies between two of them."""
    levels: Sequence[Level] = cluster.levels
    if cluster.blocks:
        blocks = cluster.nvlink
        inside = [lies_inside(blocks.unit_of_node, level.unit_of_node) for level in levels]
        place = inside.index(False) if False in inside else len(levels)
        finer = levels[place:]
        if all(lies_inside(level.unit_of_node, blocks.unit_of_node) for level in finer):
            levels = (*levels[:place], blocks, *finer)
    num_nodes = len(cluster.nodes)
    return Chain(
        names=tuple(level.name for level in levels),
        units=np.array([level.unit_of_node for level in levels]).reshape(len(levels), num_nodes),
        num_units=tuple(len(level.units) + int((level.unit_of_node < 0).sum()) for level in levels),
    )


def lies_inside(fine: Whole, coarse: Whole) -> bool:
    """Whether every unit of one level is in one unit of another, or in none of it.

    Examples
    --------
    >>> lies_inside(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]))
    True
    >>> lies_inside(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    False
    """
    order = np.argsort(fine, kind="stable")
    fine, coarse = fine[order], coarse[order]
    is_same = (fine[1:] == fine[:-1]) & (fine[1:] >= 0)
    return bool((coarse[1:][is_same] == coarse[:-1][is_same]).all())


def num_units_of(units: Whole) -> int:
    """Number of different units; each node in none counts as one.

    Examples
    --------
    >>> num_units_of(np.array([0, 0, 3, -1, -1]))
    4
    """
    return len(np.unique(units[units >= 0])) + int((units < 0).sum())


def within_limit(unit_of_node: Whole, limit: int, places: Whole, costs: Whole) -> Whole:
    """The cheapest nodes, up to a limit in each unit; nodes in no unit all stay."""
    order = places[np.argsort(costs[places], kind="stable")]
    units = unit_of_node[order]
    kept = np.ones(len(order), dtype=bool)
    for unit in np.unique(units[units >= 0]):
        kept[np.flatnonzero(units == unit)[limit:]] = False
    return np.sort(order[kept])
