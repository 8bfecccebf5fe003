"""What the fields of a configuration may hold, and reading them from text and plain values."""

import argparse
import dataclasses
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from des.base.checks import nearest
from des.base.command import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ALLOWED = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    Path: "a path",
}
_FROM_TEXT: dict[type, Callable[[str], object]] = {
    str: str,
    int: int,
    float: float,
    bool: {"true": True, "false": False}.__getitem__,
    Path: str,
}
short = reprlib.Repr()  # one line, however much a file holds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a field may hold: one scalar, or a tuple of them, or (optionally) None."""

    scalar: type
    is_tuple: bool
    is_optional: bool

    @property
    def allowed(self) -> str:
        """What an error message says is allowed."""
        prefix = "a list, each element " if self.is_tuple else ""
        return prefix + _ALLOWED[self.scalar] + (", or none" if self.is_optional else "")


SWITCH = Kind(scalar=bool, is_tuple=False, is_optional=False)


def kinds_of(config_class: type["DataclassInstance"]) -> dict[str, Kind]:
    """Kind of every field; ``TypeError`` for one that a configuration cannot have."""
    hints = typing.get_type_hints(config_class)
    return {field.name: _kind(hints[field.name]) for field in dataclasses.fields(config_class)}


def _kind(hint: object) -> Kind:
    members = [hint]
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        members = list(typing.get_args(hint))
    others = [member for member in members if member is not types.NoneType]
    scalar, is_tuple = others[0], False
    if typing.get_origin(scalar) is tuple:
        element, *rest = typing.get_args(scalar)
        scalar, is_tuple = (element if rest == [Ellipsis] else None), True
    if len(others) != 1 or not isinstance(scalar, type) or scalar not in _ALLOWED:
        raise TypeError(f"a configuration field cannot be of type {hint}")
    return Kind(scalar=scalar, is_tuple=is_tuple, is_optional=len(others) < len(members))


def from_text(text: str, kind: Kind) -> object:
    """Read the value of a flag; argparse shows the error."""
    if kind.is_optional and text == "none":
        return None
    read = _FROM_TEXT[kind.scalar]
    try:
        if kind.is_tuple:
            return _from_plain([read(element) for element in text.split(",") if text], kind)
        return _from_plain(read(text), kind)
    except (ValueError, KeyError) as error:
        message = f"must be {kind.allowed}, got {short.repr(text)}"
        raise argparse.ArgumentTypeError(message) from error


def _refuse(value: object) -> NoReturn:
    raise ValueError(f"not allowed: {short.repr(value)}")


def checked_fields(
    kinds: Mapping[str, Kind], values: Mapping[str, object], *, source: str
) -> dict[str, object]:
    """Check plain values by name; ``UsageError`` names the source, the field and what came."""
    checked = {}
    for name, value in values.items():
        if name not in kinds:
            hint = nearest(str(name), list(kinds))
            raise UsageError(f"{source}: unknown field {short.repr(name)}; {hint}")
        try:
            checked[name] = _from_plain(value, kinds[name])
        except (ValueError, OverflowError) as error:
            raise UsageError(
                f"{source}: {name} must be {kinds[name].allowed}, got {short.repr(value)}"
            ) from error
    return checked


def _from_plain(value: object, kind: Kind) -> object:
    if value is None and kind.is_optional:
        return None
    if kind.is_tuple:
        elements = value if isinstance(value, list | tuple) else _refuse(value)
        return tuple(_scalar_from_plain(element, kind.scalar) for element in elements)
    return _scalar_from_plain(value, kind.scalar)


def _scalar_from_plain(value: object, scalar: type) -> object:
    if scalar is Path and isinstance(value, str) and value:
        return Path(value)
    if scalar is float and type(value) is int:
        return float(value)
    return value if type(value) is scalar else _refuse(value)


def plain_fields(value: object) -> object:
    """Turn a value into one that JSON and YAML know."""
    if isinstance(value, tuple):
        return [plain_fields(element) for element in value]
    return str(value) if isinstance(value, Path) else value
