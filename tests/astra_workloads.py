"""Random workloads for the ASTRA-sim engine that are certain to finish.

Operations are drawn in one order for the whole system and put into the trace of every NPU that
takes part, with dependencies on earlier ones only. A collective also waits for whatever its NPU
sends or joins before it, so that no rank keeps the communication slot for one that others reach
later; where receivers answer first (rendezvous), sends wait as well. Sizes are such that a message
takes at least a nanosecond, as nothing may happen at time 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    Case,
    Node,
    collective,
    compute,
    network_file,
    receive,
    send,
    system_file,
)
from hypothesis import strategies as st

TOPOLOGIES = ("Ring", "FullyConnected", "Switch")
COLLECTIVES = (ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER)
MESSAGE_BYTES = st.integers(64, 2**22)
COLLECTIVE_BYTES = st.integers(4096, 2**22)
MOST_CHUNKS = 5
"""One more than splits, as the last chunk is of full size, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What some NPUs do together; ``figures`` are its durations or sizes, ``groups`` its rings."""

    kind: str
    npus: tuple[int, ...]
    figures: tuple[int, ...]
    groups: tuple[int, ...] = ()


def computations(num_npus: int) -> st.SearchStrategy[Operation]:
    """One NPU computes for some microseconds, or for nothing, which counts as 1 ns."""
    return st.builds(
        lambda npu, duration_us: Operation(kind="compute", npus=(npu,), figures=(duration_us,)),
        st.integers(0, num_npus - 1),
        st.integers(0, 300),
    )


def messages(num_npus: int) -> st.SearchStrategy[Operation]:
    """One NPU sends to another."""
    pairs = st.tuples(st.integers(0, num_npus - 1), st.integers(1, num_npus - 1))
    return st.builds(
        lambda pair, num_bytes: Operation(
            kind="message",
            npus=(pair[0], (pair[0] + pair[1]) % num_npus),
            figures=(num_bytes,),
        ),
        pairs,
        MESSAGE_BYTES,
    )


def collectives(
    num_npus: int, groups: dict[int, tuple[int, ...]], kinds: Sequence[int]
) -> st.SearchStrategy[Operation]:
    """All NPUs join: as the world or as all groups, which must cover them without overlap."""
    return st.builds(
        lambda numbers, kind, num_bytes: Operation(
            kind="collective",
            npus=tuple(range(num_npus)),
            figures=(kind, num_bytes),
            groups=numbers,
        ),
        st.sampled_from([(), tuple(groups)] if groups else [()]),
        st.sampled_from(kinds),
        COLLECTIVE_BYTES,
    )


@st.composite
def group_files(draw: st.DrawFn, num_npus: int) -> dict[int, tuple[int, ...]]:
    """No groups, or two or more of at least two NPUs that cover all, in any order."""
    if num_npus < 4 or draw(st.booleans()):
        return {}
    order = tuple(draw(st.permutations(range(num_npus))))
    cut = draw(st.integers(2, num_npus - 2))
    return {1: order[:cut], 2: order[cut:]}


@st.composite
def networks(
    draw: st.DrawFn,
    backend: str,
    topologies: Sequence[str] = (*TOPOLOGIES, "Pairwise"),
    *,
    max_dimensions: int = 3,
    max_npus: int = 8,
) -> dict[str, Any]:
    """Network files; the aware network has one dimension and no ring of two."""
    fewest = 3 if backend == "aware" else 2
    if backend == "aware":
        max_dimensions = 1
    counts = [draw(st.integers(fewest, max_npus))]
    while len(counts) < max_dimensions and max_npus // prod(counts) >= 2:
        if not draw(st.booleans()):
            break
        counts.append(draw(st.integers(2, max_npus // prod(counts))))
    names = [draw(st.sampled_from(topologies)) for _ in counts]
    if "Pairwise" in names and len(names) > 1:
        names = ["FullyConnected" if name == "Pairwise" else name for name in names]
    bandwidths = st.sampled_from((0.25, 1.0, 7.3, 50.0))
    latencies = st.sampled_from((0, 1, 500, 40_000))
    if names == ["Pairwise"]:
        return pairwise_file(
            *(
                [[draw(figures) for _ in range(counts[0])] for _ in range(counts[0])]
                for figures in (bandwidths, latencies)
            )
        )
    return network_file(
        names, counts, [draw(bandwidths) for _ in counts], [draw(latencies) for _ in counts]
    )


def pairwise_file(
    bandwidths: Sequence[Sequence[float]], latencies: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Network of one dimension with its own figures for every pair."""
    return {
        "topology": ["Pairwise"],
        "npus_count": [len(bandwidths)],
        "bandwidth_matrix": bandwidths,
        "latency_matrix": latencies,
    }


@st.composite
def cases(
    draw: st.DrawFn,
    backend: str,
    *,
    topologies: Sequence[str] = (*TOPOLOGIES, "Pairwise"),
    algorithms: Sequence[str] = ("ring", "direct", "direct1", "halvingDoubling"),
    in_order: bool = False,
    rendezvous: bool = False,
    max_dimensions: int = 3,
) -> Case:
    """Everything a run reads.

    ``in_order`` makes every NPU's computations wait for each other, and so its sends and
    collectives: no slot is ever chosen for one of several nodes.
    """
    network = draw(networks(backend, topologies, max_dimensions=max_dimensions))
    counts = network["npus_count"]
    num_npus = prod(counts)
    groups = draw(group_files(num_npus))
    possible = [name for name in algorithms if name != "halvingDoubling" or not groups]
    names = [
        draw(st.sampled_from([name for name in possible if _can(name, count)])) for count in counts
    ]
    system = draw(systems(names))
    kinds = [kind for kind in COLLECTIVES if kind != ALL_TO_ALL or "halvingDoubling" not in names]
    operation = st.one_of(
        computations(num_npus),
        messages(num_npus),
        messages(num_npus),
        collectives(num_npus, groups, kinds),
    )
    operations = draw(st.lists(operation, min_size=1, max_size=14))
    ranks = _Projection(
        num_npus, groups, in_order=in_order, sends_wait=in_order or rendezvous
    ).nodes(draw, operations)
    return Case(ranks=ranks, network=network, system=system, groups=groups)


@st.composite
def systems(draw: st.DrawFn, names: Sequence[str]) -> dict[str, Any]:
    """System files with given algorithms by dimension.

    Where chunks can reach a queue in another order on another NPU, each waiting for the other,
    the queue lets all run at once: between dimensions if several run at a time, and in the
    middle of three, which `localBWAware` passes up and down.
    """
    optimization = draw(st.sampled_from(("baseline", "localBWAware")))
    nums_active = {1: (1, 2, 3), 2: (1, MOST_CHUNKS)}.get(len(names), (MOST_CHUNKS,))
    if optimization == "baseline" and len(names) > 2:
        nums_active = (1, MOST_CHUNKS)
    return system_file(
        names,
        preferred_dataset_splits=draw(st.integers(1, MOST_CHUNKS - 1)),
        active_chunks_per_dimension=draw(st.sampled_from(nums_active)),
        endpoint_delay=draw(st.sampled_from((1, 10, 333))),
        local_mem_bw=draw(st.sampled_from((0, 50, 1600))),
        collective_optimization=optimization,
    )


class _Projection:
    """Puts operations into the traces of those who take part."""

    def __init__(
        self,
        num_npus: int,
        groups: dict[int, tuple[int, ...]],
        *,
        in_order: bool,
        sends_wait: bool,
    ) -> None:
        self.ranks: list[list[Node]] = [[] for _ in range(num_npus)]
        self.group_of = {npu: number for number, npus in groups.items() for npu in npus}
        self.in_order = in_order
        self.sends_wait = sends_wait
        self.communicating: list[list[int]] = [[] for _ in range(num_npus)]
        self.computing: list[list[int]] = [[] for _ in range(num_npus)]

    def nodes(self, draw: st.DrawFn, operations: Sequence[Operation]) -> list[list[Node]]:
        """Nodes of every NPU; who has nothing to do computes for a moment."""
        for number, operation in enumerate(operations):
            for place, npu in enumerate(operation.npus):
                made = self.node(number, operation, place)
                earlier = [each.id for each in self.ranks[npu]]
                if earlier:
                    chosen = draw(st.sets(st.sampled_from(earlier), max_size=2))
                    made.ctrl_deps.extend(sorted(chosen))
                self.ranks[npu].append(made)
        return [nodes or [compute(0, 1)] for nodes in self.ranks]

    def node(self, number: int, operation: Operation, place: int) -> Node:
        """Node of one who takes part, after what it must wait for."""
        npu = operation.npus[place]
        if operation.kind == "compute":
            waits = self.computing[npu][-1:] if self.in_order else ()
            self.computing[npu].append(number)
            return compute(number, *operation.figures, waits)
        if operation.kind == "message" and place:
            return receive(number, operation.npus[0], *operation.figures, number)
        before = tuple(self.communicating[npu])
        self.communicating[npu].append(number)
        if operation.kind == "message":
            waits = before if self.sends_wait else ()
            return send(number, operation.npus[1], *operation.figures, number, waits)
        group = self.group_of[npu] if operation.groups else None
        return collective(number, *operation.figures, before, group=group)


def _can(algorithm: str, num_members: int) -> bool:
    """Halving-doubling stalls without a power of two."""
    return algorithm != "halvingDoubling" or not num_members & (num_members - 1)
