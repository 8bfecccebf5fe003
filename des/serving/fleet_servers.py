"""Servers of fleets: instances are packed on them, and several fleets may share them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from des.base.checks import require_count
from des.serving.fleet_members import FleetMember

STANDARD_SKU = "standard"


class NoRoomError(ValueError):
    """No server has room for a new instance."""


@dataclass(slots=True, eq=False)
class FleetServer:
    """One server, and the instances packed on it."""

    number: int
    sku: str
    num_gpus: int
    instances: list[FleetMember] = field(default_factory=list)

    @property
    def free_gpus(self) -> int:
        """GPUs that no instance has."""
        return self.num_gpus - sum(one.engine.num_gpus for one in self.instances)


@dataclass(slots=True, eq=False, kw_only=True)
class Servers:
    """Servers with instances; a new one is taken where none has room, up to ``max_servers``.

    Without ``is_packed`` each instance has a server of its own.
    """

    server_gpus: Mapping[str, int] = field(default_factory=lambda: {STANDARD_SKU: 8})
    """GPUs of a server of each kind."""
    max_servers: int | None = None
    """Servers at most (None: no bound)."""
    is_packed: bool = True
    servers: list[FleetServer] = field(default_factory=list)
    _num_servers: int = 0

    def __post_init__(self) -> None:
        if self.max_servers is not None:
            require_count("servers", "max_servers", self.max_servers)

    def take(self, sku: str, num_gpus: int) -> FleetServer:
        """Find the first server with room for that many GPUs, or take a new one.

        Raises
        ------
        ValueError
            If no server of the kind is large enough; a `NoRoomError` if none is left.
        """
        if num_gpus > self.server_gpus.get(sku, 0):
            raise ValueError(
                f"scale up: server_sku must have at least {num_gpus} GPUs, one of "
                f"{dict(self.server_gpus)}, got {sku!r}"
            )
        for server in self.servers:
            if self.is_packed and server.sku == sku and server.free_gpus >= num_gpus:
                return server
        if self.max_servers is not None and len(self.servers) >= self.max_servers:
            raise NoRoomError(
                f"scale up: instances must fit on {self.max_servers} servers, which have no "
                f"{num_gpus} free GPUs on one of them"
            )
        server = FleetServer(number=self._num_servers, sku=sku, num_gpus=self.server_gpus[sku])
        self._num_servers += 1
        self.servers.append(server)
        return server

    def give_back(self, instance: FleetMember) -> list[int]:
        """Free the GPUs of an instance; numbers of servers given back, without instances now."""
        for server in self.servers:
            if instance in server.instances:
                server.instances.remove(instance)
        empty = [server.number for server in self.servers if not server.instances]
        self.servers = [server for server in self.servers if server.instances]
        return empty

    def of(self, instance: FleetMember) -> FleetServer:
        """Find the server of an instance that has its GPUs."""
        return next(server for server in self.servers if instance in server.instances)

    def num_with(self, instances: Sequence[FleetMember]) -> int:
        """Number of servers that have any of these instances."""
        own = set(map(id, instances))
        return sum(any(id(one) in own for one in server.instances) for server in self.servers)

    def rooms(self) -> list[int]:
        """Free GPUs of each standard server; those that are not taken yet included."""
        rooms = [server.free_gpus for server in self.servers if server.sku == STANDARD_SKU]
        left = 0 if self.max_servers is None else self.max_servers - len(self.servers)
        return rooms + [self.server_gpus[STANDARD_SKU]] * left
