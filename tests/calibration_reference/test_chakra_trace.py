"""Execution traces hold the plan: operations in order, messages in pairs, readable files."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from examples import examples
from hand_traces import case, on_gpus, without_queues
from hypothesis import given, settings
from sharing import FEW
from trace_cases import pipelines, replicated, shared

from astra_sim.files.execution_trace import NodeType
from astra_sim.workload.statistics import roofline_ns
from calibration.cases.case import PlacementCase, computing_times_s
from calibration.reference.astra_config import system_config
from calibration.reference.chakra_trace import TraceSet, build_traces
from calibration.reference.npu_layout import Layout
from calibration.reference.trace_nodes import Draft, NodeList, whole_ns
from des import Parallelism, simulate
from des.costs.feasibility import assign


def rows(traces: TraceSet, rank: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, type and dependencies of all nodes of an NPU."""
    return [
        (node.name, NodeType(node.type).name, node.dependencies)
        for node in traces.traces[rank].nodes
    ]


def messages(traces: TraceSet, kind: NodeType) -> Counter[tuple[int, int, int, int]]:
    """How often each (tag, source, target, size) is sent, or received."""
    return Counter(
        (
            node.unsigned32("comm_tag"),
            node.unsigned32("comm_src", rank),
            node.unsigned32("comm_dst", rank),
            node.unsigned64("comm_size"),
        )
        for rank, trace in enumerate(traces.traces)
        for node in trace.nodes
        if node.type == kind
    )


def test_a_pipeline_of_two_domains_by_hand():
    """F and B of two stages, an activation there and a gradient back; C has nothing to do."""
    traces = build_traces(case(0, 1))

    assert rows(traces, 0) == [
        ("F0 of stage 0", "COMP", ()),
        ("output of F0 of stage 0", "COMM_SEND", (0,)),
        ("input of B0 of stage 0", "COMM_RECV", ()),
        ("B0 of stage 0", "COMP", (0, 2)),
    ]
    assert rows(traces, 1) == [
        ("input of F0 of stage 1", "COMM_RECV", ()),
        ("F0 of stage 1", "COMP", (0,)),
        ("B0 of stage 1", "COMP", (1,)),
        ("output of B0 of stage 1", "COMM_SEND", (2,)),
    ]
    assert rows(traces, 2) == [("idle", "COMP", ())]
    assert messages(traces, NodeType.COMM_SEND) == {(2, 0, 1, 20): 1, (1, 1, 0, 20): 1}
    assert traces.groups == {}
    assert traces.bytes_between_domains == 40


def test_a_message_of_two_hops_is_received_and_sent_on_by_the_domain_between():
    traces = build_traces(case(0, 2))

    assert rows(traces, 1) == [
        ("output of F0 of stage 0 on its way", "COMM_RECV", ()),
        ("output of F0 of stage 0 on its way", "COMM_SEND", (0,)),
        ("output of B0 of stage 1 on its way", "COMM_RECV", ()),
        ("output of B0 of stage 1 on its way", "COMM_SEND", (2,)),
    ]
    assert traces.bytes_between_domains == 80


def test_durations_are_exact_to_the_nanosecond_whatever_the_speeds():
    """The roofline gives back what `des` reckons, on domains of unequal speed."""
    made = case(0, 1, 2, num_microbatches=2)
    speeds = (3e11, 7.77e13, 4.2e17)
    domains = tuple(
        replace(domain, gpu_peak_flops_per_s=speed)
        for domain, speed in zip(made.topology.domains, speeds, strict=True)
    )
    layers = tuple(replace(layer, forward_flops=1.1e13) for layer in made.workload.layers)
    made = replace(
        made,
        topology=replace(made.topology, domains=domains),
        workload=replace(made.workload, layers=layers),
    )
    times_s, system = computing_times_s(made), system_config(made)

    found = [
        (rank, roofline_ns(node, system))
        for rank, trace in enumerate(build_traces(made).traces)
        for node in trace.nodes
        if node.name.startswith("F")
    ]

    expected = [(rank, round(1e9 * times_s[rank]["F"])) for rank in (0, 0, 1, 1, 2, 2)]
    assert found == expected
    assert [each for _, each in expected[::2]] == [36666666667, 141570142, 26190]


def test_nothing_takes_no_time():
    assert whole_ns(0.0) == whole_ns(1e-12) == 1
    traces = build_traces(case(0, 0))
    assert roofline_ns(traces.traces[1].nodes[0], system_config(case(0, 0))) == 1


def test_too_many_operations_are_refused():
    with pytest.raises(ValueError, match=r"trace: F0 must have at most 2\*\*64 - 1 operations"):
        NodeList(peak_flops_per_s=1e15).compute("F0", 10**14)


def test_too_many_messages_for_the_tags_are_refused():
    made = case(*(0, 1) * 2501, num_microbatches=100_000)

    with pytest.raises(ValueError, match=r"at most 500000000 tags, .* got 1000400000"):
        build_traces(made)


@settings(max_examples=examples(FEW))
@given(made=pipelines())
def test_every_worker_does_its_order_and_every_message_has_one_receiver(made: PlacementCase):
    """One computation after the other, each worker's in order; sends and receives match."""
    traces = build_traces(made)
    orders = assign(made.topology, made.workload, made.plan).orders

    for trace in traces.traces:
        computed = [node for node in trace.nodes if node.type == NodeType.COMP]
        assert all(one.id in other.dependencies for one, other in pairwise(computed))
    for order in orders:
        names = [str(operation) for operation in order]
        nodes = traces.traces[made.plan.stages[order[0].stage].domain].nodes
        assert [node.name for node in nodes if node.name in set(names)] == names
    num_computations = sum(
        node.type == NodeType.COMP and node.name != "idle"
        for trace in traces.traces
        for node in trace.nodes
    )
    assert num_computations == sum(map(len, orders))
    sent = messages(traces, NodeType.COMM_SEND)
    assert sent == messages(traces, NodeType.COMM_RECV)
    assert set(sent.values()) <= {1}


@settings(max_examples=examples(FEW))
@given(made=pipelines())
def test_sends_come_in_the_order_of_what_makes_them(made: PlacementCase):
    """The one slot of an NPU goes to the lowest number, so to what was ready first."""
    for trace in build_traces(made).traces:
        makers = [
            node.dependencies
            for node in trace.nodes
            if node.type == NodeType.COMM_SEND and "on its way" not in node.name
        ]
        assert makers == sorted(makers)
        assert all(len(each) == 1 for each in makers)


@settings(max_examples=examples(FEW))
@given(made=pipelines() | shared(pipelines()) | replicated())
def test_bytes_between_domains_are_those_of_the_simulator(made: PlacementCase):
    result = simulate(made.topology, made.workload, made.plan)

    # each part of a message is rounded to whole bytes
    num_bytes = build_traces(made).bytes_between_domains
    assert num_bytes == pytest.approx(result.communication_cost_bytes, rel=1e-3)


@settings(max_examples=examples(FEW))
@given(made=shared(pipelines()))
def test_messages_between_domains_join_gpus_of_equal_place(made: PlacementCase):
    traces = build_traces(made)
    size = made.gpus_per_domain
    between = [
        (source, target, num_bytes)
        for _, source, target, num_bytes in messages(traces, NodeType.COMM_SEND)
        if source // size != target // size
    ]

    assert all(source % size == target % size for source, target, _ in between)
    assert len({num_bytes for _, _, num_bytes in between}) <= 1
    assert messages(traces, NodeType.COMM_SEND) == messages(traces, NodeType.COMM_RECV)


@settings(max_examples=examples(FEW))
@given(made=shared(pipelines()) | replicated())
def test_all_members_of_a_group_join_its_collectives_alike(made: PlacementCase):
    traces = build_traces(made)
    joined: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for rank, trace in enumerate(traces.traces):
        for node in trace.nodes:
            if "pg_name" in node.attributes:
                figures = node.unsigned64("comm_type"), node.unsigned64("comm_size")
                joined[int(node.text("pg_name"))][rank].append(figures)

    assert {group: set(ranks) for group, ranks in joined.items()} == {
        group: set(members) for group, members in traces.groups.items()
    }
    for of_rank in joined.values():
        first, *others = of_rank.values()
        assert all(other == first for other in others)


def test_all_gpus_of_a_device_wait_for_all_parts_where_those_queue():
    """Without tensor sums nothing else would hold back who gets the first part."""
    made = on_gpus(0, 1, parallelism=Parallelism(data=4))
    size = made.gpus_per_domain

    def told(traces: TraceSet) -> set[tuple[int, int]]:
        return {
            (source % size, target % size)
            for _, source, target, num_bytes in messages(traces, NodeType.COMM_SEND)
            if num_bytes == 1
        }

    others = {1, 2, 3}
    whole = {(rank, 0) for rank in others} | {(0, rank) for rank in others}
    assert told(build_traces(made)) == whole
    assert told(build_traces(without_queues(made))) == set()
    sums_up = replace(made, plan=replace(made.plan, parallelism=(Parallelism(tensor=4),) * 3))
    assert told(build_traces(sums_up)) == set()


def test_devices_of_a_domain_stand_so_that_neighbours_have_equal_places():
    """Two devices a domain: forwards in A, backwards in B, forwards in C."""
    made = on_gpus(0, 0, 1, 1, 2, 2, parallelism=Parallelism(tensor=2, pipeline=2))
    layout = Layout(made)

    assert layout.ranks == ((0, 1), (2, 3), (6, 7), (4, 5), (8, 9), (10, 11))
    assert layout.paths(1, 2) == [(2, 6), (3, 7)]
    assert layout.paths(4, 3) == [(8, 4), (9, 5)]


def test_groups_of_the_same_members_have_tags_of_their_own():
    draft = Draft(num_npus=2, peak_flops_per_s=1e12)
    numbers = [draft.group((0, 1), purpose) for purpose in range(500)]

    assert len({number % 500 for number in numbers}) == 500
    assert draft.group((0, 1), 7) == numbers[7]
    with pytest.raises(ValueError, match="must be in at most 500 groups"):
        draft.group((0, 1), 500)


@settings(max_examples=examples(FEW))
@given(made=pipelines() | shared(pipelines()))
def test_a_trace_set_is_the_same_whenever_it_is_made(made: PlacementCase):
    assert build_traces(made) == build_traces(made)
