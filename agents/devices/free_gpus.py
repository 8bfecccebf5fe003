"""Servers with the GPUs that other jobs have not taken."""

from dataclasses import dataclass

from agents.devices.goodness import places_of
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeGpus:
    """A server of a name with the numbers of its GPUs that others have not taken.

    ``levels`` are the parts of the network that it is in, the widest first, such as zone and rack;
    servers with the same ones are closer.
    """

    name: str
    server: Server
    numbers: tuple[int, ...]
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        places_of(self.server, f"free GPUs of {self.name}", self.numbers)

    @property
    def places(self) -> tuple[int, ...]:
        """Places of the free GPUs in the server."""
        return places_of(self.server, f"free GPUs of {self.name}", self.numbers)
