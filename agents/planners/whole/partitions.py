"""Partitions of domains into groups: all of them for a few domains, by clusters for many."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

MOST_DOMAINS_FOR_ALL = 7
"""Most domains of which all partitions of all subsets are looked at: 4,139 of 7."""

Group = frozenset[int]
"""Domains that train one copy of the model."""

Partition = tuple[Group, ...]
"""Groups that share no domain, by their earliest ones; domains in none stay idle."""


def partition_of(groups: Iterable[Group]) -> Partition:
    """Return groups as a partition, the empty ones left out."""
    return tuple(sorted((group for group in groups if group), key=min))


@lru_cache(maxsize=8)
def all_partitions(num_domains: int) -> tuple[Partition, ...]:
    """Return all partitions of all subsets of domains, but for the empty one.

    Examples
    --------
    >>> [[sorted(group) for group in one] for one in all_partitions(2)]
    [[[1]], [[0]], [[0, 1]], [[0], [1]]]
    """
    found = [groups for groups in _grown((), 0, num_domains) if groups]
    return tuple(sorted(found, key=lambda one: (len(one), sum(map(len, one)))))


def _grown(groups: Partition, domain: int, num_domains: int) -> Iterator[Partition]:
    if domain == num_domains:
        yield groups
        return
    yield from _grown(groups, domain + 1, num_domains)
    for place, group in enumerate(groups):
        yield from _grown(
            (*groups[:place], group | {domain}, *groups[place + 1 :]), domain + 1, num_domains
        )
    yield from _grown((*groups, frozenset({domain})), domain + 1, num_domains)


def clustered(bandwidth: np.ndarray, rates: Sequence[float]) -> list[Partition]:
    """Partitions from merging the two groups with the best mean bandwidth between them, step by
    step; and the same over the fastest domains alone, half of them, a quarter and so on.

    Parameters
    ----------
    bandwidth
        Between every two domains, (K, K). [bytes/s]
    rates
        Speed of each domain.
    """
    by_rate = sorted(range(len(rates)), key=lambda domain: -rates[domain])
    found: dict[Partition, None] = {}
    size = len(by_rate)
    while size >= 1:
        for one in _merged(bandwidth, sorted(by_rate[:size])):
            found[one] = None
        size //= 2
    return list(found)


def _merged(bandwidth: np.ndarray, members: Sequence[int]) -> Iterator[Partition]:
    """Partitions of some domains, from each alone to all together."""
    groups = [frozenset({domain}) for domain in members]
    between = bandwidth[np.ix_(members, members)].astype(float)
    np.fill_diagonal(between, -1.0)
    sizes = np.ones(len(groups))
    yield partition_of(groups)
    while len(groups) > 1:
        one, other = divmod(int(between.argmax()), len(groups))
        one, other = min(one, other), max(one, other)
        weights = sizes[one] + sizes[other]
        joint = (sizes[one] * between[one] + sizes[other] * between[other]) / weights
        between[one], between[:, one] = joint, joint
        between[one, one] = -1.0
        between = np.delete(np.delete(between, other, axis=0), other, axis=1)
        groups[one] = groups[one] | groups[other]
        sizes[one] = weights
        del groups[other]
        sizes = np.delete(sizes, other)
        yield partition_of(groups)


def cut_chain(chain: Sequence[int], rates: Sequence[float]) -> list[Partition]:
    """Partitions from cutting a chain of domains into 2, 3 and more groups of about equal speed,
    down to two domains a group.

    Parameters
    ----------
    rates
        Speed of each domain.

    Examples
    --------
    >>> [[sorted(group) for group in one] for one in cut_chain((0, 3, 1, 2), (1.0, 1.0, 1.0, 1.0))]
    [[[0, 3], [1, 2]]]
    """
    own = np.array([rates[domain] for domain in chain])
    before = np.cumsum(own)
    middles = before - own / 2.0
    found: dict[Partition, None] = {}
    for count in range(2, len(chain) // 2 + 1):
        of_domain = np.minimum(count - 1, (middles * count / before[-1]).astype(int))
        ends = np.searchsorted(of_domain, np.arange(count), side="right").tolist()
        groups = [frozenset(chain[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
        found[partition_of(groups)] = None
    return list(found)


def partitions_near(partition: Partition, num_domains: int) -> list[Partition]:
    """Partitions one change away: a domain goes to another group, alone, or out; an idle one comes
    in; two groups become one."""
    found: dict[Partition, None] = {}
    idle = set(range(num_domains)).difference(*partition)
    whole = [(min(group), group) for group in partition]
    for place, group in enumerate(partition):
        others = [*whole[:place], *whole[place + 1 :]]
        for domain in sorted(group):
            rest = group - {domain}
            own = [(min(rest), rest)] if rest else []
            found[_in_order([*others, *own])] = None
            if rest:
                found[_in_order([*others, *own, (domain, frozenset({domain}))])] = None
            for target, taker in enumerate(others):
                found[_in_order([*_grown_at(others, target, taker, domain), *own])] = None
        for target in range(place, len(others)):
            kept = [*others[:target], *others[target + 1 :]]
            joint = group | others[target][1]
            found[_in_order([*kept, (min(joint), joint)])] = None
    for domain in sorted(idle):
        found[_in_order([*whole, (domain, frozenset({domain}))])] = None
        for place, taker in enumerate(whole):
            found[_in_order(_grown_at(whole, place, taker, domain))] = None
    found.pop(partition, None)
    found.pop((), None)
    return list(found)


_Placed = tuple[int, Group]
"""Earliest domain of a group, and the group."""


def _grown_at(groups: Sequence[_Placed], place: int, own: _Placed, domain: int) -> list[_Placed]:
    """Groups of which one has a domain more."""
    grown = (min(own[0], domain), own[1] | {domain})
    return [*groups[:place], grown, *groups[place + 1 :]]


def _in_order(groups: list[_Placed]) -> Partition:
    """Groups by their earliest domains, which all differ."""
    groups.sort()
    return tuple([group for _, group in groups])
