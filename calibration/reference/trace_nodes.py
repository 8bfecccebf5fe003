"""Nodes of one NPU's execution trace, in the figures that ASTRA-sim reads."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from astra_sim.files.execution_trace import (
    AttributeValue,
    CollectiveType,
    NodeType,
    Trace,
    TraceNode,
)

Attributes = dict[str, AttributeValue]

NS_PER_S = 1e9
NS_PER_MICROSECOND = 1000
MOST_OPERATIONS = 2**64 - 1
MOST_TAG = 500_000_000 - 1
"""Beyond it are the tags of collectives."""

GROUPS_WITH_OWN_TAGS = 500

OPERAND_BYTES = 1
"""Bytes that a computation moves: so few that any memory of 1 GB/s leaves it compute-bound.

So it lasts as long as its operations take at the peak, to the nanosecond, where durations in the
file would be whole microseconds.
"""


def whole_ns(duration_s: float) -> int:
    """Duration of a node: the nearest nanosecond, but 1 at least, as none may take no time.

    Examples
    --------
    >>> whole_ns(1.5e-6), whole_ns(0.0)
    (1500, 1)
    """
    return max(1, round(duration_s * NS_PER_S))


def whole_bytes(num_bytes: float) -> int:
    """Size of a message: the nearest byte, but 1 at least, as none may be empty.

    Examples
    --------
    >>> whole_bytes(2.6), whole_bytes(0.0)
    (3, 1)
    """
    return max(1, round(num_bytes))


class NodeList:
    """The nodes of one NPU, numbered in the order in which they are added.

    Where several wait for the communication slot the first one gets it, so the order is that in
    which messages should leave. Each method returns the number of its node.
    """

    def __init__(self, *, peak_flops_per_s: float) -> None:
        self._peak_flops_per_s = peak_flops_per_s
        self._nodes: list[TraceNode] = []
        self._also_after: dict[int, list[int]] = {}

    def compute(self, name: str, duration_ns: int, after: Iterable[int] = ()) -> int:
        """Add a computation, as operations at the peak.

        They are those of half a nanosecond more, which is cut off: so no rounding cuts off a whole
        one.

        Raises
        ------
        ValueError
            If their number does not fit 64 bits.
        """
        num_operations = round((duration_ns + 0.5) * self._peak_flops_per_s / NS_PER_S)
        if num_operations > MOST_OPERATIONS:
            raise ValueError(
                f"trace: {name} must have at most 2**64 - 1 operations, got {num_operations}"
            )
        attributes: Attributes = {"num_ops": num_operations, "tensor_size": OPERAND_BYTES}
        return self._add(name, NodeType.COMP, attributes, after)

    def send(
        self, name: str, target: int, num_bytes: int, tag: int, after: Iterable[int] = ()
    ) -> int:
        """Add a message to another NPU."""
        attributes: Attributes = {"comm_dst": target, "comm_size": num_bytes, "comm_tag": tag}
        return self._add(name, NodeType.COMM_SEND, attributes, after)

    def receive(self, name: str, source: int, num_bytes: int, tag: int) -> int:
        """Add the arrival of a message from another NPU, waited for from the start."""
        attributes: Attributes = {"comm_src": source, "comm_size": num_bytes, "comm_tag": tag}
        return self._add(name, NodeType.COMM_RECV, attributes, ())

    def collective(
        self,
        name: str,
        kind: CollectiveType,
        num_bytes: int,
        group: int,
        after: Iterable[int] = (),
    ) -> int:
        """Add this NPU's part in a collective of a communicator group."""
        attributes: Attributes = {
            "comm_type": int(kind),
            "comm_size": num_bytes,
            "pg_name": str(group),
        }
        return self._add(name, NodeType.COMM_COLL, attributes, after)

    def pause(self, name: str, num_bytes: int, duration_s: float, after: Iterable[int]) -> int:
        """Add communication that takes known time and disturbs nothing, to the microsecond.

        A broadcast is that: ASTRA-sim gives it the duration in the file and sends nothing.
        """
        attributes: Attributes = {
            "comm_type": int(CollectiveType.BROADCAST),
            "comm_size": num_bytes,
        }
        duration_ns = round(duration_s * NS_PER_S / NS_PER_MICROSECOND) * NS_PER_MICROSECOND
        return self._add(name, NodeType.COMM_COLL, attributes, after, duration_ns=duration_ns)

    def put_after(self, node: int, earlier: int) -> None:
        """Let a node that is there wait for another one, too."""
        self._also_after.setdefault(node, []).append(earlier)

    def last(self) -> list[int]:
        """Nodes that no other node waits for."""
        waited_for = {number for node in self._nodes for number in node.dependencies}
        for earlier in self._also_after.values():
            waited_for.update(earlier)
        return [node.id for node in self._nodes if node.id not in waited_for]

    def trace(self) -> Trace:
        """All nodes; an NPU with nothing to do computes for a nanosecond.

        A trace must have a node that waits for nothing, and no event may come at time 0.
        """
        if not self._nodes:
            self.compute("idle", 1)
        return Trace(nodes=tuple(self._complete(node) for node in self._nodes))

    def _complete(self, node: TraceNode) -> TraceNode:
        more = self._also_after.get(node.id)
        if more is None:
            return node
        return replace(node, dependencies=_ascending((*node.dependencies, *more)))

    def _add(
        self,
        name: str,
        kind: NodeType,
        attributes: Attributes,
        after: Iterable[int],
        *,
        duration_ns: int = 0,
    ) -> int:
        number = len(self._nodes)
        node = TraceNode(
            id=number,
            name=name,
            type=kind,
            dependencies=_ascending(tuple(after)),
            duration_ns=duration_ns,
            is_cpu=False,
            attributes={"is_cpu_op": False, **attributes},
        )
        self._nodes.append(node)
        return number


def _ascending(dependencies: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(dependencies)))


class Draft:
    """Traces in the making: a list of nodes for every NPU, and the communicator groups."""

    def __init__(self, *, num_npus: int, peak_flops_per_s: float) -> None:
        self.npus = tuple(NodeList(peak_flops_per_s=peak_flops_per_s) for _ in range(num_npus))
        self.groups: dict[int, tuple[int, ...]] = {}
        self._number_of: dict[tuple[tuple[int, ...], object], int] = {}

    def group(self, members: tuple[int, ...], purpose: object) -> int:
        """Number of the group of some NPUs for a purpose, from 1.

        What two groups of the same NPUs send at a time must be told apart by its tags, which
        numbers share that are equal modulo `GROUPS_WITH_OWN_TAGS`.
        """
        found = self._number_of.get((members, purpose))
        if found is not None:
            return found
        taken = {
            number % GROUPS_WITH_OWN_TAGS
            for number, others in self.groups.items()
            if others == members
        }
        if len(taken) == GROUPS_WITH_OWN_TAGS:
            raise ValueError(
                f"trace: NPUs {members} must be in at most {GROUPS_WITH_OWN_TAGS} groups, "
                "got more; take larger buckets of gradients"
            )
        number = len(self.groups) + 1
        while number in self.groups or number % GROUPS_WITH_OWN_TAGS in taken:
            number += 1
        self.groups[number] = members
        self._number_of[members, purpose] = number
        return number
