"""Execution traces as the Chakra package writes them: nodes, and a file for every NPU.

A node is the package's own message. Sizes are in bytes, durations in microseconds, as in the files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from chakra.schema.protobuf import et_def_pb2
from chakra.schema.protobuf.et_def_pb2 import AttributeProto, Node
from chakra.src.third_party.utils.protolib import encodeMessage

SCHEMA_VERSION = "0.0.4"


@dataclass(frozen=True, slots=True)
class As:
    """A value of an attribute under a chosen field of ``AttributeProto``."""

    field: str
    value: object


Value = bool | int | float | str | bytes | Sequence[bool] | As
Attributes = Mapping[str, Value]
NO_MORE: Attributes = MappingProxyType({})


def node(
    id: int,
    type: et_def_pb2.NodeType,
    deps: Iterable[int] = (),
    *,
    attributes: Attributes = NO_MORE,
    duration_us: int = 0,
    control_deps: Iterable[int] = (),
) -> Node:
    """Any node; integers become ``int64_val`` and sequences of bools ``bool_list``."""
    made = Node(id=id, name=f"node {id}", type=type, duration_micros=duration_us)
    made.data_deps.extend(deps)
    made.ctrl_deps.extend(control_deps)
    made.attr.extend(attribute(name, value) for name, value in attributes.items())
    return made


def attribute(name: str, value: Value) -> AttributeProto:
    """One attribute."""
    made = AttributeProto(name=name)
    match value:
        case As(field=field, value=inner) if field.endswith("_list"):
            getattr(made, field).values.extend(inner)
            getattr(made, field).SetInParent()
        case As(field=field, value=inner):
            setattr(made, field, inner)
        case bool():
            made.bool_val = value
        case int():
            made.int64_val = value
        case float():
            made.double_val = value
        case str():
            made.string_val = value
        case bytes():
            made.bytes_val = value
        case _:
            made.bool_list.values.extend(value)
            made.bool_list.SetInParent()
    return made


def compute(
    id: int, duration_us: int, deps: Iterable[int] = (), *, attributes: Attributes = NO_MORE
) -> Node:
    """A computation, on the GPU unless an attribute ``is_cpu_op`` says otherwise."""
    return node(id, et_def_pb2.COMP_NODE, deps, attributes=attributes, duration_us=duration_us)


def send(
    id: int,
    target: int,
    num_bytes: int,
    tag: int,
    deps: Iterable[int] = (),
    *,
    attributes: Attributes = NO_MORE,
) -> Node:
    """Send a message from the NPU of the file."""
    message = {"comm_dst": target, "comm_size": num_bytes, "comm_tag": tag}
    return node(id, et_def_pb2.COMM_SEND_NODE, deps, attributes={**message, **attributes})


def receive(
    id: int,
    source: int,
    num_bytes: int,
    tag: int,
    deps: Iterable[int] = (),
    *,
    attributes: Attributes = NO_MORE,
) -> Node:
    """Receive a message at the NPU of the file."""
    message = {"comm_src": source, "comm_size": num_bytes, "comm_tag": tag}
    return node(id, et_def_pb2.COMM_RECV_NODE, deps, attributes={**message, **attributes})


def collective(
    id: int,
    kind: et_def_pb2.CollectiveCommType,
    num_bytes: int,
    deps: Iterable[int] = (),
    *,
    attributes: Attributes = NO_MORE,
    group: int | None = None,
    involved: Sequence[bool] | None = None,
    duration_us: int = 0,
) -> Node:
    """A collective of a group, or of all NPUs, over all dimensions unless ``involved`` says."""
    values: dict[str, Value] = {"comm_type": int(kind), "comm_size": num_bytes, **attributes}
    if group is not None:
        values["pg_name"] = str(group)
    if involved is not None:
        values["involved_dim"] = involved
    return node(id, et_def_pb2.COMM_COLL_NODE, deps, attributes=values, duration_us=duration_us)


def memory(id: int, num_bytes: int, deps: Iterable[int] = (), *, store: bool = False) -> Node:
    """Load from the remote memory, or store to it."""
    kind = et_def_pb2.MEM_STORE_NODE if store else et_def_pb2.MEM_LOAD_NODE
    return node(id, kind, deps, attributes={"tensor_size": num_bytes})


def write_traces(folder: Path, ranks: Iterable[Iterable[Node]]) -> Path:
    """Write ``trace.{rank}.et`` for every NPU; return the prefix the programs want."""
    prefix = folder / "trace"
    for rank, nodes in enumerate(ranks):
        with open(f"{prefix}.{rank}.et", "wb") as file:
            encodeMessage(file, et_def_pb2.GlobalMetadata(version=SCHEMA_VERSION))
            for each in nodes:
                encodeMessage(file, each)
    return prefix
