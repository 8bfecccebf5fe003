"""Execution traces on disk, in the messages of the Chakra package."""

import io
from pathlib import Path
from typing import Any

from astra_sim.files.execution_trace import AttributeValue, Trace, TraceNode
from calibration.reference.trace_set import TraceSet
from des.base.atomic_write import write_together
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from chakra.schema.protobuf import et_def_pb2
    from chakra.src.third_party.utils import protolib


SCHEMA_VERSION = "0.0.4"
NS_PER_MICROSECOND = 1000
FIELDS = {
    "num_ops": "uint64_val",
    "tensor_size": "uint64_val",
    "comm_type": "uint64_val",
    "comm_size": "uint64_val",
    "comm_src": "uint32_val",
    "comm_dst": "uint32_val",
    "comm_tag": "uint32_val",
    "pg_name": "string_val",
    "is_cpu_op": "bool_val",
}
"""Field of every attribute: the type that ASTRA-sim wants."""


def write_traces(traces: TraceSet, folder: Path, prefix: str = "trace") -> None:
    """Write ``prefix.0.et``, ``prefix.1.et`` and so on, all or none of them.

    `astra_sim.files.execution_trace.read_traces` gives back the same nodes.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    files = {
        folder / f"{prefix}.{rank}.et": encoded(trace) for rank, trace in enumerate(traces.traces)
    }
    write_together(files, synced=False)  # up to a thousand files, made again in seconds


def encoded(trace: Trace) -> bytes:
    """Content of one file: a record of metadata, then one for each node."""
    content = io.BytesIO()
    protolib.encodeMessage(content, et_def_pb2.GlobalMetadata(version=SCHEMA_VERSION))
    for node in trace.nodes:
        protolib.encodeMessage(content, _record(node))
    return content.getvalue()


def _record(node: TraceNode) -> Any:
    duration_micros, rest_ns = divmod(node.duration_ns, NS_PER_MICROSECOND)
    if rest_ns:
        raise ValueError(
            f"trace: node {node.id} {node.name!r}: duration_ns must be whole microseconds in a "
            f"file, got {node.duration_ns}"
        )
    return et_def_pb2.Node(
        id=node.id,
        name=node.name,
        type=node.type,
        data_deps=node.dependencies,
        duration_micros=duration_micros,
        attr=[_attribute(name, value) for name, value in node.attributes.items()],
    )


def _attribute(name: str, value: AttributeValue) -> Any:
    return et_def_pb2.AttributeProto(name=name, **{FIELDS[name]: value})
