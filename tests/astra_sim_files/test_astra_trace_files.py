"""Files of execution traces: graphs as they were written, and damaged files."""

import json
from itertools import accumulate
from pathlib import Path

import pytest
from chakra.schema.protobuf.et_def_pb2 import AttributeProto, Node
from hypothesis import example, given
from hypothesis import strategies as st
from written_traces import METADATA, framed, written

from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.execution_trace import NodeType, Trace, TraceNode, read_trace, read_traces


def trace_node(node_id: int = 0, **changes: object) -> TraceNode:
    fields: dict[str, object] = {
        "id": node_id,
        "name": "",
        "type": NodeType.COMP,
        "dependencies": (),
        "duration_ns": 0,
        "is_cpu": False,
        "attributes": {},
    }
    return TraceNode(**(fields | changes))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "must begin with a metadata record, got an empty file"),
        ([METADATA], "at least one node must be free of dependencies, got none among 0 nodes"),
        (
            [METADATA, Node(id=1, data_deps=[2]), Node(id=2, ctrl_deps=[1])],
            "at least one node must be free of dependencies, got none among 2 nodes",
        ),
        (
            [METADATA, Node(id=1), Node(id=2, name="add", ctrl_deps=[1, 9, 8])],
            "node 2 'add': dependencies must be nodes of the file, got 8",
        ),
    ],
)
def test_a_graph_that_cannot_start_is_refused(tmp_path, messages, reason):
    with pytest.raises(AbortError, match=rf"trace\.0\.et: {reason}$"):
        read_trace(written(tmp_path, messages))


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ((trace_node(2), trace_node(1)), r"ids must be ascending, .*, got 1 after 2"),
        ((trace_node(1), trace_node(1)), r"ids must be ascending, .*, got 1 after 1"),
        ((trace_node(2**64),), r"within \[0, 2\*\*64\), got 18446744073709551616"),
        ((trace_node(-1),), r"within \[0, 2\*\*64\), got -1"),
        ((trace_node(3, duration_ns=-5),), "node 3 '': duration_ns must not be negative, got -5"),
        (
            (trace_node(0), trace_node(1), trace_node(2, dependencies=(1, 0))),
            r"node 2 '': dependencies must be ascending, got \(1, 0\)",
        ),
        (
            (trace_node(0), trace_node(1, dependencies=(0, 0))),
            r"node 1 '': dependencies must be ascending, got \(0, 0\)",
        ),
        ((), "at least one node must be free of dependencies"),
    ],
)
def test_a_trace_built_by_hand_is_checked(nodes, reason):
    with pytest.raises(AbortError, match=f"^trace: .*{reason}"):
        Trace(nodes=nodes)


def test_every_rank_has_its_file(tmp_path):
    for rank in range(2):
        written(tmp_path, [METADATA, Node(id=rank)]).rename(tmp_path / f"run.{rank}.et")

    traces = read_traces(tmp_path / "run", 2)

    assert [trace.nodes[0].id for trace in traces] == [0, 1]
    with pytest.raises(AstraSimError, match=r"run\.2\.et: trace cannot be read: No such") as caught:
        read_traces(str(tmp_path / "run"), 3)
    assert caught.value.exit_code == 1


def test_a_file_cut_within_a_record_is_refused_with_its_place(tmp_path):
    """At every byte; a cut between two records leaves a shorter file that is whole."""
    messages = [METADATA, Node(id=1, name="a" * 200), Node(id=2, data_deps=[1]), Node(id=3)]
    sizes = [len(framed(message)) for message in messages]
    ends = list(accumulate(sizes))
    path = written(tmp_path, messages)
    content = path.read_bytes()
    for size in range(1, len(content)):
        path.write_bytes(content[:size])
        if size in ends[1:]:
            assert len(read_trace(path).nodes) == ends.index(size)
        elif size > ends[0]:
            number = sum(end < size for end in ends)
            place = rf"trace\.0\.et: record {number} at byte {ends[number - 1]}: "
            with pytest.raises(AbortError, match=place + "(length is cut short|must have)"):
                read_trace(path)


def test_the_message_of_a_short_record_says_how_much_is_missing(tmp_path):
    path = written(tmp_path, [METADATA, Node(name="abcdef")])
    path.write_bytes(path.read_bytes()[:-2])

    with pytest.raises(AbortError, match=r"record 1 at byte 8: must have 8 bytes, got 6$"):
        read_trace(path)


def test_a_length_has_at_most_five_bytes(tmp_path):
    path = written(tmp_path, [METADATA])
    path.write_bytes(path.read_bytes() + b"\x80" * 5 + b"\x00")

    with pytest.raises(AbortError, match="record 1 at byte 8: length must have at most 5 bytes"):
        read_trace(path)


@pytest.mark.parametrize("record", [b"\x02\x12\x09", b"\x03\x12\x01\xff"])
def test_a_record_that_is_no_message_is_refused_with_its_place(tmp_path, record):
    """A name that claims more bytes than there are, and one that is not UTF-8."""
    path = written(tmp_path, [METADATA])
    path.write_bytes(path.read_bytes() + record)

    with pytest.raises(AbortError, match=r"trace\.0\.et: record 1 at byte 8: "):
        read_trace(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("traces")


@st.composite
def graphs(draw) -> list[Node]:
    """Nodes in any order with dependencies on any of them, at least one of them free."""
    ids = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8, unique=True))
    dependencies = st.lists(st.sampled_from(ids), max_size=4)
    tags = st.integers(-(2**63), 2**63 - 1)
    nodes = [
        Node(
            id=node_id,
            name=draw(st.text(max_size=4)),
            type=draw(st.integers(0, 9)),
            ctrl_deps=draw(dependencies) if position else [],
            data_deps=draw(dependencies) if position else [],
            duration_micros=draw(st.integers(0, 2**40)),
            attr=[AttributeProto(name="comm_tag", sint64_val=draw(tags))],
        )
        for position, node_id in enumerate(ids)
    ]
    return draw(st.permutations(nodes))


@given(nodes=graphs())
def test_any_graph_is_read_as_it_was_written(folder, nodes):
    trace = read_trace(written(folder, [METADATA, *nodes]))

    by_id = {node.id: node for node in nodes}
    assert [node.id for node in trace.nodes] == sorted(by_id)
    for node in trace.nodes:
        original = by_id[node.id]
        assert (node.name, node.type) == (original.name, original.type)
        assert node.dependencies == tuple(sorted({*original.ctrl_deps, *original.data_deps}))
        assert node.duration_ns == 1000 * original.duration_micros
        tag = node.signed32("comm_tag")
        assert -(2**31) <= tag < 2**31
        assert (tag - original.attr[0].sint64_val) % 2**32 == 0


def outcome(path: Path) -> Trace | AbortError:
    """Result of reading: a trace or a refusal; any other error is raised."""
    try:
        return read_trace(path)
    except AbortError as error:
        return error


@given(junk=st.binary(max_size=40))
@example(junk=b"\xff" * 40)
def test_junk_after_a_trace_is_refused_with_the_file_or_made_of_records(folder, junk):
    path = folder / "junk.0.et"
    path.write_bytes(framed(METADATA) + framed(Node(id=1)) + junk)

    read_or_refused = outcome(path)

    if isinstance(read_or_refused, AbortError):
        assert str(read_or_refused).startswith(f"{path}: ")
    else:
        assert 1 <= len(read_or_refused.nodes) <= 1 + len(junk)


def test_every_golden_trace_is_read_but_those_that_the_original_refuses_too(golden_astra):
    refused = {}
    for case in sorted(golden_astra.glob("astra/*/expected.json")):
        num_npus = json.loads(case.read_text())["npus"]
        try:
            traces = read_traces(case.parent / "trace", num_npus)
        except AstraSimError as error:
            refused[case.parent.name] = error.exit_code
        else:
            assert len(traces) == num_npus

    assert refused == {"err-missing-trace": 1, "err-unknown-dependency": 134}
