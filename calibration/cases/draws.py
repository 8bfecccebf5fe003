"""Random numbers for samples: levels that every prefix of the cases holds equally often."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from des.plan.placement import Placement

NUM_LEVELS = 4
"""Parts into which ranges are divided."""


class Factor(IntEnum):
    """Strata of the cases; each has random numbers of its own."""

    OWN = 0  # the numbers of one case that are not stratified
    NUM_DOMAINS = 1
    NUM_USED_DOMAINS = 2
    SCHEDULE = 3
    NUM_STAGES = 4
    IMBALANCE = 5
    NUM_MICROBATCHES = 6
    MODEL = 7
    MICROBATCH_SIZE = 8
    SEQUENCE_LENGTH = 9
    BANDWIDTH = 10
    LATENCY = 11
    PARALLELISM = 12
    POLICY = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Numbers of one case, by its place among those that are stratified together.

    Levels of a factor come in blocks in which each is there once, in an order of its own; so of any
    number of first cases each level has as many as any other, or one more. ``is_free`` draws levels
    at random instead.
    """

    seed: int
    stream: int
    rng: np.random.Generator
    place: int
    is_free: bool = False

    def level(self, factor: Factor, num_levels: int, place: int | None = None) -> int:
        """Return the level of the case, counted from 0."""
        if self.is_free:
            return int(self.rng.integers(num_levels))
        block, at = divmod(self.place if place is None else place, num_levels)
        order = generator(self.seed, self.stream, factor, block, num_levels)
        return int(order.permutation(num_levels)[at])

    def whole(self, factor: Factor, num_levels: int, bounds: tuple[int, int]) -> int:
        """Return a whole number within bounds, from the part of them that the level stands for."""
        return self.within(self.level(factor, num_levels), num_levels, bounds)

    def within(self, level: int, num_levels: int, bounds: tuple[int, int]) -> int:
        """Return a whole number from a part of bounds; of as many levels, each is a number."""
        least, most = bounds
        count = most - least + 1
        first = level * count // num_levels
        last = max(first, (level + 1) * count // num_levels - 1)
        return least + int(self.rng.integers(first, last, endpoint=True))

    def between(self, factor: Factor, low: float, high: float) -> float:
        """Return a number within bounds, from the part of them that the level stands for."""
        level = self.level(factor, NUM_LEVELS)
        return low + (high - low) * ((level + float(self.rng.random())) / NUM_LEVELS)


def generator(seed: int, stream: int, factor: Factor, place: int, part: int) -> np.random.Generator:
    """Generator of one place: no two share numbers, and none depends on who draws first."""
    key = np.array([seed, stream], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, factor, place, part]))


def draw_placement(
    rng: np.random.Generator, walk: Sequence[int], num_layers: int, imbalance: float
) -> Placement:
    """Split layers over stages on the domains of a walk.

    With ``imbalance`` 0 the split is as even as can be; with 1 every split that gives each stage
    a layer is as likely as another; between them it is their weighted mean.
    """
    num_stages = len(walk)
    random_shares = rng.dirichlet(np.ones(num_stages))
    shares = (1.0 - imbalance) / num_stages + imbalance * random_shares
    exact = shares * (num_layers - num_stages)
    counts = np.floor(exact).astype(int)
    rest = num_layers - num_stages - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:rest]] += 1
    return Placement.contiguous(walk, (counts + 1).tolist())


def draw_walk(rng: np.random.Generator, domains: Sequence[int], num_stages: int) -> list[int]:
    """Visit all given domains, in that order to begin with, and come back to some.

    Each further stage goes between two others at random, or to an end, on a domain that neither
    neighbour has.
    """
    walk = list(domains)
    while len(walk) < num_stages:
        at = int(rng.integers(len(walk) + 1))
        others = [domain for domain in domains if domain not in walk[max(at - 1, 0) : at + 1]]
        if others:
            walk.insert(at, others[int(rng.integers(len(others)))])
    return walk
