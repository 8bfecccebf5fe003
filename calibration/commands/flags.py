"""Flags that several commands have, and checks of their values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from calibration.cases.case import Granularity
from des import Topology, read_topology
from des.base.checks import MOST_ITEMS, require_count
from des.base.flags import JsonFlag, option
from des.world.packet_transport import Congestion, Connections
from des.worlds import EAST_CENTRAL_WEST

DEFAULT_STORE = Path("runs/calibration.sqlite")
DEFAULT_MODEL = "llama2_70b"

Endpoints = Literal["overlapped", "one_in_flight"]
"""Rules of senders that an execution trace can follow."""

ENDPOINTS_HELP = (
    "overrule transport.endpoints of the network; the original's programs, which have one "
    "communication slot per NPU, need one_in_flight"
)


def require_counts(owner: str, field: str, values: Sequence[int]) -> None:
    """Refuse no numbers, and anything but counts."""
    if not values:
        raise ValueError(f"{owner}: {field} must have at least one number, got none")
    for value in values:
        require_count(owner, field, value, MOST_ITEMS)


def require_least_and_most(owner: str, field: str, values: Sequence[int]) -> None:
    """Refuse anything but two counts in order, or one for both."""
    require_counts(owner, field, values)
    if len(values) > 2 or values[0] > values[-1]:
        raise ValueError(
            f"{owner}: {field} must be LEAST,MOST, such as 8,64, or one number for both; "
            f"got {','.join(map(str, values))}"
        )


def require_names(owner: str, field: str, values: Sequence[str]) -> None:
    """Refuse no names."""
    if not values:
        raise ValueError(f"{owner}: {field} must have at least one name, got none")


def require_whole_number(owner: str, field: str, value: int) -> None:
    """Refuse anything but counts and 0."""
    if value != 0:
        require_count(owner, field, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldFlags(JsonFlag):
    """Settings of the network: its file, its endpoints, the granularity."""

    network: str = option(EAST_CENTRAL_WEST.stem, "topology file, or a shipped world", is_file=True)
    endpoints: Endpoints | None = option(
        None, f"{ENDPOINTS_HELP}, which export writes by default; none: as the network has it"
    )
    transport: Congestion | None = option(
        None, "congestion control of TCP for the backend ns3; none: as the network has it"
    )
    connections: Connections | None = option(
        None,
        "one open connection for each pair of domains, or a fresh one for each message, for the "
        "backend ns3; none: as the network has it",
    )
    granularity: Granularity = option("domain", "one NPU per domain, or one per GPU")

    def read_topology(self) -> Topology:
        """Read the network, with the transport of the flags."""
        topology = read_topology(self.network)
        transport = topology.transport
        packets = replace(
            transport.packets,
            congestion=self.transport or transport.packets.congestion,
            connections=self.connections or transport.packets.connections,
        )
        endpoints = self.endpoints or transport.endpoints
        transport = replace(transport, endpoints=endpoints, packets=packets)
        return (
            topology if transport == topology.transport else replace(topology, transport=transport)
        )
