"""Interface of a network to the layers above."""

from collections.abc import Callable
from typing import Any, Protocol


class AnalyticalNetwork(Protocol):
    """Carries messages between NPUs; what it costs them is the model's affair."""

    def send(
        self,
        source: int,
        target: int,
        num_bytes: int,
        deliver: Callable[[Any], None],
        message: Any,
    ) -> None:
        """Start a transfer now; on arrival the event queue calls ``deliver(message)``.

        Raises
        ------
        AbortError
            If there is no NPU ``target``, or a message to itself has no link to travel.
        UsageError
            If a message to itself is sent over several dimensions of the unaware network.
        """
        ...
