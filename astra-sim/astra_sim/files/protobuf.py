"""Records of execution traces, read by the protobuf library: any form, and what is wrong."""

from collections.abc import Iterable
from typing import Any

from chakra.schema.protobuf import et_def_pb2
from google.protobuf.message import DecodeError

from astra_sim.files.errors import NodeError
from astra_sim.files.trace_records import NodeFields


def node_fields(record: bytes) -> NodeFields:
    """Read a ``Node``.

    Raises
    ------
    NodeError
        If the record is no such message.
    """
    try:
        node = et_def_pb2.Node.FromString(record)
    except DecodeError as error:
        raise NodeError(str(error)) from error
    dependencies = (*node.ctrl_deps, *node.data_deps)
    attributes = _attributes(node.attr)
    return node.id, node.name, node.type, dependencies, node.duration_micros, attributes


def _attributes(records: Iterable[Any]) -> dict[str, Any]:
    """Read attributes; of several with one name the first counts."""
    attributes: dict[str, Any] = {}
    for record in records:
        name = record.name
        if name not in attributes:
            attributes[name] = _value(record)
    return attributes


def _value(record: Any) -> Any:
    kind = record.WhichOneof("value")
    if kind is None:
        return None
    value = getattr(record, kind)
    if kind == "bool_list":
        return tuple(value.values)
    return list(value.values) if kind.endswith("_list") else value
