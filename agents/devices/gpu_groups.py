"""Disjoint groups of GPUs of one size, such as tensor groups: exact up to 16 free GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from agents.devices.goodness import (
    SetScore,
    numbers_of,
    pair_figures,
    places_of,
    score_of_places,
)
from agents.devices.greedy_sets import greedy_places
from agents.devices.group_tables import group_sums, inner_keys
from agents.devices.set_tables import MOST_IN_SETS, set_maxima, set_members, set_sums
from des.base.checks import require_count
from des.devices.rings import NO_KEY, Whole, worst_groups
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGroups:
    """Disjoint groups of GPUs of a server.

    ``groups`` have the numbers of their GPUs, ``scores`` are theirs, each as if the other free GPUs
    were left; ``left`` are the free GPUs in no group.
    """

    server: str
    groups: tuple[tuple[int, ...], ...]
    scores: tuple[SetScore, ...]
    left: tuple[int, ...]
    is_exact: bool

    @property
    def worst(self) -> SetScore:
        """Score of the group that is worst by its own GPUs."""
        return min(self.scores, key=lambda score: score.inner_order)

    @property
    def nvlinks(self) -> int:
        """NVLinks inside all groups."""
        return sum(score.nvlinks for score in self.scores)


def optimal_groups(server: Server, size: int, free: Sequence[int] | None = None) -> GpuGroups:
    """Divide free GPUs into as many groups of a size as there can be.

    The worst group is as good as can be, by NVLinks, closeness and network cards inside it; among
    divisions with an equally good worst group the sum over the groups is greatest, part by part;
    among those the first in the order of the server.

    Parameters
    ----------
    size
        GPUs of a group.
    free
        Numbers of the GPUs that others have not taken (default: all).

    Raises
    ------
    ValueError
        If there are fewer free GPUs than a group has, or a number is of none.
    """
    require_count("groups", "size", size)
    places = places_of(server, "free", free)
    if size > len(places):
        raise ValueError(
            f"server {server.name}: size of groups must be at most its {len(places)} free GPUs, "
            f"got {size}"
        )
    is_exact = len(places) <= MOST_IN_SETS
    found = _exact(server, size, places) if is_exact else _greedy(server, size, places)
    grouped = {place for group in found for place in group}
    return GpuGroups(
        server=server.name,
        groups=tuple(numbers_of(server, group) for group in found),
        scores=tuple(score_of_places(server, group, places) for group in found),
        left=numbers_of(server, [place for place in places if place not in grouped]),
        is_exact=is_exact,
    )


def _exact(server: Server, size: int, places: Sequence[int]) -> list[tuple[int, ...]]:
    figures, free = pair_figures(server), np.array(places)
    sums = set_sums(figures.packed[np.ix_(free, free)], figures.packed_cards[free])
    keys = inner_keys(sums, set_maxima(figures.farness[np.ix_(free, free)]), size)
    num_grouped = len(free) // size * size
    whole = np.flatnonzero((sums & 0xFF) == num_grouped)
    least = int(worst_groups(keys, size)[whole].max())
    best = group_sums(keys, size, least)
    most = whole[best[whole] == best[whole].max()]
    groups = _first_groups(keys, best, int(most[-1]), least, size)
    return [set_members(places, group) for group in groups]


def _first_groups(keys: Whole, best: Whole, chosen: int, least: int, size: int) -> list[int]:
    """Groups that fill a set with the greatest sum, the first in order of the best ones."""
    found = []
    while chosen:
        members = [1 << bit for bit in range(chosen.bit_length() - 1, -1, -1) if chosen >> bit & 1]
        for others in combinations(members[1:], size - 1):
            group = members[0] + sum(others)
            rest = int(best[chosen ^ group])
            if keys[group] >= least and rest != NO_KEY and keys[group] + rest == best[chosen]:
                found.append(group)
                chosen ^= group
                break
    return found


def _greedy(server: Server, size: int, places: Sequence[int]) -> list[tuple[int, ...]]:
    """Take the best group that a greedy choice finds, then that of what is left, and so on."""
    left, found = list(places), []
    while len(left) >= size:
        found.append(tuple(sorted(greedy_places(server, size, left))))
        left = [place for place in left if place not in found[-1]]
    return sorted(found)
