"""Frozen values as the library `dataclasses` makes them, without its start-up time.

The library imports `inspect` and compiles methods for each class, which takes longer than many
runs. `dataclass`, `field` and `replace` here are its functions for type checkers; at run time they
make the same classes from shared methods: all fields by keyword, slots, equality, hash and
representation by fields. `dataclasses.fields`, `replace` and `asdict` work on them, too.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from astra_sim.base.lazy import lazy

if TYPE_CHECKING:
    import dataclasses as library
    from dataclasses import dataclass, field, replace
else:
    library = lazy("dataclasses")

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        """Return the decorator of a class of frozen values with slots and fields by keyword."""
        if not (frozen and slots and kw_only):
            raise TypeError("dataclass: must be frozen, with slots and keyword-only")
        return _value_class

    def field(**settings: Any) -> "_Field":
        """Return a field with a default, or one left out of equality or representation."""
        return _Field(**settings)

    def replace(value: Any, **changes: Any) -> Any:
        """Return a value with some fields changed, checked like any other."""
        fields = type(value).__fields__
        return type(value)(**{one.name: getattr(value, one.name) for one in fields} | changes)


__all__ = ["dataclass", "field", "field_setters", "replace"]

_MISSING: Any = object()


def field_setters(cls: Any) -> tuple[Callable[[Any, Any], None], ...]:
    """Return the setters of a class's fields in order, for readers of many values.

    Values made by ``cls.__new__`` and these are not checked.
    """
    return tuple(one.put for one in cls.__fields__)


class _Field:
    """A field of a class: its default, and where it is left out."""

    __slots__ = ("compare", "default", "name", "put", "repr")

    def __init__(self, *, default: Any = _MISSING, compare: bool = True, repr: bool = True) -> None:
        self.default = default
        self.compare = compare
        self.repr = repr
        self.name = ""
        self.put: Callable[[Any, Any], None]


class _LibraryFields:
    """The fields as `dataclasses` describes them, made when it looks for them."""

    def __get__(self, _: object, owner: Any) -> dict[str, Any]:
        described = [
            (
                one.name,
                Any,
                library.field(
                    **({} if one.default is _MISSING else {"default": one.default}),
                    compare=one.compare,
                    repr=one.repr,
                ),
            )
            for one in owner.__fields__
        ]
        made: Any = library.make_dataclass(owner.__name__, described, kw_only=True)
        found: dict[str, Any] = made.__dataclass_fields__
        return found


def _value_class(cls: type) -> type:
    """Make the class again with slots for its fields and the shared methods that it lacks."""
    names = dict(vars(cls))
    fields = []
    for name in names.get("__annotations__", ()):
        given = names.pop(name, _MISSING)
        one = given if isinstance(given, _Field) else _Field(default=given)
        one.name = name
        fields.append(one)
    for name in ("__dict__", "__weakref__"):
        names.pop(name, None)
    names["__slots__"] = tuple(one.name for one in fields)
    names["__fields__"] = tuple(fields)
    names["__dataclass_fields__"] = _LibraryFields()
    made = type(cls.__name__, cls.__bases__, _SHARED | names)
    for one in fields:
        one.put = vars(made)[one.name].__set__
    return made


def _init(self: Any, **given: Any) -> None:
    fields = self.__fields__
    for one in fields:
        value = given.pop(one.name, one.default)
        if value is _MISSING:
            raise TypeError(f"{type(self).__name__}: must be given {one.name}, got nothing")
        one.put(self, value)
    if given:
        raise TypeError(f"{type(self).__name__}: has no field {', '.join(given)}")
    self.__post_init__()


def _post_init(_: Any) -> None:
    """Check nothing: classes with conditions have their own."""


def _repr(self: Any) -> str:
    shown = [f"{one.name}={getattr(self, one.name)!r}" for one in self.__fields__ if one.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compare(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, one.name) for one in self.__fields__ if one.compare)


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _compare(self) == _compare(other)


def _hash(self: Any) -> int:
    return hash(_compare(self))


def _refuse(self: Any, name: str, *_: object) -> None:
    raise library.FrozenInstanceError(f"{type(self).__name__}: is frozen, must not change {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in self.__fields__]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(self.__fields__, state, strict=True):
        one.put(self, value)


_SHARED: dict[str, Any] = {
    "__init__": _init,
    "__post_init__": _post_init,
    "__repr__": _repr,
    "__eq__": _equal,
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _state,
    "__setstate__": _restore,
    "__match_args__": (),
}
