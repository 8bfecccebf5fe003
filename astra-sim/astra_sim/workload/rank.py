"""One NPU's execution trace: what is ready, what holds which slot, what has finished."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from heapq import heappop, heappush

from astra_sim.core.events import EventQueue
from astra_sim.core.result import NodeSpan, new_span
from astra_sim.files.errors import AbortError, NodeError
from astra_sim.files.execution_trace import NodeType, Trace, TraceNode

UINT64 = 2**64
UNLIMITED = UINT64
"""Slots of what needs none."""


class Slot(IntEnum):
    """Resources of a node from its issue to its completion."""

    CPU = 0
    COMPUTE = 1
    COMMUNICATION = 2
    RECEIVE = 3


SLOT_OF_TYPE: dict[int, Slot] = {
    NodeType.COMP: Slot.COMPUTE,
    NodeType.COMM_SEND: Slot.COMMUNICATION,
    NodeType.COMM_COLL: Slot.COMMUNICATION,
    NodeType.MEM_LOAD: Slot.COMMUNICATION,
    NodeType.MEM_STORE: Slot.COMMUNICATION,
    NodeType.INVALID: Slot.COMMUNICATION,
    NodeType.COMM_RECV: Slot.RECEIVE,
}

_SLOTS: dict[int, int] = {int(kind): int(slot) for kind, slot in SLOT_OF_TYPE.items()}
"""The same as plain numbers, for the look-up of every node."""


class Rank:
    """The nodes of a rank and their state.

    ``issue`` maps the type of a node to the function that runs it; ``finish`` ends the rank.

    A node is ready once all that it depends on are done. An issue pass, at the start and after
    every completion, visits the nodes ready at its beginning in ascending id and issues each
    whose slot is free.
    """

    __slots__ = (
        "_blocked_by",
        "_children",
        "_finish",
        "_free",
        "_issue",
        "_newly_ready",
        "_queue",
        "_ready",
        "computing_ns",
        "errors",
        "finished",
        "in_flight",
        "nodes",
        "rank",
        "spans",
        "trace",
    )

    def __init__(
        self,
        rank: int,
        trace: Trace,
        queue: EventQueue,
        *,
        communication_slots: int | None,
        issue: Mapping[int, Callable[["Rank", TraceNode], None]],
        finish: Callable[["Rank"], None],
    ) -> None:
        self.rank = rank
        self.trace = trace
        self.finished = False
        self.in_flight: dict[int, tuple[TraceNode, int, int]] = {}
        """Nodes under way by id, with their start and their slot."""
        self.spans: list[NodeSpan] = []
        self.computing_ns = 0
        self.errors: dict[int, str] = {}
        self._queue = queue
        self._issue = issue
        self._finish = finish
        slots = UNLIMITED if communication_slots is None else communication_slots
        self._free = [1, 1, slots, UNLIMITED]
        self._ready: tuple[list[int], ...] = ([], [], [], [])
        self._newly_ready: list[int] = []
        self.nodes = {node.id: node for node in trace.nodes}
        self._blocked_by: dict[int, int] = {}
        self._children: defaultdict[int, list[int]] = defaultdict(list)
        blocked_by, children = self._blocked_by, self._children
        for number, node in self.nodes.items():
            dependencies = node.dependencies
            blocked_by[number] = len(dependencies)
            for parent in dependencies:
                children[parent].append(number)
            if not dependencies:
                self._newly_ready.append(number)

    @property
    def is_done(self) -> bool:
        """Whether the rank has finished and all its nodes are done."""
        return self.finished and len(self.spans) == len(self.nodes)

    @property
    def ready(self) -> list[int]:
        """Ids of nodes that could be issued if their slots were free, ascending."""
        return sorted(self._newly_ready + [number for heap in self._ready for number in heap])

    def issue_pass(self) -> None:
        """Issue what is ready now; what becomes ready meanwhile waits for the next pass."""
        ready, free, nodes = self._ready, self._free, self.nodes
        numbers, self._newly_ready = self._newly_ready, []
        if len(numbers) == 1 and not any(ready):  # most passes
            node = nodes[numbers[0]]
            slot = 0 if node.is_cpu else _SLOTS.get(node.type)
            if slot is None:
                slot = slot_of(node, self.trace.source)
            if free[slot]:
                self._start(node, slot)
            else:
                ready[slot].append(node.id)
            return
        slots = [slot_of(nodes[number], self.trace.source) for number in numbers]
        if not any(ready):
            self._issue_each(sorted(zip(numbers, slots, strict=True)))
            return
        for number, slot in zip(numbers, slots, strict=True):
            heappush(ready[slot], number)
        while True:
            slot = -1
            for candidate, waiting in enumerate(ready):
                if waiting and free[candidate] and (slot < 0 or waiting[0] < ready[slot][0]):
                    slot = candidate
            if slot < 0:
                return
            self._start(nodes[heappop(ready[slot])], slot)

    def _issue_each(self, numbers: Iterable[tuple[int, int]]) -> None:
        """Issue nodes whose slots are free; none becomes free in a pass, so one look is enough."""
        waiting = iter(numbers)
        try:
            for number, slot in waiting:
                if self._free[slot]:
                    self._start(self.nodes[number], slot)
                else:
                    self._ready[slot].append(number)
        finally:
            for number, slot in waiting:  # after one that cannot be run
                self._ready[slot].append(number)

    def _start(self, node: TraceNode, slot: int) -> None:
        self._free[slot] -= 1
        self.in_flight[node.id] = node, self._queue.now, slot
        try:
            self._issue[node.type](self, node)
        except NodeError as error:
            self.errors[node.id] = str(error)
            raise

    def retire(self, node: TraceNode) -> None:
        """End a node at once, within an issue pass: nothing is issued for it."""
        number = node.id
        _, start_ns, slot = self.in_flight.pop(number)
        self._free[slot] += 1
        self.spans.append(new_span((node, start_ns, self._queue.now)))
        blocked_by = self._blocked_by
        for child in self._children.get(number, ()):
            left = blocked_by[child] = blocked_by[child] - 1
            if not left:
                self._newly_ready.append(child)

    def complete(self, node: TraceNode) -> None:
        """End a node: an issue pass, then the test whether the rank has finished."""
        self.retire(node)
        if self._newly_ready or any(self._ready):
            self.issue_pass()
        if self.in_flight or self._newly_ready or any(self._ready) or self.finished:
            return
        self.finished = True
        self._finish(self)

    def exposed_ns(self) -> int:
        """Time up to now that no counted computation covers, modulo 2**64. [ns]"""
        return (self._queue.now - self.computing_ns) % UINT64


def slot_of(node: TraceNode, source: str = "trace") -> Slot:
    """Slot that a node takes, by its type; ``source`` names its trace in the error.

    Raises
    ------
    AbortError
        If no node has that type.
    """
    if node.is_cpu:
        return Slot.CPU
    slot = SLOT_OF_TYPE.get(node.type)
    if slot is None:
        raise AbortError(
            f"{source}: node {node.id} {node.name!r}: type must be one of "
            f"{', '.join(NodeType(kind).name for kind in SLOT_OF_TYPE)}, got {node.type}"
        )
    return slot
