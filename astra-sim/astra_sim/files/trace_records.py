"""Records of execution traces in their usual form, read without the protobuf library.

Loading that library takes longer than many runs. What is unusual (lists other than of truth
values, inputs and outputs, unknown or damaged fields) is left to it: ``astra_sim.files.protobuf``.

References
----------
.. [1] Protocol Buffers documentation, "Encoding": keys, varints, length-delimited fields.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from astra_sim.files.errors import AbortError

NodeFields = tuple[int, str, int, tuple[int, ...], int, dict[str, Any]]
"""Id, name, type, dependencies as they come, microseconds and attributes of a node."""

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""Forms of a field on the wire, the lower three bits of its key."""

MAX_VARINT_BYTES = 10
MAX_CACHED_ATTRIBUTES = 4096

MAX_LENGTH_BYTES = 5
"""Bytes of a varint that fits 32 bits."""

_NO_ATTRIBUTES: dict[str, Any] = {}


class UnusualError(Exception):
    """A record that the library must read, or refuse."""


def record_extent(source: str, content: bytes, offset: int, number: int) -> tuple[int, int]:
    """Begin and end of the message of the record at an offset of a file, after its length.

    Raises
    ------
    AbortError
        If the length or the message is cut short; ``source`` and ``number`` name the record.
    """
    position, end = offset, len(content)
    length = shift = 0
    byte = 0x80
    while byte & 0x80:
        if position == end:
            raise AbortError(f"{source}: {record_place(number, offset)}: length is cut short")
        if position - offset == MAX_LENGTH_BYTES:
            raise AbortError(
                f"{source}: {record_place(number, offset)}: length must have at most "
                f"{MAX_LENGTH_BYTES} bytes, got more"
            )
        byte = content[position]
        length |= (byte & 0x7F) << shift
        position += 1
        shift += 7
    if position + length > end:
        raise AbortError(
            f"{source}: {record_place(number, offset)}: must have {length} bytes, "
            f"got {end - position}"
        )
    return position, position + length


def record_place(number: int, offset: int) -> str:
    """Words for a record of a file, for errors."""
    return f"record {number} at byte {offset}"


def usual_node(record: bytes) -> NodeFields | None:
    """Read a ``Node``; None if it is damaged or unusual.

    Examples
    --------
    >>> usual_node(bytes.fromhex("08071203616464180428033807"))
    (7, 'add', 4, (3,), 7, {})
    """
    try:
        return node_fields_within(record, 0, len(record), {})
    except (UnusualError, IndexError, UnicodeDecodeError):
        return None


def node_fields_within(
    content: bytes, position: int, stop: int, known: dict[bytes, dict[str, Any]]
) -> NodeFields:
    """Read the ``Node`` between two positions of a file.

    ``known`` holds the attributes of nodes read before by their bytes: many nodes have the same.

    Raises
    ------
    UnusualError, IndexError, UnicodeDecodeError
        If the record is damaged, or of unusual form: libraries write attributes last.
    """
    number, name, kind, duration_us = 0, "", 0, 0
    dependencies: tuple[int, ...] = ()
    attributes = _NO_ATTRIBUTES
    while position < stop:
        key = content[position]
        if key == 0x52:
            rest = content[position:stop]
            if rest not in known:
                known[rest] = _attributes(rest)
            return number, name, kind, dependencies, duration_us, known[rest]
        value = content[position + 1]  # `_varint` in place: nearly all have one byte
        position += 2
        if value >= 0x80:
            value, position = _varint(content, position - 1)
        if key == 0x08:
            number = value
        elif key in (0x22, 0x2A):
            start, position = position, position + value
            dependencies += tuple(_varints(content[start:position]))
        elif key == 0x12:
            start, position = position, position + value
            name = content[start:position].decode()
        elif key == 0x18:
            kind = _signed(value, 32)
        elif key == 0x38:
            duration_us = value
        elif key in (0x20, 0x28):
            dependencies += (value,)
        elif key != 0x30:  # when it started, which has no effect
            raise UnusualError
    if position != stop:
        raise UnusualError
    return number, name, kind, dependencies, duration_us, attributes


def _attributes(content: bytes) -> dict[str, Any]:
    """Values by name of the attributes that a node ends with; the first of a name counts."""
    attributes: dict[str, Any] = {}
    position, end = 0, len(content)
    while position < end:
        if content[position] != 0x52:
            raise UnusualError
        length = content[position + 1]
        start = position + 2
        if length >= 0x80:
            length, start = _varint(content, position + 1)
        position = start + length
        if position > end:
            raise UnusualError
        attribute, value = _attribute(content[start:position])
        if attribute not in attributes:
            attributes[attribute] = value
    return attributes


@lru_cache(maxsize=MAX_CACHED_ATTRIBUTES)
def _attribute(record: bytes) -> tuple[str, Any]:
    """Name and value of an ``AttributeProto``; most are the same in many nodes."""
    name: str | None = None
    values: list[Any] = []
    position, end = 0, len(record)
    while position < end:
        key, position = _varint(record, position)
        form = key & 7
        content: Any
        if form == BYTES:
            start, position = _extent(record, position)
            content = record[start:position]
        elif form == VARINT:
            content, position = _varint(record, position)
        elif form in (FIXED_32, FIXED_64):
            start, position = position, position + (4 if form == FIXED_32 else 8)
            content = record[start:position]
        else:
            raise UnusualError
        if key == 0x0A and name is None:
            name = content.decode()
        elif key == 0x12:
            content.decode()  # a description, which has no effect
        elif key in _VALUES:
            values.append(_VALUES[key](content))
        else:
            raise UnusualError
    if position != end or len(values) > 1:
        raise UnusualError
    return name or "", values[0] if values else None


def _varint(record: bytes, position: int) -> tuple[int, int]:
    """Unsigned integer of 64 bits and the position after it."""
    value = record[position]
    if value < 0x80:
        return value, position + 1
    value &= 0x7F
    for shift in range(7, 7 * MAX_VARINT_BYTES, 7):
        position += 1
        byte = record[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise UnusualError
            return value, position + 1
    raise UnusualError


def _extent(record: bytes, position: int) -> tuple[int, int]:
    """Begin and end of a field that begins with its length."""
    length, start = _varint(record, position)
    if start + length > len(record):
        raise UnusualError
    return start, start + length


def _varints(content: bytes) -> list[int] | bytes:
    if content.isascii():
        return content  # each number has one byte, which is itself
    values, position = [], 0
    while position < len(content):
        value, position = _varint(content, position)
        values.append(value)
    return values


def _truths(content: bytes) -> tuple[bool, ...]:
    """Read a ``BoolList``, packed or not."""
    values: list[int] = []
    position = 0
    while position < len(content):
        key, position = content[position], position + 1
        if key == 0x0A:
            start, position = _extent(content, position)
            values += _varints(content[start:position])
        elif key == 0x08:
            value, position = _varint(content, position)
            values.append(value)
        else:
            raise UnusualError
    return tuple(map(bool, values))


def _signed(value: int, num_bits: int) -> int:
    """Lower bits of a number as a signed one."""
    half = 1 << (num_bits - 1)
    return (value + half) % (2 * half) - half


def _zigzag(value: int, num_bits: int) -> int:
    value %= 1 << num_bits
    return value >> 1 ^ -(value & 1)


def _unpacked(form: str) -> Callable[[bytes], int | float]:
    size = struct.calcsize(form)

    def read(content: bytes) -> int | float:
        if len(content) != size:
            raise UnusualError
        number: int | float = struct.unpack(form, content)[0]
        return number

    return read


_VALUES: dict[int, Callable[[Any], Any]] = {
    3 << 3 | FIXED_64: _unpacked("<d"),
    5 << 3 | FIXED_32: _unpacked("<f"),
    7 << 3 | VARINT: lambda value: _signed(value, 32),
    9 << 3 | VARINT: lambda value: _signed(value, 64),
    11 << 3 | VARINT: lambda value: value % 2**32,
    13 << 3 | VARINT: int,
    15 << 3 | VARINT: lambda value: _zigzag(value, 32),
    17 << 3 | VARINT: lambda value: _zigzag(value, 64),
    19 << 3 | FIXED_32: _unpacked("<I"),
    21 << 3 | FIXED_64: _unpacked("<Q"),
    23 << 3 | FIXED_32: _unpacked("<i"),
    25 << 3 | FIXED_64: _unpacked("<q"),
    27 << 3 | VARINT: bool,
    28 << 3 | BYTES: _truths,
    29 << 3 | BYTES: bytes.decode,
    31 << 3 | BYTES: bytes,
}
"""Reader of every value that an attribute may have, by its key."""
