"""Region of the calibrated placements: least and largest figures that describe them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

from des.plan.placement import Placement

_Figure = TypeVar("_Figure", int, float)

Choices = tuple[tuple[Placement, int], ...]
"""Placements that a policy chooses, each once, with how often it did; most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A box around placements, each side from the least to the most.

    Parameters
    ----------
    num_domains
        Domains in use.
    num_stages
        Runs of layers on one domain, one more than there are crossings.
    largest_fraction
        Of all layers, those of the largest stage.
    """

    num_domains: tuple[int, int]
    num_stages: tuple[int, int]
    largest_fraction: tuple[float, float]

    @classmethod
    def around(cls, placements: Iterable[Placement]) -> Self:
        """Make the least region that holds some placements, at least one."""
        figures = [_figures(placement) for placement in placements]
        domains, stages, fractions = ((min(each), max(each)) for each in zip(*figures, strict=True))
        return cls(num_domains=domains, num_stages=stages, largest_fraction=fractions)

    def joined(self, other: "Region") -> "Region":
        """Return the least region around both."""
        return Region(
            num_domains=_around(self.num_domains, other.num_domains),
            num_stages=_around(self.num_stages, other.num_stages),
            largest_fraction=_around(self.largest_fraction, other.largest_fraction),
        )

    def holds(self, placement: Placement) -> bool:
        """Whether a placement is as those that have been calibrated on."""
        sides = (self.num_domains, self.num_stages, self.largest_fraction)
        pairs = zip(sides, _figures(placement), strict=True)
        return all(least <= figure <= most for (least, most), figure in pairs)

    def outside_fraction(self, choices: Choices) -> float:
        """Part of a policy's choices that are not within.

        Examples
        --------
        >>> even, one = Placement.even(2, 4), Placement(domain_of_layer=(0, 0, 0, 0))
        >>> Region.around([even]).outside_fraction(((even, 3), (one, 1)))
        0.25
        """
        outside = sum(count for placement, count in choices if not self.holds(placement))
        return outside / sum(count for _, count in choices)


def _figures(placement: Placement) -> tuple[int, int, float]:
    stages = placement.stages
    most_layers = max(stage.num_layers for stage in stages)
    used = {stage.domain for stage in stages}
    return len(used), len(stages), most_layers / len(placement.domain_of_layer)


def _around(
    one: tuple[_Figure, _Figure], other: tuple[_Figure, _Figure]
) -> tuple[_Figure, _Figure]:
    return min(one[0], other[0]), max(one[1], other[1])
