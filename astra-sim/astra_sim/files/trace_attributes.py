"""Attributes of nodes in execution traces, and varints.

References
----------
.. [1] Protocol Buffers documentation, "Encoding": keys, varints, length-delimited fields.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""Forms of a field on the wire, the lower three bits of its key."""

MAX_VARINT_BYTES = 10
MAX_TAG_BYTES = 5
"""Most bytes of a last attribute that is read by those of another node: too few for a sign."""
MAX_CACHED_ATTRIBUTES = 4096


class UnusualError(Exception):
    """Record of a form that only the protobuf library reads or refuses."""


class AttributeReader:
    """Reader of attributes with a memory: many nodes share all of them, or all but the last."""

    __slots__ = ("_by_bytes", "_by_head")

    def __init__(self) -> None:
        self._by_bytes: dict[bytes, dict[str, Any]] = {}
        self._by_head: dict[bytes, tuple[dict[str, Any], str, int]] = {}
        """By the bytes before the number in a last attribute: the other attributes, its name, and
        the length of the number in bytes."""

    def read(self, content: bytes, start: int, stop: int) -> dict[str, Any]:
        """Read the attributes of a node, its end in a file, by name; the first of a name counts."""
        rest = content[start:stop]
        found = self._by_bytes.get(rest)
        if found is not None:
            return found
        place = stop - 1
        while content[place - 1] >= 0x80:  # begin of a varint, if it ends with one
            place -= 1
        like = self._by_head.get(content[start:place])
        if like is None or like[2] != stop - place or content[stop - 1] >= 0x80:
            return self._read_all(rest, place - start)
        others, name, _ = like
        attributes = others.copy()
        attributes[name] = varint(content, place)[0]
        return attributes

    def _read_all(self, rest: bytes, place: int) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        position = start = number = 0
        name = ""
        while position < len(rest):
            if rest[position] != 0x52:
                raise UnusualError
            start, position = extent(rest, position + 1)
            name, value = _attribute(rest[start:position])
            number += 1
            if name not in attributes:
                attributes[name] = value
        text = name.encode()
        is_number = rest[start:place] == b"\n%c%bH" % (len(text) & 0x7F, text)
        if is_number and number == len(attributes) and len(rest) - place <= MAX_TAG_BYTES:
            others = {other: attributes[other] for other in attributes if other != name}
            self._by_head[rest[:place]] = others, name, len(rest) - place
        self._by_bytes[rest] = attributes
        return attributes


@lru_cache(maxsize=MAX_CACHED_ATTRIBUTES)
def _attribute(record: bytes) -> tuple[str, Any]:
    """Name and value of an ``AttributeProto``; most are the same in many nodes."""
    name: str | None = None
    values: list[Any] = []
    position, end = 0, len(record)
    while position < end:
        key, position = varint(record, position)
        form = key & 7
        content: Any
        if form == BYTES:
            start, position = extent(record, position)
            content = record[start:position]
        elif form == VARINT:
            content, position = varint(record, position)
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


def varint(record: bytes, position: int) -> tuple[int, int]:
    """Unsigned integer of 64 bits and the position after it."""
    value = record[position]
    if value < 0x80:
        return value, position + 1
    byte = record[position + 1]
    if byte < 0x80:
        return value + (byte - 1 << 7), position + 2
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


def extent(record: bytes, position: int) -> tuple[int, int]:
    """Begin and end of a field that begins with its length."""
    length, start = varint(record, position)
    if start + length > len(record):
        raise UnusualError
    return start, start + length


def varints(content: bytes) -> list[int] | bytes:
    """Unsigned integers of 64 bits, one after the other to the end."""
    if content.isascii():
        return content  # each number has one byte, which is itself
    values = []
    value = shift = 0
    for byte in content:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if value >> 64 or shift > 7 * MAX_VARINT_BYTES:
                raise UnusualError
            values.append(value)
            value = shift = 0
    if shift:
        raise UnusualError
    return values


def _truths(content: bytes) -> tuple[bool, ...]:
    """Read a ``BoolList``, packed or not."""
    values: list[int] = []
    position = 0
    while position < len(content):
        key, position = content[position], position + 1
        if key == 0x0A:
            start, position = extent(content, position)
            values += varints(content[start:position])
        elif key == 0x08:
            value, position = varint(content, position)
            values.append(value)
        else:
            raise UnusualError
    return tuple(map(bool, values))


def signed(value: int, num_bits: int) -> int:
    """Lower bits of a number as a signed one."""
    half = 1 << (num_bits - 1)
    return (value + half) % (2 * half) - half


def _zigzag(value: int, num_bits: int) -> int:
    value %= 1 << num_bits
    return value >> 1 ^ -(value & 1)


def _unpack(form: str) -> Callable[[bytes], int | float]:
    size = struct.calcsize(form)

    def read(content: bytes) -> int | float:
        if len(content) != size:
            raise UnusualError
        number: int | float = struct.unpack(form, content)[0]
        return number

    return read


_VALUES: dict[int, Callable[[Any], Any]] = {
    3 << 3 | FIXED_64: _unpack("<d"),
    5 << 3 | FIXED_32: _unpack("<f"),
    7 << 3 | VARINT: lambda value: signed(value, 32),
    9 << 3 | VARINT: lambda value: signed(value, 64),
    11 << 3 | VARINT: lambda value: value % 2**32,
    13 << 3 | VARINT: int,
    15 << 3 | VARINT: lambda value: _zigzag(value, 32),
    17 << 3 | VARINT: lambda value: _zigzag(value, 64),
    19 << 3 | FIXED_32: _unpack("<I"),
    21 << 3 | FIXED_64: _unpack("<Q"),
    23 << 3 | FIXED_32: _unpack("<i"),
    25 << 3 | FIXED_64: _unpack("<q"),
    27 << 3 | VARINT: bool,
    28 << 3 | BYTES: _truths,
    29 << 3 | BYTES: bytes.decode,
    31 << 3 | BYTES: bytes,
}
"""Reader of every value that an attribute may have, by its key."""
