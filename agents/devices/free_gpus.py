"""Servers with the GPUs that other jobs have not taken."""

from dataclasses import dataclass

from agents.devices.goodness import places_of
from des.devices.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeGpus:
    """A server of a name with the numbers of its GPUs that others have not taken."""

    name: str
    server: Server
    numbers: tuple[int, ...]

    def __post_init__(self) -> None:
        places_of(self.server, f"free GPUs of {self.name}", self.numbers)

    @property
    def places(self) -> tuple[int, ...]:
        """Places of the free GPUs in the server."""
        return places_of(self.server, f"free GPUs of {self.name}", self.numbers)
