"""Records of execution traces in their usual form, read without the protobuf library.

Loading that library takes longer than many runs. What is unusual (lists other than of truth
values, inputs and outputs, unknown or damaged fields) is left to it: ``astra_sim.files.protobuf``.

References
----------
.. [1] Protocol Buffers documentation, "Encoding": keys, varints, length-delimited fields.
"""

from typing import Any

from astra_sim.files.errors import AbortError
from astra_sim.files.trace_attributes import (
    AttributeReader,
    UnusualError,
    signed,
    varint,
    varints,
)

NodeFields = tuple[int, str, int, tuple[int, ...], int, dict[str, Any]]
"""Id, name, type, dependencies as they come, microseconds and attributes of a node."""

MAX_LENGTH_BYTES = 5
"""Bytes of a varint that fits 32 bits."""

_NO_ATTRIBUTES: dict[str, Any] = {}


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


def node_fields_within(  # noqa: PLR0912 - a call a field takes as long as all else
    content: bytes, position: int, stop: int, attributes: AttributeReader
) -> NodeFields:
    """Read the ``Node`` between two positions of a file.

    Varints are read in place where they have one byte, as nearly all do.

    Raises
    ------
    UnusualError, IndexError, UnicodeDecodeError
        If the record is damaged, or of unusual form: libraries write fields in the order of their
        numbers.

    Examples
    --------
    >>> record = bytes.fromhex("08071203616464180428033807")
    >>> node_fields_within(record, 0, len(record), AttributeReader())
    (7, 'add', 4, (3,), 7, {})
    """
    number, name, kind, duration_us = 0, "", 0, 0
    dependencies: tuple[int, ...] = ()
    if position < stop and content[position] == 0x08:
        number, position = content[position + 1], position + 2
        if number >= 0x80:
            number, position = varint(content, position - 1)
    if position < stop and content[position] == 0x12:
        length, start = content[position + 1], position + 2
        if length >= 0x80:
            length, start = varint(content, position + 1)
        position = start + length
        name = content[start:position].decode()
    if position < stop and content[position] == 0x18:
        kind, position = content[position + 1], position + 2
        if kind >= 0x80:
            kind, position = varint(content, position - 1)
            kind = signed(kind, 32)
    while position < stop:
        key = content[position]
        if key == 0x52:
            found = attributes.read(content, position, stop)
            return number, name, kind, dependencies, duration_us, found
        value, position = content[position + 1], position + 2
        if value >= 0x80:
            value, position = varint(content, position - 1)
        if key in (0x22, 0x2A):
            start, position = position, position + value
            dependencies += tuple(varints(content[start:position]))
        elif key == 0x38:
            duration_us = value
        elif key in (0x20, 0x28):
            dependencies += (value,)
        elif key != 0x30:  # when it started, which has no effect
            raise UnusualError
    if position != stop:
        raise UnusualError
    return number, name, kind, dependencies, duration_us, _NO_ATTRIBUTES
