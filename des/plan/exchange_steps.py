"""Steps of an exchange between replicas: which messages each member sends and waits for."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class Step(NamedTuple):
    """Sending of a message to another member of an exchange, or waiting for one.

    Messages count from 0: by receiver, then in the order in which it waits for them.
    """

    is_sent: bool
    other: int
    message: int


Steps = tuple[tuple[Step, ...], ...]
"""Steps of each member, one after the other."""


@lru_cache(maxsize=1024)
def exchange_steps(tree: tuple[int, ...], num_members: int, *, is_half: bool = False) -> Steps:
    """Return the steps of all members of an all-reduce, or of half of one.

    Without a tree each sends a part to the next and waits for one of the member before,
    ``2 (R - 1)`` times; half of it, ``R - 1`` times, is a reduce-scatter or an all-gather. In a
    tree, which has no halves, each adds the sums of those below to its own, sends them up,
    waits for the whole sum and sends it down.

    Parameters
    ----------
    tree
        The member above each but the first, see `des.GradientExchange`.

    Examples
    --------
    >>> for own in exchange_steps((0, 0), 3):
    ...     print(*(f"{'to' if one.is_sent else 'from'} {one.other}" for one in own), sep=", ")
    from 1, from 2, to 1, to 2
    to 0, from 0
    to 0, from 0
    """
    if tree:
        return _tree_steps(tree)
    return _ring_steps(num_members, (1 if is_half else 2) * (num_members - 1))


def num_parts(tree: tuple[int, ...], num_members: int) -> int:
    """Parts into which a bucket is divided, of which every message holds one."""
    return 1 if tree else num_members


def num_messages(steps: Steps) -> int:
    """Messages of all members."""
    return sum(one.is_sent for own in steps for one in own)


def _ring_steps(num_members: int, num_rounds: int) -> Steps:
    found = []
    for member in range(num_members):
        after, before = (member + 1) % num_members, (member - 1) % num_members
        own: list[Step] = []
        for number in range(num_rounds):
            own.append(Step(True, after, after * num_rounds + number))
            own.append(Step(False, before, member * num_rounds + number))
        found.append(tuple(own))
    return tuple(found)


def _tree_steps(parents: Sequence[int]) -> Steps:
    above = (-1, *parents)
    members = range(len(above))
    below = [[each for each in members if above[each] == member] for member in members]
    number: dict[tuple[int, int], int] = {}
    for member, parent in enumerate(above):
        for sender in (*below[member], *([parent] if member else ())):
            number[sender, member] = len(number)
    found = []
    for member, parent in enumerate(above):
        own = [Step(False, each, number[each, member]) for each in below[member]]
        if member:
            own.append(Step(True, parent, number[member, parent]))
            own.append(Step(False, parent, number[parent, member]))
        own += [Step(True, each, number[member, each]) for each in below[member]]
        found.append(tuple(own))
    return tuple(found)
