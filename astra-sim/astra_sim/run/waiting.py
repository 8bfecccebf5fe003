"""Cause of a message that never arrived, from the state at the end of a run."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from astra_sim.files.errors import NodeError
from astra_sim.files.execution_trace import NodeType, Trace, TraceNode
from astra_sim.files.network_config import NetworkConfig
from astra_sim.files.system_config import SystemConfig
from astra_sim.system.collectives import CHUNK_TAG_OFFSET
from astra_sim.system.messages import Key
from astra_sim.workload.nodes import message_key
from astra_sim.workload.rank import Rank

_TYPE_NAMES = {kind.value: kind.name for kind in NodeType}
_MAX_LISTED = 5
_MAX_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """A rank after the last event."""

    rank: int
    finished: bool
    trace: Trace
    in_flight: Mapping[int, TraceNode]
    """Issued, but not completed, by id."""
    done: Collection[int]
    """Ids of completed nodes."""
    ready: Collection[int]
    """Ids of nodes that could be issued, but were not."""
    errors: Mapping[int, str] = field(default_factory=dict)
    """Errors that nodes raised when issued, by id; such a node keeps its slot for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run after its last event; the rank of ``ranks[i]`` is i."""

    ranks: Sequence[RankState]
    sends: Mapping[Key, Collection[object]]
    """Messages sent that no receive has been posted for."""
    receives: Mapping[Key, Collection[object]]
    """Receives posted that no message has been sent for."""
    network: NetworkConfig
    system: SystemConfig
    groups: Mapping[int, tuple[int, ...]]


def state_of(rank: Rank) -> RankState:
    """State of a rank after the last event."""
    return RankState(
        rank=rank.rank,
        finished=rank.finished,
        trace=rank.trace,
        in_flight={number: node for number, (node, _, _) in rank.in_flight.items()},
        done=frozenset(span.node.id for span in rank.spans),
        ready=rank.ready,
        errors=rank.errors,
    )


@dataclass(frozen=True, slots=True)
class _Pending:
    """A send or receive node that has not completed."""

    node: TraceNode
    tag: int
    num_bytes: int


class MessageWaits:
    """Explains the send and receive nodes of a run that have not completed."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._sends: defaultdict[tuple[int, int], list[_Pending]] = defaultdict(list)
        self._receives: defaultdict[tuple[int, int], list[_Pending]] = defaultdict(list)
        for state in run.ranks:
            for node in state.trace.nodes:
                if node.id not in state.done:
                    self._index(state.rank, node)

    def _index(self, rank: int, node: TraceNode) -> None:
        if node.type == NodeType.COMM_SEND:
            table = self._sends
        elif node.type == NodeType.COMM_RECV:
            table = self._receives
        else:
            return
        try:
            tag, source, target, num_bytes = message_key(rank, node)
        except NodeError:  # it would not run, and so is no counterpart
            return
        table[source, target].append(_Pending(node, tag, num_bytes))

    def explain_receive(self, rank: int, node: TraceNode) -> str:
        """Say what a receive waits for, and what its sender does instead of sending it."""
        tag, source, target, num_bytes = message_key(rank, node)
        waits = f"{label(node)} waits for {num_bytes} bytes with tag {tag} from rank {source}"
        if source >= len(self._run.ranks):
            return f"{waits}: there is no such rank"
        pending = self._sends[source, target]
        for sent in pending:
            if (sent.tag, sent.num_bytes) == (tag, num_bytes):
                return f"{waits}: {self._whereabouts(source, sent.node)}"
        others = [
            f"{size} bytes with tag {other} (sent, never received)"
            for other, sender, receiver, size in sorted(self._run.sends)
            if (sender, receiver) == (source, target) and other < CHUNK_TAG_OFFSET
        ]
        others += [
            f"{sent.num_bytes} bytes with tag {sent.tag} (node {sent.node.id})" for sent in pending
        ]
        instead = f"never sends that, but {listed(others)}" if others else "sends it nothing more"
        return f"{waits}: rank {source} {instead}"

    def explain_send(self, rank: int, node: TraceNode) -> str:
        """Say what a send with rendezvous waits for; others complete whatever the receiver does."""
        tag, source, target, _ = message_key(rank, node)
        waits = f"{label(node)} waits for rank {target} to post a receive with tag {tag}"
        pending = self._receives[source, target]
        for receive in pending:
            if receive.tag == tag:
                return f"{waits}: {self._whereabouts(target, receive.node)}"
        others = [f"tag {receive.tag} (node {receive.node.id})" for receive in pending]
        instead = f"never does, but receives {listed(others)}" if others else "never does"
        return f"{waits}: rank {target} {instead}"

    def _whereabouts(self, rank: int, node: TraceNode) -> str:
        state = self._run.ranks[rank]
        where = f"its counterpart, {label(node)} of rank {rank},"
        if node.id in state.in_flight:
            return f"{where} is not complete either"
        if node.id in state.ready:
            return f"{where} has not been issued, as its slot is taken"
        missing = [str(one) for one in node.dependencies if one not in state.done]
        return f"{where} has not been issued, as it depends on {named('node', missing)}"


def label(node: TraceNode) -> str:
    """Name a node by id, type and name."""
    name = node.name
    if len(name) > _MAX_NAME_LENGTH:
        name = f"{name[:_MAX_NAME_LENGTH]}..."
    return f"node {node.id} {_TYPE_NAMES.get(node.type, node.type)} {name!r}"


def listed(items: Sequence[object]) -> str:
    """Join the first few items; the others are a count."""
    text = ", ".join(str(item) for item in items[:_MAX_LISTED])
    left = len(items) - _MAX_LISTED
    return f"{text} and {left} more" if left > 0 else text


def named(noun: str, items: Sequence[object]) -> str:
    """List items after their noun, which is put into the plural for several."""
    return f"{noun}{'s' if len(items) > 1 else ''} {listed(items)}"
