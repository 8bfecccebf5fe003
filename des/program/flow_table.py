"""Flows of a program as they are found, and the channels that they share."""

from des.program.program import NONE, Channel, MessageFlow
from des.schedules import Border

NO_BORDER = Border()
"""Of messages over links, whose time is not known before."""


class FlowTable:
    """Flows in order, and each of their channels once."""

    def __init__(self) -> None:
        self.flows: list[MessageFlow] = []
        self._channels: dict[Channel, int] = {}
        self._wires: dict[tuple[int, int], int] = {}

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Channels by number."""
        return tuple(self._channels)

    def over_links(self, route: tuple[int, ...]) -> int:
        """Return the channel of a route."""
        return self._number(Channel(route=route))

    def inside(self, sender: int, receiver: int) -> int:
        """Return the channel between devices of a domain, or within one."""
        wire = NONE
        if sender != receiver:
            wire = self._wires.setdefault((sender, receiver), len(self._wires))
        return self._number(Channel(wire=wire))

    def _number(self, channel: Channel) -> int:
        return self._channels.setdefault(channel, len(self._channels))
