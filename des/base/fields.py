"""Types of configuration fields, and their values read from text and plain values."""

import dataclasses
import difflib
import reprlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from des.base.checks import nearest, prefixed_errors
from des.base.command import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Check = Callable[[str, str, Any], None]
"""Refuses a value, as functions of `des.base.checks` do: takes its owner, its name and itself."""

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
class FieldKind:
    """Type of a field: one scalar, or a tuple of them, or (optionally) None."""

    scalar: type
    choices: tuple[str, ...] = ()
    is_tuple: bool = False
    is_optional: bool = False
    check: Check | None = None

    @property
    def allowed(self) -> str:
        """Allowed values, as an error message names them."""
        prefix = "a list, each element " if self.is_tuple else ""
        one = f"one of {', '.join(self.choices)}" if self.choices else _ALLOWED[self.scalar]
        return prefix + one + (", or none" if self.is_optional else "")

    @property
    def is_switch(self) -> bool:
        """Whether the flag has no value, as ``--quick`` and ``--no-quick``."""
        return self.scalar is bool and not self.is_tuple and not self.is_optional

    @property
    def metavar(self) -> str:
        """Placeholder of the value in help texts."""
        one = f"{{{','.join(self.choices)}}}" if self.choices else self.scalar.__name__.upper()
        return one + (",..." if self.is_tuple else "")


def kinds_of(config_class: type["DataclassInstance"]) -> dict[str, FieldKind]:
    """FieldKind of every field; ``TypeError`` for one that a configuration cannot have."""
    hints = typing.get_type_hints(config_class)
    return {
        field.name: _kind(hints[field.name], field.metadata.get("check"))
        for field in fields_of(config_class)
    }


def fields_of(config_class: type["DataclassInstance"]) -> list["dataclasses.Field[Any]"]:
    """Fields of a configuration; those that only say how results are shown are the last ones.

    Just before them are those that are marked as last, whichever class they are inherited from.
    """

    def place(field: "dataclasses.Field[Any]") -> tuple[bool, bool]:
        about = field.metadata
        return not about.get("is_recorded", True), about.get("is_last", False)

    return sorted(dataclasses.fields(config_class), key=place)


def _kind(hint: object, check: Check | None) -> FieldKind:
    members = _members(hint)
    others = [member for member in members if member is not types.NoneType]
    is_optional = len(others) < len(members)
    is_tuple = len(others) == 1 and typing.get_origin(others[0]) is tuple
    if is_tuple:
        element, *rest = typing.get_args(others[0])
        others = _members(element) if rest == [Ellipsis] else []
    choices = _choices(others)
    scalar = str if choices else others[0] if len(others) == 1 else None
    if not isinstance(scalar, type) or scalar not in _ALLOWED:
        raise TypeError(f"a configuration field cannot be of type {hint}")
    return FieldKind(
        scalar=scalar, choices=choices, is_tuple=is_tuple, is_optional=is_optional, check=check
    )


def _members(hint: object) -> list[object]:
    is_union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return list(typing.get_args(hint)) if is_union else [hint]


def _choices(hints: Sequence[object]) -> tuple[str, ...]:
    """Return the words of ``Literal`` hints, if all of them are such."""
    if any(typing.get_origin(hint) is not Literal for hint in hints):
        return ()
    words = [word for hint in hints for word in typing.get_args(hint)]
    return tuple(words) if all(isinstance(word, str) for word in words) else ()


def from_text(text: str, kind: FieldKind) -> object:
    """Read the value of a flag.

    Raises
    ------
    ValueError
        If it is wrong; the message begins after the name of the flag: "must be an integer, ...".
    """
    if kind.is_optional and text == "none":
        return None
    read = _FROM_TEXT[kind.scalar]
    try:
        if kind.is_tuple:
            plain: object = [read(element.strip()) for element in text.split(",") if text]
        else:
            plain = read(text)
    except (ValueError, KeyError) as error:
        raise _wrong(kind, text) from error
    return _from_plain(plain, kind, got=text)


def check_fields(
    kinds: Mapping[str, FieldKind], values: Mapping[str, object], *, source: str
) -> dict[str, object]:
    """Check plain values by name; ``UsageError`` names the source, the field and what came."""
    checked = {}
    for name, value in values.items():
        if name not in kinds:
            hint = nearest(str(name), list(kinds))
            raise UsageError(f"{source}: unknown field {short.repr(name)}; {hint}")
        with prefixed_errors(f"{source}: {name} ", UsageError):
            checked[name] = _from_plain(value, kinds[name], got=value)
    return checked


def _from_plain(plain: object, kind: FieldKind, *, got: object) -> object:
    """Turn a plain value into that of the field; an error shows what came for it."""
    if plain is None and kind.is_optional:
        return None
    try:
        if kind.is_tuple:
            elements = plain if isinstance(plain, list | tuple) else _refuse()
            value: object = tuple(_scalar_from_plain(element, kind) for element in elements)
        else:
            value = _scalar_from_plain(plain, kind)
    except (ValueError, OverflowError) as error:
        raise _wrong(kind, got) from error
    if kind.check is not None:
        try:
            kind.check("value", "it", value)
        except ValueError as error:
            raise ValueError(str(error).removeprefix("value: it ")) from error
    return value


def _scalar_from_plain(value: object, kind: FieldKind) -> object:
    if kind.choices:
        return value if value in kind.choices else _refuse()
    if kind.scalar is Path and isinstance(value, str) and value:
        return Path(value)
    if kind.scalar is float and type(value) is int:
        return float(value)
    return value if type(value) is kind.scalar else _refuse()


def _refuse() -> NoReturn:
    raise ValueError("not allowed")


def _wrong(kind: FieldKind, got: object) -> ValueError:
    """Make the error that says what is allowed, what came, and which choice was probably meant."""
    last = str(got).rpartition(",")[2] if kind.is_tuple and isinstance(got, str) else got
    close = difflib.get_close_matches(last, kind.choices, n=1) if isinstance(last, str) else []
    hint = f"; did you mean {close[0]!r}?" if close and last not in kind.choices else ""
    return ValueError(f"must be {kind.allowed}, got {short.repr(got)}{hint}")


def plain_fields(value: object) -> object:
    """Turn a value into one that JSON and YAML know."""
    if isinstance(value, tuple):
        return [plain_fields(element) for element in value]
    return str(value) if isinstance(value, Path) else value
