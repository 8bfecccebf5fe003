"""Properties of any workload of the ASTRA-sim engine."""

import io
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest
from astra_runs import finishes, run
from astra_traces import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    Case,
    Node,
    collective,
    network_file,
    system_file,
)
from astra_workloads import TOPOLOGIES, cases, pairwise_file
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_sim import RunOptions, RunResult, aware, unaware
from astra_sim.files.execution_trace import NodeType

BACKENDS = ["unaware", "aware"]
FEW = settings(max_examples=examples(40))

# Algorithms whose sends can only be put off when something else is: see the test of contention.
STEADY = ("ring", "direct1", "halvingDoubling")


def figures(result: RunResult) -> list[tuple[int, int, int]]:
    """What is printed of every rank, in the order of finishing."""
    return [
        (each.rank, each.finish_cycles, each.exposed_communication_cycles) for each in result.ranks
    ]


def remade(case: Case, change: Callable[[int, Node], None], order: Sequence[int]) -> Case:
    """A case with changed copies of its nodes; rank r gets the trace of rank ``order[r]``."""
    ranks = []
    for rank in order:
        nodes = [Node.FromString(node.SerializeToString()) for node in case.ranks[rank]]
        for node in nodes:
            change(rank, node)
        ranks.append(nodes)
    return case.changed(ranks=ranks)


# Every node runs, and time is accounted for.


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(data=st.data())
def test_every_workload_finishes_and_what_is_exposed_is_the_rest(backend, data):
    rendezvous = data.draw(st.booleans())
    case = data.draw(cases(backend, rendezvous=rendezvous))
    most_queues = 3 if len(case.network["npus_count"]) == 1 else 1
    options = RunOptions(
        rendezvous=rendezvous,
        num_queues_per_dimension=data.draw(st.integers(1, most_queues)),
    )

    result = run(case, backend, options=options)

    assert result.unfinished == ()
    for each in result.ranks:
        nodes = case.ranks[each.rank]
        computing_ns = sum(
            node.duration_micros * 1000 or 1 for node in nodes if node.type == NodeType.COMP
        )
        assert each.finish_cycles - each.exposed_communication_cycles == computing_ns
        assert each.finish_cycles == max(span.end_ns for span in result.spans[each.rank])
    assert list(finishes_in_order := [each.finish_cycles for each in result.ranks]) == sorted(
        finishes_in_order
    )


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(data=st.data())
def test_nodes_wait_for_what_they_depend_on_and_for_their_slot(backend, data):
    case = data.draw(cases(backend))

    for nodes, spans in zip(case.ranks, run(case, backend).spans, strict=True):
        ends_ns = {span.node.id: span.end_ns for span in spans}
        assert set(ends_ns) == {node.id for node in nodes}
        moments_ns = {0, *ends_ns.values()}
        slots = defaultdict(list)
        for span in spans:
            assert span.start_ns >= max((ends_ns[id] for id in span.node.dependencies), default=0)
            assert span.start_ns in moments_ns  # nodes are issued after a completion
            if span.node.type == NodeType.COMP:
                assert span.end_ns - span.start_ns == (span.node.duration_ns or 1)
            if span.node.type != NodeType.COMM_RECV:
                slots[span.node.type == NodeType.COMP].append((span.start_ns, span.end_ns))
        for taken in slots.values():
            assert all(before[1] <= after[0] for before, after in pairwise(sorted(taken)))


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(data=st.data())
def test_a_message_takes_its_transfer_and_a_receive_waits_for_it(backend, data):
    """Exactly so in the unaware network; in the aware one a message may also have to queue."""
    case = data.draw(cases(backend, topologies=TOPOLOGIES))
    result = run(case, backend)
    sends = {
        span.node.attributes["comm_tag"]: (rank, span)
        for rank, spans in enumerate(result.spans)
        for span in spans
        if span.node.type == NodeType.COMM_SEND
    }
    for target, spans in enumerate(result.spans):
        for span in spans:
            if span.node.type == NodeType.COMM_RECV:
                source, sending = sends.pop(span.node.attributes["comm_tag"])
                assert span.end_ns == max(span.start_ns, sending.end_ns)
                taken_ns = sending.end_ns - sending.start_ns
                least_ns = transfer_ns(
                    case.network, source, target, sending.node.attributes["comm_size"], backend
                )
                assert taken_ns == least_ns if backend == "unaware" else taken_ns >= least_ns
    assert not sends


def transfer_ns(network: dict, source: int, target: int, num_bytes: int, backend: str) -> int:
    """Time of a message that meets no other."""
    dimensions = zip(
        *(network[key] for key in ("topology", "npus_count", "bandwidth", "latency")), strict=True
    )
    for topology, count, bandwidth, latency in dimensions:
        (source, here), (target, there) = divmod(source, count), divmod(target, count)
        if here != there:
            hops = {"FullyConnected": 1, "Switch": 2}.get(
                topology, min((there - here) % count, (here - there) % count)
            )
            wire_ns = num_bytes / (bandwidth * 2**30 / 10**9)
            if backend == "unaware":
                return math.floor(hops * latency + wire_ns)
            return hops * math.floor(latency + wire_ns)
    raise AssertionError("a message to itself was drawn")


# What contention does.


@given(case=cases("aware", topologies=TOPOLOGIES, algorithms=STEADY, in_order=True))
def test_contention_never_makes_anyone_finish_earlier(case):
    """Unaware is a lower bound of aware where nothing is chosen by who comes first.

    With every NPU's slots passed on in a fixed order, each start is a maximum, or a k-th smallest,
    of ends, and so cannot come earlier if a message takes longer. Each message does take as long
    or longer: latencies are whole, so what is truncated on every link is truncated once at most in
    the unaware network. It is no theorem otherwise: a slot given to another node may shorten the
    whole, as with any list schedule, and the direct all-reduce begins its second half at the first
    local move that ends after the last message of the first, so that a message may be late enough
    to start it sooner.
    """
    slower = finishes(run(case, "aware"))

    assert all(
        quick <= slow for quick, slow in zip(finishes(run(case, "unaware")), slower, strict=True)
    )


# What cannot matter.


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(data=st.data())
def test_only_the_order_of_node_ids_matters(backend, data):
    case = data.draw(cases(backend))
    gaps = data.draw(st.lists(st.integers(1, 2**40), min_size=15, max_size=15))
    new_ids = [sum(gaps[: number + 1]) for number in range(len(gaps))]

    def renumber(_: int, node: Node) -> None:
        node.id = new_ids[node.id]
        for dependencies in (node.data_deps, node.ctrl_deps):
            dependencies[:] = [new_ids[number] for number in dependencies]

    renumbered = remade(case, renumber, range(len(case.ranks)))

    once, again = run(case, backend), run(renumbered, backend)
    assert again.ranks == once.ranks
    assert again.lines == once.lines
    assert again.num_events == once.num_events


@pytest.mark.parametrize(
    ("backend", "topologies"), [("unaware", TOPOLOGIES), ("aware", ["FullyConnected"])]
)
@given(data=st.data())
def test_npus_may_be_turned_round(backend, topologies, data):
    """Who is number 0 does not matter where all stand alike and no tie is broken by number.

    Halving-doubling pairs members by their number. In the aware network messages of two NPUs can
    reach a link at the same time, except where every pair has its own.
    """
    case = data.draw(
        cases(
            backend,
            topologies=topologies,
            algorithms=("ring", "direct1"),
            in_order=True,
            max_dimensions=1,
        )
    )
    num_npus = len(case.ranks)
    turn = data.draw(st.integers(1, num_npus - 1))

    def move(_: int, node: Node) -> None:
        for attribute in node.attr:
            if attribute.name in ("comm_src", "comm_dst"):
                attribute.int64_val = (attribute.int64_val + turn) % num_npus

    order = [(rank - turn) % num_npus for rank in range(num_npus)]
    turned = remade(case, move, order).changed(
        groups={
            number: tuple((npu + turn) % num_npus for npu in npus)
            for number, npus in case.groups.items()
        }
    )

    once = finishes(run(case, backend))
    assert finishes(run(turned, backend)) == [once[rank] for rank in order]


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(data=st.data())
def test_equal_figures_for_all_pairs_are_a_full_connection(backend, data):
    case = data.draw(cases(backend, topologies=["FullyConnected"], max_dimensions=1))
    (count,), (bandwidth,), (latency,) = (
        case.network[key] for key in ("npus_count", "bandwidth", "latency")
    )
    matrices = [[[figure] * count for _ in range(count)] for figure in (bandwidth, latency)]

    once, again = run(case, backend), run(case.changed(network=pairwise_file(*matrices)), backend)

    assert figures(again) == figures(once)
    assert again.num_events == once.num_events


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(data=st.data())
def test_the_same_input_gives_the_same_lines(backend, data):
    case = data.draw(cases(backend))

    assert run(case, backend) == run(case, backend)


@pytest.mark.parametrize(("backend", "main"), [("unaware", unaware.main), ("aware", aware.main)])
@settings(max_examples=examples(20))
@given(data=st.data())
def test_the_command_reads_what_was_written_and_prints_the_lines_of_the_library(
    backend, main, data
):
    case = data.draw(cases(backend))
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        flags = case.write(Path(folder))
        with redirect_stdout(io.StringIO()) as output:
            assert main(flags) == 0

    lines = [line.split("] ", 1)[1] for line in output.getvalue().splitlines()]
    assert tuple(lines) == run(case, backend).lines


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    kind=st.sampled_from([ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER]),
    algorithm=st.sampled_from(["ring", "direct", "direct2"]),
    num_npus=st.integers(3, 8),
    num_bytes=st.integers(64, 2**24),
    splits=st.integers(1, 5),
)
def test_all_npus_end_a_collective_together_on_equal_links(
    *, backend, kind, algorithm, num_npus, num_bytes, splits
):
    case = Case(
        ranks=[[collective(0, kind, num_bytes)]] * num_npus,
        network=network_file("FullyConnected", num_npus),
        system=system_file(algorithm, preferred_dataset_splits=splits),
    )

    assert len(set(finishes(run(case, backend)))) == 1
