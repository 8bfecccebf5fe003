"""Chains: sites in the order in which a pipeline passes them."""

from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from typing import NamedTuple, Self

import numpy as np

Chain = tuple[int, ...]
"""Sites in the order of the model, each once."""

_MOST_NEAR = 4
"""Most chains of near sites of each length."""

MOST_ENUMERATED = 4
"""Most sites of which all chains are looked at."""


def all_chains(sites: Sequence[int]) -> list[Chain]:
    """All orders of all sets of sites, short ones first.

    Examples
    --------
    >>> all_chains([0, 1])
    [(0,), (1,), (0, 1), (1, 0)]
    """
    return [
        chain
        for count in range(1, len(sites) + 1)
        for chosen in combinations(sites, count)
        for chain in permutations(chosen)
    ]


def near_chains(sites: Sequence[int], away_s: np.ndarray, most: int) -> list[Chain]:
    """The few shortest of each length of `chains_from_all`, whose parameters these are."""
    return few_of_each_length(*_grow(sites, away_s, most))


def chains_from_all(sites: Sequence[int], away_s: np.ndarray, most: int) -> list[Chain]:
    """Chains that go on to the nearest site not yet passed, from every site.

    Parameters
    ----------
    away_s
        Time of a message from row to column and one back. [s]
    most
        Most sites of a chain.
    """
    return _grow(sites, away_s, most)[0]


def _grow(sites: Sequence[int], away_s: np.ndarray, most: int) -> tuple[list[Chain], list[float]]:
    """`chains_from_all`, and the sums of their ways; all starts go on at once."""
    among, starts = np.sort(sites), np.arange(len(sites))
    here = np.searchsorted(among, sites)
    is_left, is_over = np.ones((len(sites), len(sites)), np.bool_), np.zeros(len(sites), np.bool_)
    way_s, passed, ways_s = np.zeros(len(sites)), [among[here]], [np.zeros(len(sites))]
    lengths = np.ones(len(sites), np.int64)
    for _ in range(1, min(most, len(sites))):
        is_left[starts, here] = False
        next_s = np.where(is_left, away_s[np.ix_(among[here], among)], np.inf)
        here = next_s.argmin(axis=1)
        way_s = way_s + next_s[starts, here]
        is_over |= ~np.isfinite(way_s)
        lengths += ~is_over
        passed.append(among[here])
        ways_s.append(way_s)
    rows, costs_s = np.transpose(passed).tolist(), np.transpose(ways_s).tolist()
    every = [(at, size) for at, end in enumerate(lengths.tolist()) for size in range(1, end + 1)]
    return (
        [tuple(rows[at][:size]) for at, size in every],
        [costs_s[at][size - 1] for at, size in every],
    )


def few_of_each_length(chains: Sequence[Chain], costs: Sequence[float]) -> list[Chain]:
    """The few chains of each length that cost least; lengths grow by a quarter once they are long.

    Examples
    --------
    >>> few_of_each_length([(0, 1), (2,), (1, 0)], [2.0, 0.0, 1.0])
    [(2,), (1, 0), (0, 1)]
    """
    by_length: dict[int, list[tuple[float, Chain]]] = {}
    for chain, cost in zip(chains, costs, strict=True):
        by_length.setdefault(len(chain), []).append((cost, chain))
    return [
        chain
        for length in _lengths(max(by_length, default=0))
        for _, chain in sorted(by_length.get(length, []), key=lambda each: each[0])[:_MOST_NEAR]
    ]


def _lengths(most: int) -> list[int]:
    """Numbers of sites that chains are tried of."""
    lengths, length = [], 1
    while length <= most:
        lengths.append(length)
        length += max(1, length // 4)
    return lengths


def changed_chains(chain: Chain, sites: Iterable[int], most: int) -> list[Chain]:
    """Chains one step away: a site taken out, put in, exchanged or moved, or the chain reversed."""
    found: dict[Chain, None] = {}
    others = [site for site in sites if site not in chain]
    for at in range(len(chain)):
        rest = chain[:at] + chain[at + 1 :]
        if rest:
            found[rest] = None
        for to in range(len(rest) + 1):
            found[(*rest[:to], chain[at], *rest[to:])] = None
        for other in others:
            found[(*chain[:at], other, *chain[at + 1 :])] = None
    if len(chain) < most:
        for other in others:
            for at in range(len(chain) + 1):
                found[(*chain[:at], other, *chain[at:])] = None
    found[chain[::-1]] = None
    found.pop(chain, None)
    return list(found)


class SiteChains(NamedTuple):
    """Chains, also as rows of equal length with how many sites each has."""

    all: tuple[Chain, ...]
    rows: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, chains: Iterable[Chain]) -> Self:
        """Make the rows."""
        kept = tuple(chains)
        lengths = np.array([len(chain) for chain in kept], np.int64)
        rows = np.zeros((len(kept), int(lengths.max(initial=1))), np.int64)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = [site for own in kept for site in own]
        return cls(kept, rows, lengths)
