"""Chakra execution traces as ASTRA-sim reads them: one file of nodes for each rank.

A file is a sequence of records, each a base-128 varint byte length and a protobuf message: first
one ``GlobalMetadata``, then ``Node`` after ``Node``. The messages are those of the package
``mlc-chakra``.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from itertools import chain
from operator import lt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_sim.base.lazy import lazy
from astra_sim.base.values import dataclass, field_setters, replace
from astra_sim.files.errors import AbortError, AstraSimError, NodeError
from astra_sim.files.json_fields import shown
from astra_sim.files.trace_attributes import AttributeReader, UnusualError
from astra_sim.files.trace_records import (
    NodeFields,
    node_fields_within,
    record_extent,
    record_place,
)

if TYPE_CHECKING:
    from astra_sim.files import protobuf
else:
    protobuf = lazy("astra_sim.files.protobuf")

AttributeValue = int | float | str | bytes | tuple[bool, ...] | list[Any] | None
"""A bool_list is a tuple, any other list a list; None is an attribute without a value."""

NS_PER_MICROSECOND = 1000
NUM_UNSIGNED_64 = 2**64
"""Times and ids are unsigned 64-bit integers; what is beyond wraps around."""
NUM_UNSIGNED_32 = 2**32

IS_CPU = "is_cpu_op"


class NodeType(IntEnum):
    """Type of a node; traces may hold other numbers too."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class CollectiveType(IntEnum):
    """Values of the attribute ``comm_type``."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """One node of a rank's graph.

    ``dependencies`` are ids in ascending order, each once, whether of control or of data. A
    ``duration_ns`` of 0 stays 0. ``attributes`` are read when a node needs them, and refused then.
    """

    id: int
    name: str
    type: int
    dependencies: tuple[int, ...]
    duration_ns: int
    is_cpu: bool
    attributes: Mapping[str, AttributeValue]

    def unsigned64(self, attribute: str, default: int | None = None) -> int:
        """Read an integer attribute of any kind as an unsigned one of 64 bits."""
        return self._integer(attribute, default) % NUM_UNSIGNED_64

    def unsigned32(self, attribute: str, default: int | None = None) -> int:
        """Read an integer attribute of any kind as an unsigned one of 32 bits."""
        return self._integer(attribute, default) % NUM_UNSIGNED_32

    def signed32(self, attribute: str, default: int | None = None) -> int:
        """Read an integer attribute of any kind as a signed one of 32 bits."""
        half = NUM_UNSIGNED_32 // 2
        return (self._integer(attribute, default) + half) % NUM_UNSIGNED_32 - half

    def text(self, attribute: str, default: str | None = None) -> str:
        """Read an attribute that must be a string; a number in its place is refused.

        Raises
        ------
        NodeError
            If it is something else, or absent without a default.
        """
        value = self.attributes.get(attribute, default)
        if not isinstance(value, str):
            raise NodeError(self._refusal(attribute, "a string"))
        return value

    def flags(self, attribute: str, default: tuple[bool, ...]) -> tuple[bool, ...]:
        """Read an attribute that must be a list of truth values.

        Raises
        ------
        AstraSimError
            If it is something else, which ends the original at once.
        """
        value = self.attributes.get(attribute, default)
        if not isinstance(value, tuple):
            raise AstraSimError(self._refusal(attribute, "a bool_list"))
        return value

    def _integer(self, attribute: str, default: int | None) -> int:
        value = self.attributes.get(attribute, default)
        if not isinstance(value, int):
            raise NodeError(self._refusal(attribute, "an integer"))
        return value

    def _refusal(self, attribute: str, allowed: str) -> str:
        came = "nothing"
        if attribute in self.attributes:
            came = shown(self.attributes[attribute])
        return f"node {self.id} {self.name!r}: {attribute} must be {allowed}, got {came}"


_new: Callable[[type[TraceNode]], TraceNode] = TraceNode.__new__
(
    _put_id,
    _put_name,
    _put_type,
    _put_dependencies,
    _put_duration_ns,
    _put_is_cpu,
    _put_attributes,
) = field_setters(TraceNode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """All nodes of one rank, in ascending order of their ids.

    ``source`` is the file they come from, for messages.
    """

    nodes: tuple[TraceNode, ...]
    source: str = "trace"

    def __post_init__(self) -> None:
        nodes = self.nodes
        ids = [node.id for node in nodes]
        known = set(ids)
        dependencies = [node.dependencies for node in nodes if node.dependencies]
        if nodes and not (
            ids == sorted(known)
            and 0 <= ids[0] <= ids[-1] < NUM_UNSIGNED_64
            and min([node.duration_ns for node in nodes]) >= 0
            and known.issuperset(chain.from_iterable(dependencies))
            and all(map(_ascends, dependencies))
        ):
            self._refuse_first(known)
        if len(dependencies) == len(nodes):
            raise AbortError(
                f"{self.source}: at least one node must be free of dependencies, got none "
                f"among {len(nodes)} nodes"
            )

    def _refuse_first(self, known: set[int]) -> None:
        """Refuse the first node with something wrong."""
        last = -1
        for node in self.nodes:
            dependencies = node.dependencies
            if not last < node.id < NUM_UNSIGNED_64:
                raise AbortError(
                    f"{self.source}: ids must be ascending, distinct and within [0, 2**64), "
                    f"got {node.id} after {last}"
                )
            last = node.id
            if node.duration_ns < 0:
                self._refuse(node, f"duration_ns must not be negative, got {node.duration_ns}")
            if not known.issuperset(dependencies):
                absent = min(set(dependencies) - known)
                self._refuse(node, f"dependencies must be nodes of the file, got {absent}")
            if not _ascends(dependencies):
                self._refuse(node, f"dependencies must be ascending, got {shown(dependencies)}")

    def _refuse(self, node: TraceNode, reason: str) -> None:
        raise AbortError(f"{self.source}: node {node.id} {node.name!r}: {reason}")


def read_traces(prefix: str | Path, num_npus: int) -> tuple[Trace, ...]:
    """Read the traces of all ranks: ``prefix.0.et``, ``prefix.1.et`` and so on.

    Raises
    ------
    AstraSimError
        If one cannot be read.
    AbortError
        If one is refused.
    """
    attributes = AttributeReader()
    return tuple(_read(f"{prefix}.{rank}.et", attributes) for rank in range(num_npus))


def read_trace(path: str | Path) -> Trace:
    """Read the trace of one rank.

    Of nodes with the same id the last counts, and depends on what any of them does.

    Raises
    ------
    AstraSimError
        If the file cannot be read.
    AbortError
        If it is cut short or damaged (which the original does not notice), has no first record, a
        dependency on a node that is not there, or no node free of dependencies.
    """
    return _read(path, AttributeReader())


def _read(path: str | Path, attributes: AttributeReader) -> Trace:
    source = str(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise AstraSimError(f"{source}: trace cannot be read: {error.strerror}") from error
    found = list(_nodes(source, content, attributes))
    nodes = {node.id: node for node in found}
    if len(nodes) < len(found):
        nodes = {}
        for node in found:
            earlier = nodes.get(node.id, node).dependencies
            nodes[node.id] = replace(node, dependencies=_merge(earlier + node.dependencies))
    return Trace(source=source, nodes=tuple(map(nodes.__getitem__, sorted(nodes))))


def _nodes(source: str, content: bytes, attributes: AttributeReader) -> Iterator[TraceNode]:
    """Yield the nodes of a file: all records but the first, which is metadata whatever it holds."""
    if not content:
        raise AbortError(f"{source}: must begin with a metadata record, got an empty file")
    _, position = record_extent(source, content, 0, 0)
    number, end = 1, len(content)
    while position < end:
        offset = position
        length = content[position]
        if length < 0x80 and position + length < end:  # `record_extent` in place: most are short
            start, position = position + 1, position + 1 + length
        else:
            start, position = record_extent(source, content, offset, number)
        try:
            try:
                fields = node_fields_within(content, start, position, attributes)
            except (UnusualError, IndexError, UnicodeDecodeError):
                fields = protobuf.node_fields(content[start:position])
            node = _node(fields)
        except NodeError as error:
            raise AbortError(f"{source}: {record_place(number, offset)}: {error}") from error
        yield node
        number += 1


def _node(fields: NodeFields) -> TraceNode:
    number, name, kind, dependencies, duration_us, attributes = fields
    is_cpu = attributes.get(IS_CPU, False)
    node = _new(TraceNode)
    _put_id(node, number)
    _put_name(node, name)
    _put_type(node, kind)
    _put_dependencies(node, dependencies if len(dependencies) < 2 else _merge(dependencies))
    _put_duration_ns(node, duration_us * NS_PER_MICROSECOND % NUM_UNSIGNED_64)
    _put_is_cpu(node, bool(is_cpu))
    _put_attributes(node, attributes)
    if is_cpu is not False and is_cpu is not True:
        node.unsigned64(IS_CPU)  # refuses what is no integer
    return node


def _ascends(numbers: tuple[int, ...]) -> bool:
    if len(numbers) == 2:  # most nodes that have several have two
        return numbers[0] < numbers[1]
    return all(map(lt, numbers, numbers[1:]))


def _merge(dependencies: tuple[int, ...]) -> tuple[int, ...]:
    """Return dependencies in ascending order, each once."""
    return dependencies if _ascends(dependencies) else tuple(sorted(set(dependencies)))
