"""Changes of groups of domains by one step: what a look-ahead tries from a proposal."""

from collections.abc import Callable

import numpy as np

from agents.hi_ppo.plans.sketch_judge import Groups

_Lists = list[list[int]]


def changed_groups(
    groups: Groups, num_domains: int, most_groups: int, rng: np.random.Generator
) -> Groups:
    """Draw groups one change away, with at most ``most_groups``; the same where none is possible.

    A domain leaves, comes in, is replaced or moves, two change places, a stretch is turned round, a
    group is cut in two, or two become one.
    """
    lists = [list(group) for group in groups]
    _CHANGES[int(rng.integers(len(_CHANGES)))](lists, num_domains, rng)
    found = tuple(tuple(group) for group in lists if group)
    return found if 0 < len(found) <= most_groups else groups


def _idle(groups: _Lists, num_domains: int, rng: np.random.Generator) -> int | None:
    idle = sorted(set(range(num_domains)).difference(*groups))
    return idle[int(rng.integers(len(idle)))] if idle else None


def _place(groups: _Lists, rng: np.random.Generator) -> tuple[list[int], int]:
    """A group and a place in it; all domains are equally likely."""
    at = int(rng.integers(sum(map(len, groups))))
    for group in groups:
        if at < len(group):
            return group, at
        at -= len(group)
    raise AssertionError("places count the domains of all groups")


def _drop(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    group, at = _place(groups, rng)
    del group[at]


def _insert(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    domain = _idle(groups, num_domains, rng)
    if domain is not None:
        group, at = _place(groups, rng)
        group.insert(at + int(rng.integers(2)), domain)


def _replace(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    domain = _idle(groups, num_domains, rng)
    if domain is not None:
        group, at = _place(groups, rng)
        group[at] = domain


def _swap(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    (one, here), (other, there) = _place(groups, rng), _place(groups, rng)
    one[here], other[there] = other[there], one[here]


def _move(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    group, at = _place(groups, rng)
    domain = group.pop(at)
    if any(groups):
        target, place = _place(groups, rng)
        target.insert(place + int(rng.integers(2)), domain)


def _turn(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    group, _ = _place(groups, rng)
    begin, end = sorted(rng.integers(len(group) + 1, size=2).tolist())
    group[begin:end] = group[begin:end][::-1]


def _cut(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    group, at = _place(groups, rng)
    groups.append(group[at:])
    del group[at:]


def _merge(groups: _Lists, num_domains: int, rng: np.random.Generator) -> None:
    one, other = rng.integers(len(groups), size=2).tolist()
    if one != other:
        groups[one] += groups[other]
        groups[other] = []


_CHANGES: tuple[Callable[[_Lists, int, np.random.Generator], None], ...] = (
    _drop,
    _insert,
    _replace,
    _swap,
    _move,
    _turn,
    _cut,
    _merge,
)
