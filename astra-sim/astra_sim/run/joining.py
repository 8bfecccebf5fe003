"""Ranks that have joined a collective that never completed, and those that have not."""

from collections import defaultdict

from astra_sim.files.comm_groups import LEADING_INTEGER
from astra_sim.files.execution_trace import CollectiveType, NodeType, TraceNode
from astra_sim.files.system_config import Algorithm
from astra_sim.run.waiting import RunState, label, listed
from astra_sim.system.collectives import CHUNK_TAG_OFFSET, WORLD
from astra_sim.system.messages import CONTROL_TAG_OFFSET

_Communicator = tuple[int, tuple[bool, ...]]
"""Number of the group, and which dimensions are involved where it is all NPUs."""


class CollectiveWaits:
    """Explains the collectives of a run that have not completed."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._pending: defaultdict[int, list[TraceNode]] = defaultdict(list)
        for state in run.ranks:
            for node in state.trace.nodes:
                if node.type == NodeType.COMM_COLL and node.id not in state.done:
                    self._pending[state.rank].append(node)

    def explain(self, rank: int, node: TraceNode) -> str:
        """Say which ranks a collective waits for, or in what its ranks differ."""
        members = self._members(rank, node)
        others = [member for member in members if member != rank]
        number = self._communicator(node)[0]
        among = "" if number == WORLD else f" in group {number}"
        waits = f"{label(node)}, {_describe(node)}{among},"
        absent = [self._absence(one, node) for one in others if not self._joined(one, node)]
        if absent:
            return f"{waits} waits for {len(absent)} of {len(others)} others: {listed(absent)}"
        different = [text for one in others if (text := self._difference(rank, one, node))]
        if different:
            return f"{waits} is not the same everywhere: {listed(different)}"
        if not others:
            return f"{waits} has no other rank: a group of one, or no dimension is involved"
        return (
            f"{waits} has been joined by all {len(members)} ranks, but cannot complete: no chunk "
            "may be active, or its algorithm is for powers of two"
        )

    def _joined(self, rank: int, node: TraceNode) -> list[TraceNode]:
        """Collectives of the same communicator that a rank has in flight."""
        state, communicator = self._run.ranks[rank], self._communicator(node)
        return [
            other
            for other in self._pending[rank]
            if other.id in state.in_flight and self._communicator(other) == communicator
        ]

    def _absence(self, rank: int, node: TraceNode) -> str:
        communicator = self._communicator(node)
        for other in self._pending[rank]:
            if self._communicator(other) == communicator:
                return f"rank {rank} has not issued its {label(other)}"
        return f"rank {rank} has no such collective left"

    def _difference(self, rank: int, other: int, node: TraceNode) -> str:
        joined = self._joined(other, node)
        described = _describe(node)
        if all(_describe(one) != described for one in joined):
            return f"rank {other} has {label(joined[0])}, {_describe(joined[0])}"
        here, there = self._chunks(rank), self._chunks(other)
        if here and there and here.isdisjoint(there):
            return (
                f"rank {other} is at chunk {min(there)}, not {min(here)} (it made another number "
                "of chunks before, or its queues run them in another order)"
            )
        return ""

    def _chunks(self, rank: int) -> set[int]:
        """Ids of the chunks of which a rank waits for messages."""
        return {
            tag - CHUNK_TAG_OFFSET
            for tag, _, target, _ in self._run.receives
            if target == rank and CHUNK_TAG_OFFSET <= tag < CONTROL_TAG_OFFSET
        }

    def _members(self, rank: int, node: TraceNode) -> tuple[int, ...]:
        """Ranks that a collective needs: its group, or those along the dimensions involved."""
        number, involved = self._communicator(node)
        if number != WORLD:
            return tuple(sorted(self._run.groups[number]))
        network = self._run.network
        here = network.address(rank)
        fixed = [index for index, is_in in enumerate(involved) if not is_in]
        return tuple(
            other
            for other in range(network.num_npus)
            if all(network.address(other)[index] == here[index] for index in fixed)
        )

    def _communicator(self, node: TraceNode) -> _Communicator:
        """Group and dimensions of a collective; a dimension without algorithm is left out."""
        name = node.attributes.get("pg_name") or ""
        leading = LEADING_INTEGER.match(name) if isinstance(name, str) else None
        number = int(leading[0]) if leading else WORLD
        num_dimensions = len(self._run.network.dimensions)
        if number != WORLD:
            return number, (True,) * num_dimensions
        algorithms = self._algorithms(node)
        if any(algorithm.whole_system for algorithm in algorithms):
            return WORLD, (True,) * num_dimensions
        flags = node.attributes.get("involved_dim")
        asked = flags if isinstance(flags, tuple) else (True,) * num_dimensions
        return WORLD, tuple(
            index < len(algorithms) and index < len(asked) and bool(asked[index])
            for index in range(num_dimensions)
        )

    def _algorithms(self, node: TraceNode) -> tuple[Algorithm, ...]:
        kind = node.attributes.get("comm_type")
        by_kind = self._run.system.algorithms.items() if isinstance(kind, int) else ()
        return next((algorithms for known, algorithms in by_kind if known == kind), ())


def _describe(node: TraceNode) -> str:
    """Kind and size of a collective."""
    kind, num_bytes = node.attributes.get("comm_type"), node.attributes.get("comm_size")
    names = [collective.name for collective in CollectiveType if collective == kind]
    return f"{names[0] if names else f'comm_type {kind!r}'} of {num_bytes!r} bytes"
