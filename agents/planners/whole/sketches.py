"""Sketches of replicas and hybrids: partitions with shares, and about how long a step takes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from agents.decision.families import Family
from agents.planners.bounds.exchanges import Windows
from agents.planners.whole.partitions import Partition
from des.compiled.many.layout import Flags, Real
from des.plan.synchronisation import Synchronisation

Part = TypeVar("Part")

_NUM_BY_STAR = 2
"""Number of best sketches with a star, kept with the best ones with a ring."""


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


class Sending(NamedTuple):
    """Traffic of copies in a mode: bytes of a parameter, mean of both halves of an exchange.

    ``shared_fraction`` of the steps of a period end no sooner than an exchange behind them.
    """

    mode: Synchronisation
    num_bytes: float
    shared_fraction: float

    @classmethod
    def of(cls, mode: Synchronisation, num_bytes: float, num_layers: int) -> "Sending":
        """Count the steps of a mode that have an exchange behind them."""
        return cls(mode, num_bytes, _shared_fraction(mode, num_layers))

    def mean_steps_s(self, computed_s: Real, byte_s: Real) -> Real:
        """Times of a step with what its exchange adds, about. [s]"""
        exchange_s = byte_s * self.num_bytes / self.mode.steps_between
        if self.mode.overlap_steps == 0:
            return computed_s + exchange_s
        waited_s = (1.0 - self.shared_fraction) * computed_s + exchange_s
        return np.maximum(computed_s, waited_s)


@lru_cache(maxsize=64)
def _shared_fraction(mode: Synchronisation, num_layers: int) -> float:
    return Windows.of(mode, np.ones(num_layers)).num_steps / mode.steps_between


class Levelled(NamedTuple):
    """Partitions of which all groups fit, N in all, each under its best schedule.

    ``shares`` (N, R) are of the microbatches, those behind the last group mean nothing;
    ``step_s`` (N,) is without an exchange; ``ring_s`` and ``star_s`` (N,) are exchanges of a byte
    a parameter; ``is_single`` (N,) where all groups are of one domain. [s]
    """

    partitions: list[Partition]
    shares: Real
    is_single: Flags
    step_s: Real
    ring_s: Real
    star_s: Real

    def sketches(
        self, family: Family, sending: Sending, most: int, *, sharded: bool
    ) -> list[Sketch]:
        """The best of these as sketches of a family: the quickest with a ring, then a star."""
        is_of = {"replicas": self.is_single, "hybrid": ~self.is_single}.get(family)
        own = np.flatnonzero(np.ones(len(self.step_s)) if is_of is None else is_of)
        ring_s, star_s = (
            sending.mean_steps_s(self.step_s[own], byte_s[own])
            for byte_s in (self.ring_s, self.star_s)
        )
        if sharded:
            star_s = np.full(len(own), np.inf)
        return [
            Sketch(
                partition=self.partitions[own[place]],
                shares=tuple(self.shares[own[place]].tolist()[: len(self.partitions[own[place]])]),
                mode=sending.mode,
                family=family,
                step_s=float(ring_s[place]),
                star_step_s=float(star_s[place]),
                sharded=sharded,
            )
            for place in best_places(ring_s, star_s, most)
        ]


def joined_levels(parts: Sequence[Levelled]) -> Levelled:
    """Return several as one."""
    partitions = [one for part in parts for one in part.partitions]
    rest = (np.concatenate(fields) for fields in zip(*(part[1:] for part in parts), strict=True))
    return Levelled(partitions, *rest)


def best_places(ring_s: Real, star_s: Real, most: int) -> list[int]:
    """Places of the quickest sketches with a ring, and of a few more with a star."""
    by_ring = np.argsort(ring_s, kind="stable")[:most]
    by_star = np.argsort(star_s, kind="stable")[:_NUM_BY_STAR]
    return list(dict.fromkeys([*by_ring.tolist(), *by_star.tolist()]))


def worth_sharding(
    sharded: Sequence[tuple[Sketch, Part]], whole: Sequence[tuple[Sketch, Part]]
) -> list[tuple[Sketch, Part]]:
    """Sketches with a shared optimiser that promise more than all without, each with its part."""
    best_s = min((min(one.step_s, one.star_step_s) for one, _ in whole), default=math.inf)
    return [each for each in sharded if each[0].step_s < best_s]
