"""Goodness of a set of GPUs of a server: NVLinks, closeness, network cards and what is left."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from agents.devices.set_tables import CARDS, DISTANCES, NVLINKS
from des.devices.closeness import RELATIONS, Relation, distance, num_nvlinks
from des.devices.rings import Whole
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class SetScore:
    """Goodness of some GPUs of a server among its free ones, in the order in which parts count.

    Distances are places in `des.devices.closeness.RELATIONS`: PIX 2, PXB 3, PHB 4, NODE 5, SYS 6.

    Attributes
    ----------
    nvlinks
        NVLinks inside the set; more is better.
    distances
        Sum over the pairs that no NVLink joins; less is better.
    farthest
        Relation of the farthest pair; X of a single GPU.
    card_distances
        Sum over the GPUs of the distance to the nearest network card; None without cards.
    left_nvlinks, left_distances, left_farthest
        The same of the free GPUs that are left to others.
    """

    nvlinks: int
    distances: int
    farthest: Relation
    card_distances: int | None
    left_nvlinks: int
    left_distances: int
    left_farthest: Relation

    @property
    def order(self) -> tuple[int, ...]:
        """Parts in their order, the greater the better."""
        return (
            *self.inner_order,
            *_signed(self.left_nvlinks, self.left_distances, self.left_farthest),
        )

    @property
    def inner_order(self) -> tuple[int, ...]:
        """Parts of the set itself, the greater the better."""
        return (
            *_signed(self.nvlinks, self.distances, self.farthest),
            -(self.card_distances or 0),
        )


def _signed(nvlinks: int, distances: int, farthest: Relation) -> tuple[int, int, int]:
    return nvlinks, -distances, -RELATIONS.index(farthest)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """Figures of a server's GPUs by their places in it.

    ``nvlinks`` and ``distances`` (n, n) are of pairs, a distance of 0 where NVLinks join them;
    ``farness`` has the distances of those, too. ``cards`` (n,) are distances to the nearest network
    card, 0 without cards. ``packed`` and ``packed_cards`` are those of `agents.devices.set_tables`.
    """

    nvlinks: Whole
    distances: Whole
    farness: Whole
    cards: Whole
    packed: Whole
    packed_cards: Whole


def pair_figures(server: Server) -> PairFigures:
    """Figures of a server's GPUs, made once for a matrix of tokens."""
    return _figures(server.tokens, server.num_gpus)


@lru_cache(maxsize=256)
def _figures(tokens: tuple[tuple[str, ...], ...], num_gpus: int) -> PairFigures:
    of_token = {token: (num_nvlinks(token), distance(token)) for row in tokens for token in row}
    both = np.array([[of_token[token] for token in row[:num_gpus]] for row in tokens[:num_gpus]])
    nvlinks, farness = both[:, :, 0].astype(np.int64), both[:, :, 1].astype(np.int64)
    distances = np.where(nvlinks > 0, 0, farness)
    cards = np.array(
        [
            min((of_token[token][1] for token in row[num_gpus:]), default=0)
            for row in tokens[:num_gpus]
        ],
        dtype=np.int64,
    )
    return PairFigures(
        nvlinks=nvlinks,
        distances=distances,
        farness=farness,
        cards=cards,
        packed=(nvlinks << NVLINKS) + (distances << DISTANCES),
        packed_cards=(cards << CARDS) + 1,
    )


def score_of_places(server: Server, chosen: Sequence[int], free: Sequence[int]) -> SetScore:
    """Score of some free GPUs, all given by their places in the server."""
    figures, taken = pair_figures(server), frozenset(chosen)
    nvlinks, distances, farthest = _inside(figures, chosen)
    left = _inside(figures, [gpu for gpu in free if gpu not in taken])
    return SetScore(
        nvlinks=nvlinks,
        distances=distances,
        farthest=farthest,
        card_distances=int(figures.cards[list(chosen)].sum()) if server.nics else None,
        left_nvlinks=left[0],
        left_distances=left[1],
        left_farthest=left[2],
    )


def _inside(figures: PairFigures, gpus: Sequence[int]) -> tuple[int, int, Relation]:
    """NVLinks, distances and farthest relation of the pairs of some GPUs."""
    nvlinks = distances = farthest = 0
    for one, other in combinations(gpus, 2):
        nvlinks += figures.nvlinks.item(one, other)
        distances += figures.distances.item(one, other)
        farthest = max(farthest, figures.farness.item(one, other))
    return nvlinks, distances, RELATIONS[farthest]


def places_of(server: Server, field: str, numbers: Sequence[int] | None) -> tuple[int, ...]:
    """Places of GPUs by their numbers, in the order of the server; None is all.

    Raises
    ------
    ValueError
        If a number is given twice, or is of no GPU of the server.
    """
    place_of = {gpu.number: place for place, gpu in enumerate(server.gpus)}
    if numbers is None:
        return tuple(range(server.num_gpus))
    known = ", ".join(map(str, place_of))
    for number in numbers:
        if number not in place_of:
            raise ValueError(
                f"server {server.name}: {field} must be numbers of its GPUs, {known}; got {number}"
            )
    if len(set(numbers)) < len(numbers):
        raise ValueError(
            f"server {server.name}: {field} must name each GPU once, got {list(numbers)}"
        )
    return tuple(sorted(place_of[number] for number in numbers))


def numbers_of(server: Server, places: Sequence[int]) -> tuple[int, ...]:
    """Numbers of the GPUs at some places."""
    return tuple(server.gpus[place].number for place in places)
