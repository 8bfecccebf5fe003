"""Sketches of replicas and hybrids: partitions with shares, and about how long a step takes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from agents.decision.families import Family
from agents.planners.whole.partitions import Partition
from des.plan.synchronisation import Synchronisation

Part = TypeVar("Part")

_NUM_BY_STAR = 2
"""Best sketches with a star that are kept beside the best with a ring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A partition with its shares, and about how long a step takes with a ring or a star. [s]

    Where the groups share the optimiser's state, ``sharded``, they have no star.
    """

    partition: Partition
    shares: tuple[float, ...]
    mode: Synchronisation
    family: Family
    step_s: float
    star_step_s: float
    sharded: bool = False


def best_sketches(sketches: Sequence[Sketch], most: int) -> list[int]:
    """Positions of the quickest sketches with a ring, and of a few more with a star."""
    positions = range(len(sketches))
    by_ring = sorted(positions, key=lambda one: sketches[one].step_s)[:most]
    by_star = sorted(positions, key=lambda one: sketches[one].star_step_s)[:_NUM_BY_STAR]
    return list(dict.fromkeys([*by_ring, *by_star]))


def worth_sharding(
    sharded: Sequence[tuple[Sketch, Part]], whole: Sequence[tuple[Sketch, Part]]
) -> list[tuple[Sketch, Part]]:
    """Sketches with a shared optimiser that promise more than all without, each with its part."""
    best_s = min((min(one.step_s, one.star_step_s) for one, _ in whole), default=math.inf)
    return [each for each in sharded if each[0].step_s < best_s]


def is_of(partition: Partition, family: Family) -> bool:
    """Whether a partition can be of a family: replicas are of one domain each, hybrids not all."""
    is_single = max(map(len, partition)) == 1
    return {"replicas": is_single, "hybrid": not is_single}.get(family, True)


def mean_step_s(computed_s: float, byte_s: float, mode: Synchronisation, num_bytes: float) -> float:
    """Time of a step with what its exchange adds, about. [s]"""
    exchange_s = byte_s * num_bytes
    if mode.steps_between == 1:
        return computed_s + exchange_s
    if mode.overlap_steps == 0:
        return computed_s + exchange_s / mode.steps_between
    return max(computed_s, exchange_s / mode.steps_between)
