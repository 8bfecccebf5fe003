"""Interface of a network to the layers above."""

from typing import Protocol

from astra_sim.core.events import Event
from astra_sim.network.links import NetworkLink


class AnalyticalNetwork(Protocol):
    """Carries messages between NPUs; what it costs them is the model's affair."""

    def steady_delay_ns(self, source: int, target: int, num_bytes: int) -> int | None:
        """Time that such a message takes whenever it starts; None if that depends."""
        ...

    def links(self, source: int, target: int) -> tuple[NetworkLink, ...]:
        """Links on which messages between two NPUs queue, in the order of their way."""
        ...

    def send(
        self,
        source: int,
        target: int,
        num_bytes: int,
        arrival: Event,
    ) -> None:
        """Start a transfer now; ``arrival`` is the event at its end, changeable until then.

        Raises
        ------
        AbortError
            If there is no NPU ``target``, or a message to itself has no link to travel.
        UsageError
            If a message to itself is sent over several dimensions of the unaware network.
        """
        ...
