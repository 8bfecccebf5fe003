"""Nodes of a real cluster: their stored state, and their last contact."""

from typing import Literal

from des.cluster.node_set import ClusterPlace
from scenarios.cluster.messages import ClusterMessage, NodeReport

Presence = Literal["up", "leaving", "lost", "gone"]
"""Whether it reports, waits for its jobs to leave, has lost its lease, or has left in order."""


class NodeState(ClusterMessage):
    """A node from its first report on. One that is drained takes no more jobs."""

    name: str
    incarnation: str
    num_gpus: int
    address: str
    gpu_type: str = ""
    domain: str = ""
    rack: str = ""
    presence: Presence = "up"
    is_drained: bool = False

    @property
    def takes_jobs(self) -> bool:
        """Whether jobs may be put there."""
        return self.presence == "up" and not self.is_drained

    @property
    def is_there(self) -> bool:
        """Whether it reports, or should."""
        return self.presence in ("up", "leaving")

    def place(self) -> ClusterPlace:
        """Node as policies see it: without a rack it is one of its own."""
        return ClusterPlace(
            name=self.name,
            num_gpus=self.num_gpus,
            domain=self.domain or "none",
            gpu_type=self.gpu_type,
            units=(("rack", self.rack or self.name),),
        )


class Contact:
    """Last sign of life of a node, on the clock of this process, and its last report's number."""

    __slots__ = ("at_s", "free_ports", "number")

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s
        self.number = -1
        self.free_ports: list[int] = []


def node_of(report: NodeReport, before: NodeState | None) -> NodeState:
    """Node as its first report describes it; the request to drain it stays."""
    return NodeState(
        name=report.node,
        incarnation=report.incarnation,
        num_gpus=report.num_gpus,
        address=report.address,
        gpu_type=report.gpu_type,
        domain=report.domain,
        rack=report.rack,
        is_drained=before is not None and before.is_drained,
    )
