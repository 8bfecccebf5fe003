"""Servers of a fleet that are nodes of a training cluster, where its GPUs are claimed."""

from dataclasses import dataclass, field

from des.cluster.claims import ClaimedCluster
from des.cluster.live_job import LiveJob
from des.cluster.queued_job import QueuedJob
from des.serving.fleet_members import FleetMember
from des.serving.fleet_servers import STANDARD_SKU, FleetServer, NoRoomError, Servers

_ENDLESS_S = 1e9
"""Service of a claim: orderings by remaining time put it last."""


@dataclass(slots=True, eq=False, kw_only=True)
class ClusterServers(Servers):
    """Servers granted by a cluster: an instance holds GPUs of one node for its whole life.

    ``priority`` counts under the orderings of the cluster that use priorities.
    """

    cluster: ClaimedCluster
    owner: str
    num_gpus: int
    """GPUs of an instance."""
    priority: int = 0
    _claims: dict[int, list[LiveJob]] = field(default_factory=dict)

    def take(self, sku: str, num_gpus: int) -> FleetServer:
        """Claim GPUs on one node.

        Raises
        ------
        NoRoomError
            If the cluster refuses them.
        """
        claim = self.cluster.claim(self._wanted(num_gpus))
        if claim is None:
            raise NoRoomError(
                f"scale up {self.owner}: server_sku must have {num_gpus} free GPUs on a node, or "
                f"jobs there that give way, got none"
            )
        ((node, _),) = claim.allocation
        self._claims.setdefault(node, []).append(claim)
        for server in self.servers:
            if server.number == node:
                return server
        size = self.cluster.num_gpus_of(node)
        server = FleetServer(number=node, sku=STANDARD_SKU, num_gpus=size)
        self.servers.append(server)
        return server

    def give_back(self, instance: FleetMember) -> list[int]:
        """Release the GPUs of an instance."""
        for server in self.servers:
            if instance in server.instances:
                claims, num_gpus = self._claims[server.number], instance.engine.num_gpus
                claim = next(one for one in reversed(claims) if one.width == num_gpus)
                claims.remove(claim)
                self.cluster.release(claim)
        return Servers.give_back(self, instance)

    def rooms(self) -> list[int]:
        """Most GPUs of each node that the cluster could grant."""
        return self.cluster.rooms(self._wanted(self.num_gpus))

    def _wanted(self, num_gpus: int) -> QueuedJob:
        return QueuedJob(
            job_id=0,
            arrival_s=0.0,
            num_gpus=num_gpus,
            service_s=_ENDLESS_S,
            name=self.owner,
            tenant=self.owner,
            priority=self.priority,
            level="node",
            is_level_required=True,
        )
