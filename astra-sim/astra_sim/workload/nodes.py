"""Issue of nodes, by type."""

from collections import defaultdict
from collections.abc import Callable

from astra_sim.files.comm_groups import LEADING_INTEGER
from astra_sim.files.errors import AbortError, NodeError
from astra_sim.files.execution_trace import (
    NUM_UNSIGNED_32,
    NUM_UNSIGNED_64,
    CollectiveType,
    NodeType,
    TraceNode,
)
from astra_sim.files.system_config import SystemConfig
from astra_sim.system.collectives import CHUNK_TAG_OFFSET, WORLD, Collective, Collectives
from astra_sim.system.npu import Npu
from astra_sim.system.remote_memory import RemoteMemory
from astra_sim.workload.rank import Rank
from astra_sim.workload.statistics import roofline_ns

IDLE_NS = 1
"""Time of a node of duration 0."""

DEFAULT_INVOLVED = (True,) * 4

_SEND = int(NodeType.COMM_SEND)

COLLECTIVES: dict[int, CollectiveType] = {
    int(kind): kind
    for kind in (
        CollectiveType.ALL_REDUCE,
        CollectiveType.ALL_GATHER,
        CollectiveType.ALL_TO_ALL,
        CollectiveType.REDUCE_SCATTER,
    )
}
"""Kinds that are run, by the number that stands for them in traces."""


class NodeIssuer:
    """Issues nodes to the system that runs them; their ranks are notified of the end.

    ``handlers`` maps the type of a node to the function that starts one that holds its slot. It
    raises ``NodeError`` if an attribute is missing or of a wrong type, or the node cannot be run,
    and ``AstraSimError`` if its group, the memory or a way of the network is missing.
    """

    __slots__ = ("_collectives", "_memory", "_npus", "_system", "handlers")

    def __init__(
        self,
        npus: tuple[Npu, ...],
        system: SystemConfig,
        collectives: Collectives,
        memory: RemoteMemory,
    ) -> None:
        self._npus = npus
        self._system = system
        self._collectives = collectives
        self._memory = memory
        self.handlers: defaultdict[int, Callable[[Rank, TraceNode], None]]
        if system.replay_only:
            self.handlers = defaultdict(lambda: self._replay)
            return
        self.handlers = defaultdict(
            lambda: _refuse_type,
            {
                NodeType.INVALID: Rank.retire,
                NodeType.MEM_LOAD: self._access,
                NodeType.MEM_STORE: self._access,
                NodeType.COMP: self._compute,
                NodeType.COMM_SEND: self._send,
                NodeType.COMM_RECV: self._receive,
                NodeType.COMM_COLL: self._join,
            },
        )

    def _replay(self, rank: Rank, node: TraceNode) -> None:
        self._wait(rank, node, counts=not node.is_cpu)

    def _access(self, rank: Rank, node: TraceNode) -> None:
        timers = self._npus[rank.rank].timers
        num_bytes = node.unsigned64("tensor_size")
        self._memory.request(rank.rank, timers, num_bytes, rank.complete, node)

    def _wait(self, rank: Rank, node: TraceNode, *, counts: bool) -> None:
        duration_ns = node.duration_ns or IDLE_NS
        if counts:
            rank.computing_ns += duration_ns
        self._npus[rank.rank].timers.after(duration_ns, rank.complete, node)

    def _compute(self, rank: Rank, node: TraceNode) -> None:
        duration_ns = node.duration_ns or IDLE_NS
        if not node.is_cpu:
            if self._system.roofline_enabled:
                bound_ns = roofline_ns(node, self._system)
                if bound_ns is None:
                    rank.retire(node)
                    return
                duration_ns = bound_ns
            rank.computing_ns += duration_ns
        self._npus[rank.rank].timers.after(duration_ns, rank.complete, node)

    def _send(self, rank: Rank, node: TraceNode) -> None:
        _require_off_cpu(rank, node)
        key = message_key(rank.rank, node)
        self._npus[rank.rank].messages.post_send(key, rank.complete, node)

    def _receive(self, rank: Rank, node: TraceNode) -> None:
        _require_off_cpu(rank, node)
        key = message_key(rank.rank, node)
        self._npus[rank.rank].messages.post_receive(key, rank.complete, node)

    def _join(self, rank: Rank, node: TraceNode) -> None:
        _require_off_cpu(rank, node)
        code = node.unsigned64("comm_type")
        num_bytes = node.unsigned64("comm_size")
        group = _group(rank, node)
        involved = node.flags("involved_dim", DEFAULT_INVOLVED)
        if code == CollectiveType.BROADCAST:
            self._wait(rank, node, counts=False)
            return
        kind = COLLECTIVES.get(code)
        if kind is None:
            allowed = ", ".join(known.name for known in COLLECTIVES.values())
            raise NodeError(
                f"rank {rank.rank}, node {node.id}: comm_type must be one of {allowed}, "
                f"BROADCAST, got {code}"
            )
        collective = Collective(kind, num_bytes, group, involved)
        self._collectives.start(self._npus[rank.rank], collective, rank.complete, node)


def _refuse_type(rank: Rank, node: TraceNode) -> None:
    raise AbortError(f"rank {rank.rank}, node {node.id}: no node has type {node.type}")


def message_key(rank: int, node: TraceNode) -> tuple[int, int, int, int]:
    """Tag, source, target and bytes of a send or receive node.

    Raises
    ------
    NodeError
        If an attribute is missing or its own end is not this rank.
    """
    sends = node.type == _SEND
    attributes = node.attributes
    tag = attributes.get("comm_tag")
    peer = attributes.get("comm_dst" if sends else "comm_src")
    num_bytes = attributes.get("comm_size")
    own = attributes.get("comm_src" if sends else "comm_dst", rank)
    if not (
        own == rank
        and type(own) is type(tag) is type(peer) is type(num_bytes) is int
        and 0 <= tag < CHUNK_TAG_OFFSET
        and 0 <= peer < NUM_UNSIGNED_32
        and 0 <= num_bytes < NUM_UNSIGNED_64
    ):
        return _read_key(rank, node, sends=sends)
    return (tag, rank, peer, num_bytes) if sends else (tag, peer, rank, num_bytes)


def _require_off_cpu(rank: Rank, node: TraceNode) -> None:
    if node.is_cpu:
        raise NodeError(
            f"rank {rank.rank}, node {node.id}: a message or collective must not be marked "
            "is_cpu_op"
        )


def _read_key(rank: int, node: TraceNode, *, sends: bool) -> tuple[int, int, int, int]:
    """Key of a node whose attributes are not all plain: absent, negative, large or of one bit."""
    source = node.unsigned32("comm_src", rank if sends else None)
    target = node.unsigned32("comm_dst", None if sends else rank)
    own, field = (source, "comm_src") if sends else (target, "comm_dst")
    if own != rank:
        raise NodeError(f"rank {rank}, node {node.id}: {field} must be its own rank, got {own}")
    return _tag(node), source, target, node.unsigned64("comm_size")


def _tag(node: TraceNode) -> int:
    """Tag of a message node, below those of collectives; the remainder has the tag's sign."""
    tag = node.signed32("comm_tag")
    return tag % CHUNK_TAG_OFFSET if tag >= 0 else -(-tag % CHUNK_TAG_OFFSET)


def _group(rank: Rank, node: TraceNode) -> int:
    """Communicator group of a collective: the integer that its name begins with; 0 if empty."""
    name = node.text("pg_name", "")
    if not name:
        return WORLD
    number = LEADING_INTEGER.match(name)
    if number is None:
        raise NodeError(
            f"rank {rank.rank}, node {node.id}: pg_name must begin with an integer, got {name!r}"
        )
    return int(number[0])
