"""Lists of operations of the members of exchanges of gradients."""

from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from des.plan.exchange_steps import exchange_steps
from des.program.actions import REDUCE, SEND, WAIT
from des.program.draft import share_lists
from des.program.program import OperationList


class ExchangeScript(NamedTuple):
    """Lists of the members of an exchange, and their flows, by receiver.

    ``flows`` are (sender, receiver, number of messages); ``ports`` are those of each member.
    """

    flows: tuple[tuple[int, int, int], ...]
    lists: tuple[OperationList, ...]
    ports: tuple[tuple[int, ...], ...]


INSIDE = ExchangeScript((), tuple(share_lists([()])), ((),))
"""Exchange that stays in one device."""


@lru_cache(maxsize=1024)
def exchange_script(tree: tuple[int, ...], num_members: int, *, is_half: bool) -> ExchangeScript:
    """Lists of all members, from `exchange_steps`; its messages become items of flows."""
    steps = exchange_steps(tree, num_members, is_half=is_half)
    flows: list[tuple[int, int, int]] = []
    place_of: list[tuple[int, int]] = []  # flow and item of each message
    for receiver, own in enumerate(steps):
        for sender, waits in groupby(step.other for step in own if not step.is_sent):
            count = len(list(waits))
            place_of += ((len(flows), item) for item in range(count))
            flows.append((sender, receiver, count))
    lists, ports = [], []
    for own in steps:
        numbers: dict[int, int] = {}
        found = []
        for step in own:
            flow, item = place_of[step.message]
            port = numbers.setdefault(flow, len(numbers))
            found.append((SEND if step.is_sent else WAIT, port, item))
        lists.append(found)
        ports.append(tuple(numbers))
    return ExchangeScript(tuple(flows), tuple(share_lists(lists)), tuple(ports))


@lru_cache(maxsize=1024)
def with_reduces(operations: OperationList, num_before: int, num_after: int) -> OperationList:
    """Put halves of an all-reduce inside the device before the steps of a member, and behind."""
    before, after = ([(REDUCE, 0, 0)] * count for count in (num_before, num_after))
    return share_lists([[*before, *map(tuple, operations.rows.tolist()), *after]])[0]
