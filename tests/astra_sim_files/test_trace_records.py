"""Records read without the protobuf library, held against the library."""

import pytest
from astra_traces import ALL_REDUCE, collective, compute, receive, send
from chakra.schema.protobuf.et_def_pb2 import AttributeProto, Node
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_sim.files.errors import NodeError
from astra_sim.files.protobuf import node_fields
from astra_sim.files.trace_attributes import AttributeReader, UnusualError
from astra_sim.files.trace_records import NodeFields, node_fields_within

SCALARS = {
    "double_val": st.floats(),
    "float_val": st.floats(width=32),
    "int32_val": st.integers(-(2**31), 2**31 - 1),
    "int64_val": st.integers(-(2**63), 2**63 - 1),
    "uint32_val": st.integers(0, 2**32 - 1),
    "uint64_val": st.integers(0, 2**64 - 1),
    "sint32_val": st.integers(-(2**31), 2**31 - 1),
    "sint64_val": st.integers(-(2**63), 2**63 - 1),
    "fixed32_val": st.integers(0, 2**32 - 1),
    "fixed64_val": st.integers(0, 2**64 - 1),
    "sfixed32_val": st.integers(-(2**31), 2**31 - 1),
    "sfixed64_val": st.integers(-(2**63), 2**63 - 1),
    "bool_val": st.booleans(),
    "string_val": st.text(max_size=5),
    "bytes_val": st.binary(max_size=5),
}


def same(one: object, other: object) -> bool:
    """Whether two results are equal in value and type; texts of numbers make NaNs equal."""
    return repr(one) == repr(other)


def usual_node(record: bytes) -> NodeFields | None:
    """Read a ``Node``; None if it is damaged or unusual."""
    try:
        return node_fields_within(record, 0, len(record), AttributeReader())
    except (UnusualError, IndexError, UnicodeDecodeError):
        return None


@st.composite
def attributes(draw) -> AttributeProto:
    attribute = AttributeProto(name=draw(st.sampled_from(["a", "b", "", "comm_size"])))
    if draw(st.booleans()):
        attribute.doc_string = draw(st.text(max_size=3))
    kind = draw(st.sampled_from([*SCALARS, "bool_list", "nothing"]))
    if kind == "bool_list":
        attribute.bool_list.values.extend(draw(st.lists(st.booleans(), max_size=4)))
    elif kind != "nothing":
        setattr(attribute, kind, draw(SCALARS[kind]))
    return attribute


usual_nodes = st.builds(
    Node,
    id=st.integers(0, 2**64 - 1),
    name=st.text(max_size=4),
    type=st.integers(-(2**31), 2**31 - 1),
    ctrl_deps=st.lists(st.integers(0, 2**64 - 1), max_size=3),
    data_deps=st.lists(st.integers(0, 2**64 - 1), max_size=3),
    start_time_micros=st.integers(0, 2**64 - 1),
    duration_micros=st.integers(0, 2**64 - 1),
    attr=st.lists(attributes(), max_size=3),
)


@given(node=usual_nodes)
def test_any_usual_node_is_read_as_by_the_library(node):
    record = node.SerializeToString()

    assert usual_node(record) is not None
    assert same(usual_node(record), node_fields(record))


@settings(max_examples=examples(1000))
@given(node=usual_nodes, data=st.data())
def test_what_is_read_of_a_damaged_record_is_what_the_library_reads(node, data):
    """Bytes are changed, put in and cut away; where the library refuses, nothing is read."""
    record = bytearray(node.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(record)))
        removed = data.draw(st.integers(0, 2))
        record[place : place + removed] = data.draw(st.binary(max_size=2))
    read = usual_node(bytes(record))

    if read is not None:
        assert same(read, node_fields(bytes(record)))


tagged_nodes = st.builds(
    lambda tag, size, more: send(1, 2, size, tag, attributes=more),
    tag=st.sampled_from([0, 5, 127, 128, 300, 2**14, 2**35 - 1, 2**35, 2**63 - 1, -1]),
    size=st.sampled_from([1, 300]),
    more=st.sampled_from([{}, {"comm_tag": 2}, {"b": 200}, {"b": "H1"}, {"b": b"\x80\x01"}]),
)


@settings(max_examples=examples(200))
@given(nodes=st.lists(tagged_nodes, min_size=2, max_size=6), data=st.data())
def test_what_is_remembered_of_a_node_makes_no_difference_to_the_next(nodes, data):
    """Attributes are often those of a node before but for the last, also where one is damaged."""
    reader = AttributeReader()
    for node in nodes:
        record = bytearray(node.SerializeToString())
        if data.draw(st.booleans()):
            record[data.draw(st.integers(-8, -1))] = data.draw(st.sampled_from([0, 2, 72, 130]))
        try:
            read = node_fields_within(bytes(record), 0, len(record), reader)
        except (UnusualError, IndexError, UnicodeDecodeError):
            continue
        assert same(read, node_fields(bytes(record)))


@given(record=st.binary(max_size=30))
def test_what_is_read_of_junk_is_what_the_library_reads(record):
    read = usual_node(record)

    if read is not None:
        assert same(read, node_fields(record))


@pytest.mark.parametrize(
    "node",
    [
        Node(attr=[AttributeProto(name="a", int64_list=AttributeProto().int64_list)]),
        Node(inputs=Node().inputs),
    ],
)
def test_the_unusual_is_left_to_the_library(node):
    assert usual_node(node.SerializeToString()) is None
    assert node_fields(node.SerializeToString())[0] == 0


def test_the_library_says_what_is_no_message():
    assert usual_node(b"\x12\x09") is None
    with pytest.raises(NodeError):
        node_fields(b"\x12\x09")


@pytest.mark.parametrize(
    "node",
    [
        compute(3, 7, [1, 2]),
        send(1, 2, 2**40, 3, [0]),
        receive(0, 1, 100, 0),
        collective(300, ALL_REDUCE, 2**30, group=2),
    ],
)
def test_the_nodes_of_our_traces_are_usual(node):
    assert usual_node(node.SerializeToString()) is not None
