"""The execution traces of all NPUs of a case."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from astra_sim.files.execution_trace import NodeType, Trace, TraceNode


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSet:
    """Traces of all NPUs, rank by rank, and the ranks of each communicator group, in ring order.

    ``npus_per_domain`` ranks in a row belong to one domain.
    """

    traces: tuple[Trace, ...] = field(repr=False)
    groups: Mapping[int, tuple[int, ...]]
    npus_per_domain: int

    @property
    def bytes_between_domains(self) -> int:
        """Bytes of all messages from one domain to another, those of ring all-reduces included."""
        return sum(
            self._bytes_out(rank, node)
            for rank, trace in enumerate(self.traces)
            for node in trace.nodes
        )

    def _bytes_out(self, rank: int, node: TraceNode) -> int:
        """Bytes that an NPU sends to other domains for one of its nodes."""
        if node.type == NodeType.COMM_SEND:
            target, num_bytes = node.unsigned32("comm_dst"), node.unsigned64("comm_size")
        elif node.type == NodeType.COMM_COLL and "pg_name" in node.attributes:
            members = self.groups[int(node.text("pg_name"))]
            target = members[(members.index(rank) + 1) % len(members)]
            steps = 2 * (len(members) - 1)  # of an all-reduce: no other sum leaves a domain
            num_bytes = steps * (node.unsigned64("comm_size") // len(members))
        else:
            return 0
        return num_bytes if target // self.npus_per_domain != rank // self.npus_per_domain else 0
