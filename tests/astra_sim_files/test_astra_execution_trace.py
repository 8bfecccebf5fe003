"""Chakra execution traces: nodes and their attributes, as the ASTRA-sim engine reads them."""

from pathlib import Path

import pytest
from chakra.schema.protobuf import et_def_pb2
from chakra.schema.protobuf.et_def_pb2 import AttributeProto, Node
from written_traces import METADATA, written

from astra_sim.files.errors import AbortError, AstraSimError, NodeError
from astra_sim.files.execution_trace import CollectiveType, NodeType, Trace, TraceNode, read_trace

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


def read(folder: Path, *nodes: Node) -> Trace:
    return read_trace(written(folder, [METADATA, *nodes]))


def node_of(folder: Path, *attributes: AttributeProto) -> TraceNode:
    """The one node of a trace, with these attributes."""
    return read(folder, Node(id=7, name="it", attr=attributes)).nodes[0]


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("traces")
