"""Execution traces hold the plan: operations in order, messages in pairs, readable files."""

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given, settings
from sharing import FEW, gpus
from strategies import plan, unit_workload, world
from trace_cases import pipelines, replicated, shared

from astra_sim.execution_trace import CollectiveType, NodeType, TraceNode, read_traces
from astra_sim.workload.roofline import roofline_ns
from calibration.astra_config import system_config
from calibration.case import Case, computing_times_s
from calibration.chakra_trace import TraceSet, build_traces, write_traces
from calibration.traces.npu_layout import Layout
from calibration.traces.trace_nodes import Draft, NodeList, whole_ns
from des import GradientExchange, Parallelism, Placement, Transport, simulate
from des.buckets import buckets_of
from des.feasibility import orders_of_plan

LINKS = {"AB": (10.0, 1.0), "BA": (10.0, 1.0), "BC": (10.0, 1.0), "CB": (10.0, 1.0)}


def case(*domain_of_layer: int, num_microbatches: int = 1, schedule: str = "1f1b") -> Case:
    """Layers of 1 s and 2 s on domains A, B and C in a row; messages of 20 bytes take 2 s + 1 s."""
    workload = unit_workload(
        [(1.0, 2.0)] * len(domain_of_layer), num_microbatches=num_microbatches, message_bytes=20.0
    )
    return Case(
        topology=world("ABC", LINKS),
        workload=workload,
        plan=plan(*domain_of_layer, schedule=schedule),
    )


def on_gpus(*domain_of_layer: int, parallelism: Parallelism, num_gpus: int = 4) -> Case:
    """The same at granularity ``gpu``."""
    made = case(*domain_of_layer)
    domains = tuple(gpus(name, num_gpus, (1e9, 1e-6)) for name in "ABC")
    return replace(
        made,
        topology=replace(made.topology, domains=domains),
        plan=replace(made.plan, parallelism=(parallelism,) * 3),
        granularity="gpu",
    )


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


@settings(max_examples=FEW)
@given(made=pipelines())
def test_every_worker_does_its_order_and_every_message_has_one_receiver(made: Case):
    """One computation after the other, each worker's in order; sends and receives match."""
    traces = build_traces(made)
    orders = orders_of_plan(made.topology, made.workload, made.plan)

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


@settings(max_examples=FEW)
@given(made=pipelines())
def test_sends_come_in_the_order_of_what_makes_them(made: Case):
    """The one slot of an NPU goes to the lowest number, so to what was ready first."""
    for trace in build_traces(made).traces:
        makers = [
            node.dependencies
            for node in trace.nodes
            if node.type == NodeType.COMM_SEND and "on its way" not in node.name
        ]
        assert makers == sorted(makers)
        assert all(len(each) == 1 for each in makers)


@settings(max_examples=FEW)
@given(made=pipelines() | shared(pipelines()) | replicated())
def test_bytes_between_domains_are_those_of_the_simulator(made: Case):
    result = simulate(made.topology, made.workload, made.plan)

    # each part of a message is rounded to whole bytes
    num_bytes = build_traces(made).bytes_between_domains
    assert num_bytes == pytest.approx(result.communication_cost_bytes, rel=1e-3)


@settings(max_examples=FEW)
@given(made=shared(pipelines()))
def test_messages_between_domains_join_gpus_of_equal_place(made: Case):
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


@settings(max_examples=FEW)
@given(made=shared(pipelines()) | replicated())
def test_all_members_of_a_group_join_its_collectives_alike(made: Case):
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


def collectives(traces: TraceSet, rank: int) -> list[TraceNode]:
    return [node for node in traces.traces[rank].nodes if node.type == NodeType.COMM_COLL]


def test_tensor_ranks_sum_up_after_each_pass_but_not_after_weight_gradients():
    """Two layers: F and B sum up 2 x 2 x 20 bytes in one collective, or 20 bytes four times."""
    made = on_gpus(0, 0, 1, 1, parallelism=Parallelism(tensor=2, data=2))
    made = replace(made, plan=replace(made.plan, exchange=GradientExchange()))
    for tensor_sums, sizes in (("pass", [40] * 2), ("layer", [10] * 8)):
        traces = build_traces(made, tensor_sums=tensor_sums)
        sums = [node for node in collectives(traces, 1) if "tensor" in node.name]

        assert [node.unsigned64("comm_size") for node in sums] == sizes
        assert {traces.groups[int(node.text("pg_name"))] for node in sums} == {(0, 1)}
        assert {node.unsigned64("comm_type") for node in sums} == {CollectiveType.ALL_REDUCE}

    halved = replace(made, plan=replace(made.plan, schedule="zb_h1"))
    names = [node.name for node in collectives(build_traces(halved), 1) if "tensor" in node.name]
    assert [name.split()[2][0] for name in names] == ["F", "D"]


def test_replicas_in_a_device_sum_up_their_gradients_by_tensor_rank():
    traces = build_traces(on_gpus(0, 0, 1, 1, parallelism=Parallelism(tensor=2, data=2)))
    (node,) = (node for node in collectives(traces, 3) if "gradient" in node.name)

    # two layers of a parameter each, halved over the tensor ranks, 2 bytes of gradient each
    assert node.name == "sum of gradient bucket 0 in the domain"
    assert node.unsigned64("comm_size") == 2
    assert traces.groups[int(node.text("pg_name"))] == (1, 3)


def test_replicas_on_domains_sum_up_in_rings_of_equal_place():
    """Reduce inside, sum up over domains, gather inside; a pass is cut where it makes a bucket."""
    made = on_gpus(0, 0, 0, 0, parallelism=Parallelism(tensor=2, data=2))
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    made = replace(
        made,
        workload=replace(made.workload, num_microbatches=2, layers=layers),
        plan=replace(
            made.plan,
            replicas=(Placement(domain_of_layer=(2,) * 4),),
            exchange=GradientExchange(bucket_bytes=4000.0),
        ),
    )
    traces = build_traces(made)
    exchanges = [node for node in collectives(traces, 1) if "gradient" in node.name]

    assert [node.unsigned64("comm_type") for node in exchanges] == [
        CollectiveType.REDUCE_SCATTER,
        CollectiveType.ALL_REDUCE,
        CollectiveType.ALL_GATHER,
    ] * 2
    assert [node.unsigned64("comm_size") for node in exchanges] == [2000, 1000, 1000] * 2
    assert [traces.groups[int(node.text("pg_name"))] for node in exchanges[:3]] == [
        (1, 3),
        (1, 9),
        (1, 3),
    ]
    halves = [node for node in traces.traces[1].nodes if node.name == "B0 of stage 0"]
    assert len(halves) == 2
    assert halves[0].id in exchanges[0].dependencies


def without_queues(made: Case) -> Case:
    """The same where messages never meet."""
    topology = made.topology
    rules = replace(topology.transport, sharing="none")
    return replace(made, topology=replace(topology, transport=rules))


def test_exchanges_come_in_turn_where_an_npu_has_one_slot():
    """Two buckets of the same domains: one by one, else side by side, whether they queue or not."""
    made = case(0, 0)
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    made = replace(
        made,
        workload=replace(made.workload, num_microbatches=2, layers=layers),
        plan=replace(
            made.plan,
            replicas=(Placement(domain_of_layer=(1, 1)),),
            exchange=GradientExchange(bucket_bytes=2000.0),
        ),
    )
    alone = replace(
        made,
        topology=replace(made.topology, transport=Transport(endpoints="one_in_flight")),
    )
    for traces, is_in_turn in (
        (build_traces(made), False),
        (build_traces(without_queues(made)), False),
        (build_traces(alone), True),
    ):
        first, second = collectives(traces, 0)
        assert (first.id in second.dependencies) is is_in_turn


def test_sums_inside_a_domain_come_in_turn_where_they_would_not_see_each_other():
    """Two buckets of two replicas in each of two domains: reduce, sum up between, gather.

    Where messages queue the links inside see to the order. Else the second reduction waits for the
    first, and the second gathering; sums between domains have each the links to themselves.
    """
    made = on_gpus(0, 0, parallelism=Parallelism(data=2))
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    made = replace(
        made,
        workload=replace(made.workload, num_microbatches=2, layers=layers),
        plan=replace(
            made.plan,
            replicas=(Placement(domain_of_layer=(1, 1)),),
            exchange=GradientExchange(bucket_bytes=2000.0),
        ),
    )
    kinds = ["reduction", "sum", "gathering"]
    for case_made, in_turn in ((made, []), (without_queues(made), [0, 2])):
        found = collectives(build_traces(case_made), 0)
        first, second = found[:3], found[3:]
        assert [node.name.split()[0] for node in first] == kinds
        assert [node.name.split()[0] for node in second] == kinds
        waits = [one.id in other.dependencies for one, other in zip(first, second, strict=True)]
        assert [position for position, wait in enumerate(waits) if wait] == in_turn


def test_sums_inside_a_domain_come_in_the_order_in_which_gradients_are_made():
    """A holds the first stage and the last one, whose gradients are made first."""
    made = without_queues(on_gpus(0, 1, 0, parallelism=Parallelism(data=2)))
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    made = replace(made, workload=replace(made.workload, layers=layers))

    numbers = [bucket.stages for bucket in buckets_of(made.workload, made.plan, 0)]
    sums = {node.name.split(" bucket ")[1]: node for node in collectives(build_traces(made), 0)}
    first, last = (sums[f"{numbers.index((stage,))} in the domain"] for stage in (0, 2))
    assert last.id in first.dependencies
    assert first.id not in last.dependencies


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


@settings(max_examples=FEW)
@given(made=pipelines() | shared(pipelines()))
def test_a_trace_set_is_the_same_whenever_it_is_made(made: Case):
    assert build_traces(made) == build_traces(made)


def chakra(module: str, *arguments: str) -> None:
    """Run a command of the Chakra package."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"chakra.src.{module}.{module}", *arguments],
        check=True,
        timeout=60,
    )


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, TraceSet]:
    """Traces with every kind of node, on disk."""
    made = on_gpus(0, 0, 1, 1, parallelism=Parallelism(tensor=2, data=2))
    traces = build_traces(made)
    write_traces(traces, tmp_path)
    return tmp_path, traces


def test_files_give_back_the_traces(written: tuple[Path, TraceSet]):
    folder, traces = written

    found = read_traces(folder / "trace", len(traces.traces))

    assert [trace.nodes for trace in found] == [trace.nodes for trace in traces.traces]
    assert len(list(folder.iterdir())) == len(traces.traces) == 12


def test_pauses_keep_their_microseconds_in_files(tmp_path: Path):
    """At granularity ``domain`` sums inside a domain are broadcasts of known length."""
    made = replace(on_gpus(0, 0, 1, 1, parallelism=Parallelism(data=4)), granularity="domain")
    layers = tuple(replace(layer, num_parameters=1e9) for layer in made.workload.layers)
    made = replace(made, workload=replace(made.workload, layers=layers))
    write_traces(build_traces(made), tmp_path, prefix="other")

    (pause,) = (
        node for node in read_traces(tmp_path / "other", 3)[0].nodes if "gradient" in node.name
    )
    # 4e9 bytes in 6 steps of a quarter at 1e9 B/s, and 6 latencies of 1 us
    assert pause.duration_ns == 6_000_006_000
    assert pause.unsigned64("comm_type") == CollectiveType.BROADCAST


def test_writing_into_no_folder_leaves_nothing(written: tuple[Path, TraceSet]):
    folder, traces = written
    with pytest.raises(OSError, match="No such file"):
        write_traces(traces, folder / "missing")


def test_chakra_jsonizer_reads_the_files(written: tuple[Path, TraceSet]):
    folder, traces = written
    target = folder / "trace.json"

    chakra("jsonizer", f"--input_filename={folder / 'trace.1.et'}", f"--output_filename={target}")

    text = target.read_text("utf-8")
    records = [json.loads(each) for each in re.split(r"(?<=\n\})(?=\{)", text)]
    assert [record["name"] for record in records[1:]] == [
        node.name for node in traces.traces[1].nodes
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "graphml",
        pytest.param(
            "dot",
            marks=pytest.mark.skipif(which("dot") is None, reason="needs Graphviz's dot"),
        ),
    ],
)
def test_chakra_visualizer_reads_the_files(written: tuple[Path, TraceSet], kind: str):
    folder, traces = written
    target = folder / f"trace.{kind}"

    chakra("visualizer", f"--input_filename={folder / 'trace.1.et'}", f"--output_filename={target}")

    text = target.read_text("utf-8")
    assert all(node.name in text for node in traces.traces[1].nodes)
