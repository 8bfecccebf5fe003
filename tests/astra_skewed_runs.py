"""Collectives whose members start apart, drawn, and all that a run of them tells.

Four shortcuts leave events out: phases foreseen from equal ones before, one event for rings in
step, steps of rings apart that only turn the state, and those whose times are worked out ahead.
None is taken on a network whose bandwidth changes, here after the end of the run, so that such a
network is the oracle.
"""

from math import prod

from astra_hand_figures import ONE_BYTE_PER_NS
from astra_runs import run
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

from astra_sim import RunOptions

KINDS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)
ALGORITHMS = ("ring", "ring", "ring", "direct", "direct1", "direct2", "oneRing", "oneDirect2")
FOR_POWERS_OF_TWO = ("halvingDoubling", "doubleBinaryTree", "oneHalvingDoubling")
TOPOLOGIES = ("Ring", "FullyConnected", "Switch")


def outcome(case: Case, backend: str, options: RunOptions | None = None) -> tuple[object, ...]:
    """All that a run tells, also one that does not end."""
    result = run(case, backend, strict=False, options=options)
    return result.ranks, result.spans, result.lines, result.diagnosis, result.num_events


def event_by_event(case: Case) -> Case:
    """The case on a network on which no shortcut is taken."""
    changes = [
        {"time_ns": 10**15, "bandwidth": 123.0, "dimension": number}
        for number in range(len(case.network["npus_count"]))
    ]
    return case.changed(network={**case.network, "bandwidth_changes": changes})


@st.composite
def networks(draw: st.DrawFn, fewest: int) -> dict[str, object]:
    """One dimension or two, of rings that may be small where messages never meet."""
    counts = [draw(st.sampled_from([3, 4, 5, 6, 8, 8, 12]))]
    if draw(st.integers(0, 3)) == 0:
        counts = draw(st.lists(st.integers(fewest, 4), min_size=2, max_size=2))
    each = {
        "topology": st.sampled_from(TOPOLOGIES),
        "bandwidth": st.sampled_from([0.25, ONE_BYTE_PER_NS, 50.0]),
        "latency": st.sampled_from([0.0, 1.0, 500.0, 1000.0, 40_000.0]),
    }
    lists = {key: [draw(values) for _ in counts] for key, values in each.items()}
    return network_file(lists["topology"], counts, lists["bandwidth"], lists["latency"])


@st.composite
def systems(draw: st.DrawFn, counts: list[int]) -> dict[str, object]:
    """An algorithm for each dimension that can run it, and what decides on chunks and moves."""
    algorithms = [
        draw(st.sampled_from(ALGORITHMS + (() if n & (n - 1) else FOR_POWERS_OF_TWO)))
        for n in counts
    ]
    if algorithms[0].startswith("one"):
        algorithms = algorithms[:1]
    return system_file(
        algorithms,
        scheduling_policy=draw(st.sampled_from(["LIFO", "FIFO"])),
        collective_optimization=draw(st.sampled_from(["baseline", "localBWAware"])),
        preferred_dataset_splits=draw(st.integers(1, 4)),
        active_chunks_per_dimension=draw(st.sampled_from([1, 1, 2, 3])),
        local_mem_bw=draw(st.sampled_from([0, 0.5, 50, 1600])),
        endpoint_delay=draw(st.sampled_from([0, 1, 10, 333, 1000])),
    )


@st.composite
def starts_us(draw: st.DrawFn, num_npus: int) -> list[int]:
    """Starts at once, in steps round the ring, in few or many groups, or with one far behind."""
    step, many = draw(st.sampled_from([1, 7, 100])), draw(st.sampled_from([5, 40, 400, 5000]))
    starts = draw(
        st.sampled_from(
            [
                [3] * num_npus,
                [1 + 3 * (npu % 2) for npu in range(num_npus)],
                [1 + step * npu for npu in range(num_npus)],
                [1] * (num_npus - 1) + [many],
            ]
        )
        | st.lists(st.integers(1, many), min_size=num_npus, max_size=num_npus)
    )
    return draw(st.permutations(starts)) if draw(st.booleans()) else starts


@st.composite
def cases(draw: st.DrawFn, backend: str) -> Case:
    """Collectives of mixed sizes after skewed starts, also of groups, with other work besides."""
    network = draw(networks(2 if backend == "unaware" else 3))
    num_npus = prod(network["npus_count"])
    system = draw(systems(network["npus_count"]))
    algorithms = system["all-reduce-implementation"]
    kinds = KINDS[:3] if {*algorithms} & {*FOR_POWERS_OF_TWO} else KINDS
    sizes = st.sampled_from([4096, 100_000, 777_777, 2**20, 2**22])
    steps = draw(st.lists(st.tuples(st.sampled_from(kinds), sizes), min_size=1, max_size=3))
    half = num_npus // 2
    order = draw(st.permutations(range(num_npus)))
    groups = {}
    if "doubleBinaryTree" not in algorithms and half > 1 and draw(st.integers(0, 3)) == 0:
        groups = {1: order[:half], 2: order[half:]}
    starts, pause_us = draw(starts_us(num_npus)), draw(st.sampled_from([0, 1, 50]))
    besides_us = draw(st.lists(st.integers(1, 60), max_size=4)) if draw(st.booleans()) else []
    ranks = [
        rank_nodes(
            starts[npu],
            [(kind, size, 2 - (npu in order[:half]) if groups else None) for kind, size in steps],
            pause_us * (1 + order[npu] % 2),
            besides_us,
        )
        for npu in range(num_npus)
    ]
    if draw(st.integers(0, 3)) == 0:
        ranks[order[0]].append(receive(300, order[1], 3000, 7))
        ranks[order[1]].append(send(300, order[0], 3000, 7, [ranks[order[1]][0].id]))
    return Case(ranks=ranks, network=network, system=system, groups=groups)


def rank_nodes(
    start_us: int,
    steps: list[tuple[int, int, int | None]],
    pause_us: int,
    besides_us: list[int],
) -> list[Node]:
    """A start, collectives in turn with pauses between, and computations besides them."""
    nodes = [compute(0, start_us)]
    for number, (kind, size, group) in enumerate(steps):
        nodes.append(collective(2 * number + 1, kind, size, [nodes[-1].id], group=group))
        if pause_us:
            nodes.append(compute(2 * number + 2, pause_us, [nodes[-1].id]))
    for number, duration_us in enumerate(besides_us, start=100):
        nodes.append(compute(number, duration_us, [number - 1 if number > 100 else 0]))
    return nodes
