"""A program in the making: flows, and each channel and each list of operations once."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from des.program.actions import NONE
from des.program.program import Channel, MessageFlow, OperationList, Program
from des.world.topology import Topology


def share_lists(operations: Iterable[Sequence[tuple[int, int, int]]]) -> list[OperationList]:
    """Make lists of operations; those that are alike are one."""
    arrays = [np.array(each, np.int32).reshape(-1, 3) for each in operations]
    found: dict[bytes, OperationList] = {}
    return [found.setdefault(each.tobytes(), OperationList(each)) for each in arrays]


class ProgramDraft:
    """Parts found on the way to a program for a world, numbered in the order of finding."""

    def __init__(self, topology: Topology, lists: Sequence[OperationList] = ()) -> None:
        self.flows: list[MessageFlow] = []
        self._topology = topology
        self._lists = {each: number for number, each in enumerate(lists)}
        self._channels: dict[Channel, int] = {}
        self._wires: dict[tuple[int, int], int] = {}

    def list_number(self, operations: OperationList) -> int:
        """Return the number of a list."""
        return self._lists.setdefault(operations, len(self._lists))

    def over_links(self, source: int, target: int) -> int:
        """Return the channel between two domains.

        Raises
        ------
        UnreachableError
            If no path joins them.
        """
        return self._number(Channel(route=self._topology.route(source, target)))

    def inside(self, sender: int, receiver: int) -> int:
        """Return the channel between devices of a domain, or within one."""
        wire = NONE
        if sender != receiver:
            wire = self._wires.setdefault((sender, receiver), len(self._wires))
        return self._number(Channel(wire=wire))

    def _number(self, channel: Channel) -> int:
        return self._channels.setdefault(channel, len(self._channels))

    def program(self, **parts: Any) -> Program:
        """Return the program of what was found and of other parts."""
        return Program(
            operations=tuple(self._lists),
            channels=tuple(self._channels),
            flows=tuple(self.flows),
            has_queues=self._topology.transport.sharing != "none",
            links=tuple(self._topology.link_index),
            **parts,
        )
