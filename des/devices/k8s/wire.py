"""JSON as programs written in Go send and read it: keys without regard to case, null for absent."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TypeVar

_ValueT = TypeVar("_ValueT")
_ABSENT = object()
_QUANTITY = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|(m|k|M|G|T|P|E|[KMGTPE]i))?"
)
_SUFFIXES: Mapping[str, Decimal] = {
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
MOST_GPUS_OF_POD = 100_000
"""Most devices that a pod may ask for; more is taken for an error."""


def parse_wire(body: bytes) -> dict[str, Any]:
    """Parse the body of a call: one JSON object in UTF-8.

    Raises
    ------
    ValueError
        If it is anything else, also NaN, too deep a nesting or too long a number.
    """
    try:
        content = json.loads(body, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("body: not readable as JSON: nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"body: not readable as JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"body: must be a JSON object, got {type(content).__name__}")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def wire_value(mapping: Mapping[str, Any], key: str) -> Any:
    """Value under a key, by its letters alone; None where it is absent or null.

    Examples
    --------
    >>> wire_value({"nodenames": ["a"]}, "NodeNames")
    ['a']
    """
    found = mapping.get(key, _ABSENT)
    if found is not _ABSENT:
        return found
    folded = key.lower()
    for name, value in mapping.items():
        if name.lower() == folded:
            found = value
    return None if found is _ABSENT else found


def wire_object(mapping: Mapping[str, Any], key: str, owner: str) -> dict[str, Any]:
    """Object under a key; empty where it is absent.

    Raises
    ------
    ValueError
        If the value is no object.
    """
    return _typed(mapping, key, owner, dict, "an object")


def wire_list(mapping: Mapping[str, Any], key: str, owner: str) -> list[Any]:
    """List under a key; empty where it is absent.

    Raises
    ------
    ValueError
        If the value is no list.
    """
    return _typed(mapping, key, owner, list, "a list")


def wire_text(mapping: Mapping[str, Any], key: str, owner: str) -> str:
    """Text under a key; empty where it is absent.

    Raises
    ------
    ValueError
        If the value is no text.
    """
    return _typed(mapping, key, owner, str, "text")


def _typed(
    mapping: Mapping[str, Any], key: str, owner: str, kind: type[_ValueT], allowed: str
) -> _ValueT:
    value = wire_value(mapping, key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ValueError(f"{owner}: {key} must be {allowed}, got {type(value).__name__}")
    return value


def wire_texts(mapping: Mapping[str, Any], key: str, owner: str) -> dict[str, str]:
    """Texts by key, such as labels and annotations; empty where they are absent.

    Raises
    ------
    ValueError
        If a value is no text.
    """
    found = wire_object(mapping, key, owner)
    for name, value in found.items():
        if not isinstance(value, str):
            raise ValueError(f"{owner}: {key}.{name} must be text, got {type(value).__name__}")
    return found


def whole_quantity(value: object, owner: str) -> int:
    """Read a quantity of devices: a whole number of at least 0, as text or as a number.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> whole_quantity("4", "limits"), whole_quantity("1k", "limits"), whole_quantity(2, "limits")
    (4, 1000, 2)
    """
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = _QUANTITY.fullmatch(text.strip()) if len(text) <= 64 else None
    try:
        if found is None:
            raise ValueError("no quantity")
        scale = _SUFFIXES.get(found[3] or "", Decimal(1))
        number = Decimal(found[1] + (found[2] or "")) * scale
        if number != int(number) or not 0 <= number <= MOST_GPUS_OF_POD:
            raise ValueError("not whole")
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ValueError(
            f"{owner}: must be a whole quantity from 0 to {MOST_GPUS_OF_POD}, got {value!r:.80}"
        ) from error
    return int(number)
