"""Chakra execution traces, written by the real Chakra package and read by the ASTRA-sim engine."""

import io
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from chakra.schema.protobuf import et_def_pb2
from chakra.schema.protobuf.et_def_pb2 import AttributeProto, GlobalMetadata, Node
from chakra.src.third_party.utils.protolib import encodeMessage
from hypothesis import example, given
from hypothesis import strategies as st

from astra_sim.files.errors import AbortError, AstraSimError, NodeError
from astra_sim.files.execution_trace import (
    CollectiveType,
    NodeType,
    Trace,
    TraceNode,
    read_trace,
    read_traces,
)

METADATA = GlobalMetadata(version="0.0.4")
INTEGER_KINDS = (
    "int32_val",
    "int64_val",
    "uint32_val",
    "uint64_val",
    "sint32_val",
    "sint64_val",
    "fixed32_val",
    "fixed64_val",
    "sfixed32_val",
    "sfixed64_val",
)


def framed(message) -> bytes:
    """A message after its length, as the package writes it."""
    stream = io.BytesIO()
    encodeMessage(stream, message)
    return stream.getvalue()


def written(folder: Path, messages: Sequence[object]) -> Path:
    path = folder / "trace.0.et"
    path.write_bytes(b"".join(framed(message) for message in messages))
    return path


def read(folder: Path, *nodes: Node) -> Trace:
    return read_trace(written(folder, [METADATA, *nodes]))


def node_of(folder: Path, *attributes: AttributeProto) -> TraceNode:
    """The one node of a trace, with these attributes."""
    return read(folder, Node(id=7, name="it", attr=attributes)).nodes[0]


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


def test_a_trace_is_its_nodes_after_the_metadata(tmp_path):
    trace = read(
        tmp_path,
        Node(id=2**64 - 1, name="last", type=et_def_pb2.COMM_SEND_NODE, data_deps=[5, 3, 5]),
        Node(id=3, name="load", type=et_def_pb2.MEM_LOAD_NODE, start_time_micros=9),
        Node(
            id=5,
            name="matmul",
            type=et_def_pb2.COMP_NODE,
            ctrl_deps=[3],
            data_deps=[3],
            duration_micros=12,
            attr=[
                AttributeProto(name="is_cpu_op", bool_val=True),
                AttributeProto(name="num_ops", int64_val=4),
            ],
        ),
    )

    assert trace.source == str(tmp_path / "trace.0.et")
    assert [node.id for node in trace.nodes] == [3, 5, 2**64 - 1]
    assert [node.name for node in trace.nodes] == ["load", "matmul", "last"]
    assert [node.dependencies for node in trace.nodes] == [(), (3,), (3, 5)]
    assert [node.type for node in trace.nodes] == [2, 4, 5]
    assert [node.duration_ns for node in trace.nodes] == [0, 12_000, 0]
    assert [node.is_cpu for node in trace.nodes] == [False, True, False]
    assert trace.nodes[1].attributes == {"is_cpu_op": True, "num_ops": 4}


def test_node_types_and_collectives_are_those_of_the_schema():
    nodes = {name.removesuffix("_NODE"): code for name, code in et_def_pb2.NodeType.items()}

    assert {kind.name: kind.value for kind in NodeType} == nodes
    assert {kind.name: kind.value for kind in CollectiveType} == dict(
        et_def_pb2.CollectiveCommType.items()
    )


def test_an_unknown_type_number_is_read(tmp_path):
    """Only issuing such a node is an error."""
    assert read(tmp_path, Node(id=1, type=23)).nodes[0].type == 23


def test_dependencies_may_be_packed_or_not(tmp_path):
    """Field 5 as a varint each (tag 0x28) and as one packed block (tag 0x2a)."""
    loose = bytes([0x08, 9, 0x28, 4, 0x28, 3])
    packed = bytes([0x08, 9, 0x2A, 2, 4, 3])
    for record in (loose, packed):
        path = written(tmp_path, [METADATA, Node(id=3), Node(id=4)])
        path.write_bytes(path.read_bytes() + bytes([len(record)]) + record)

        assert read_trace(path).nodes[-1].dependencies == (3, 4)


def test_the_first_record_counts_as_metadata_whatever_it_is(tmp_path):
    trace = read_trace(written(tmp_path, [Node(id=1, name="lost"), Node(id=2, name="first")]))

    assert [node.name for node in trace.nodes] == ["first"]


def test_of_two_records_with_one_id_the_later_wins_and_dependencies_accumulate(tmp_path):
    trace = read(
        tmp_path,
        Node(id=1),
        Node(id=2),
        Node(id=4, name="early", duration_micros=5, data_deps=[2]),
        Node(id=4, name="late", ctrl_deps=[1]),
    )

    assert [node.name for node in trace.nodes] == ["", "", "late"]
    assert trace.nodes[-1].duration_ns == 0
    assert trace.nodes[-1].dependencies == (1, 2)


def test_durations_wrap_as_unsigned_64_bit_nanoseconds(tmp_path):
    assert read(tmp_path, Node(duration_micros=2**61 + 1)).nodes[0].duration_ns == 1000


@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_any_integer_kind_is_an_integer(tmp_path, kind):
    node = node_of(tmp_path, AttributeProto(name="comm_size", **{kind: 123}))

    assert node.unsigned64("comm_size") == node.unsigned32("comm_size") == 123
    assert node.signed32("comm_size") == 123


def test_a_bool_is_an_integer(tmp_path):
    node = node_of(tmp_path, AttributeProto(name="comm_size", bool_val=True))

    assert node.unsigned64("comm_size") == 1


@pytest.mark.parametrize(
    ("value", "unsigned64", "unsigned32", "signed32"),
    [
        (-1, 2**64 - 1, 2**32 - 1, -1),
        (2**31, 2**31, 2**31, -(2**31)),
        (2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1),
        (2**32 + 5, 2**32 + 5, 5, 5),
        (-(2**63), 2**63, 0, 0),
    ],
)
def test_integers_wrap_to_the_width_that_is_wanted(
    tmp_path, value, unsigned64, unsigned32, signed32
):
    node = node_of(tmp_path, AttributeProto(name="comm_tag", int64_val=value))

    assert node.unsigned64("comm_tag") == unsigned64
    assert node.unsigned32("comm_tag") == unsigned32
    assert node.signed32("comm_tag") == signed32


@pytest.mark.parametrize(
    ("attribute", "came"),
    [
        (AttributeProto(name="comm_size", double_val=4.0), r"4\.0"),
        (AttributeProto(name="comm_size", float_val=4.0), r"4\.0"),
        (AttributeProto(name="comm_size", string_val="4"), "'4'"),
        (AttributeProto(name="comm_size", bytes_val=b"4"), "b'4'"),
        (AttributeProto(name="comm_size"), "None"),
        (
            AttributeProto(name="comm_size", int64_list=et_def_pb2.Int64List(values=[4])),
            r"\[4\]",
        ),
        (AttributeProto(name="other", int64_val=4), "nothing"),
    ],
)
def test_what_is_no_integer_is_refused_when_it_is_wanted(tmp_path, attribute, came):
    node = node_of(tmp_path, attribute)

    for read_integer in (node.unsigned64, node.unsigned32, node.signed32):
        with pytest.raises(
            NodeError, match=rf"^node 7 'it': comm_size must be an integer, got {came}$"
        ):
            read_integer("comm_size")


def test_an_absent_attribute_has_a_default_but_a_wrong_one_has_not(tmp_path):
    node = node_of(tmp_path, AttributeProto(name="comm_src", string_val="3"))

    assert node.unsigned32("comm_dst", 5) == 5
    with pytest.raises(NodeError, match="comm_src must be an integer, got '3'"):
        node.unsigned32("comm_src", 5)


def test_of_two_attributes_with_one_name_the_first_counts(tmp_path):
    node = node_of(
        tmp_path,
        AttributeProto(name="comm_size", uint64_val=1),
        AttributeProto(name="comm_size", uint64_val=2),
    )

    assert node.unsigned64("comm_size") == 1


def test_a_group_name_must_be_a_string(tmp_path):
    assert node_of(tmp_path, AttributeProto(name="pg_name", string_val="3")).text("pg_name") == "3"
    assert node_of(tmp_path).text("pg_name", "") == ""
    with pytest.raises(NodeError, match="node 7 'it': pg_name must be a string, got 3"):
        node_of(tmp_path, AttributeProto(name="pg_name", int64_val=3)).text("pg_name", "")


def test_involved_dimensions_must_be_a_list_of_bools(tmp_path):
    """Anything else ends the original with exit code 1, at once."""
    flags = AttributeProto(name="involved_dim", bool_list=et_def_pb2.BoolList(values=[True, False]))

    assert node_of(tmp_path, flags).flags("involved_dim", (True,)) == (True, False)
    assert node_of(tmp_path).flags("involved_dim", (True,) * 4) == (True,) * 4
    wrong = node_of(tmp_path, AttributeProto(name="involved_dim", bool_val=True))
    with pytest.raises(AstraSimError, match="involved_dim must be a bool_list, got True") as caught:
        wrong.flags("involved_dim", (True,))
    assert caught.value.exit_code == 1


def test_a_processor_flag_of_another_type_is_refused_at_once(tmp_path):
    attributes = [AttributeProto(name="is_cpu_op", string_val="yes")]

    with pytest.raises(
        AbortError,
        match=r"trace\.0\.et: record 2 at byte 11: node 8 '': is_cpu_op must be an integer, got",
    ):
        read(tmp_path, Node(id=1), Node(id=8, attr=attributes))


def test_an_integer_is_a_processor_flag(tmp_path):
    assert node_of(tmp_path, AttributeProto(name="is_cpu_op", int32_val=2)).is_cpu
    assert not node_of(tmp_path, AttributeProto(name="is_cpu_op", int32_val=0)).is_cpu


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
    """What reading comes to: a trace or a refusal; any other error is raised."""
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
