"""Strict forms of files that users write, and their errors in one line."""

import re
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    create_model,
    model_validator,
)

from des.base.checks import nearest
from des.base.strict_json import parse_json
from des.base.text_files import read_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class _UnknownKeyError(ValueError):
    """A key that a form does not have."""


class StrictForm(BaseModel):
    """A part of a file: unknown keys, other types, NaN and infinity are refused.

    An unknown key is named before anything else in its mapping, because a key that must be given
    is missing wherever it is misspelt. ``read_before`` are keys that were taken out beforehand.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    read_before: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _all_keys_are_known(cls, content: object) -> object:
        """Refuse the first unknown key, with the key that was probably meant."""
        known = (*cls.read_before, *cls.model_fields)
        for key, value in content.items() if isinstance(content, dict) else ():
            if isinstance(key, str) and key not in cls.model_fields:
                error = _UnknownKeyError(f"unknown key; {nearest(key, known)}")
                raise ValidationError.from_exception_data(
                    cls.__name__,
                    [
                        {
                            "type": "value_error",
                            "loc": (key,),
                            "input": value,
                            "ctx": {"error": error},
                        }
                    ],
                )
        return content


@contextmanager
def form_errors(owner: str) -> Iterator[None]:
    """Name what values are of in their errors, those of forms in one line."""
    try:
        yield
    except ValidationError as error:
        raise ValueError(f"{owner}: {first_error(error)}") from error
    except ValueError as error:
        raise ValueError(f"{owner}: {error}") from error


_FormT = TypeVar("_FormT", bound=BaseModel)


def read_json_form(path: Path, form: type[_FormT]) -> _FormT:
    """Read a JSON file that has a form; its lists may be those of tuples.

    Raises
    ------
    ValueError
        If it cannot be read, is not JSON, or a field is missing or wrong; naming file, field, what
        is allowed and what came.
    """
    text = read_text(path)
    with form_errors(str(path)):
        parse_json(text)  # names the line and refuses a key given twice; pydantic does neither
        # Of JSON text, not of what was parsed: only there are lists strictly tuples.
        return form.model_validate_json(text)


FROM_LIST = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""Reads a list as the tuple that a field is."""


@cache
def form_of(
    shape: type["DataclassInstance"],
    *,
    parts: tuple[tuple[str, type["DataclassInstance"]], ...] = (),
    leaves_out: tuple[str, ...] = (),
) -> type[StrictForm]:
    """Make the form of a value: its fields are the keys, those with a default may be missing.

    ``parts`` are fields with fields of their own, which may be null.

    Examples
    --------
    >>> from des.plan.parallelism import Parallelism
    >>> form_of(Parallelism).model_validate({"tensor": 8}).tensor
    8
    """
    kinds = get_type_hints(shape)
    keys: dict[str, Any] = {}
    for field in fields(shape):
        kind: Any = Annotated[kinds[field.name], FROM_LIST]
        if field.name in dict(parts):
            kind = form_of(dict(parts)[field.name]) | None
        keys[field.name] = (kind, ... if field.default is MISSING else field.default)
    for name in leaves_out:
        del keys[name]
    return create_model(f"{shape.__name__}Form", __base__=StrictForm, **keys)


def first_error(error: ValidationError) -> str:
    """Put the first of pydantic's errors into one line: field, what is allowed, what came."""
    errors = error.errors(include_url=False)
    root = errors[0]["loc"][:1]
    # Of the alternatives of one field, the one that got furthest.
    chosen = max((e for e in errors if e["loc"][:1] == root), key=lambda e: len(e["loc"]))
    unknown_key = isinstance(chosen.get("ctx", {}).get("error"), _UnknownKeyError)
    field = ""
    for place, part in enumerate(chosen["loc"]):
        if isinstance(part, int):
            field += f"[{part}]"
        elif not _ALTERNATIVE.fullmatch(part) or (unknown_key and place == len(chosen["loc"]) - 1):
            field += f".{part}" if field else part
    if chosen["type"] == "value_error":
        message = str(chosen["ctx"]["error"])
    elif chosen["type"] == "missing":
        message = "must be given"
    elif chosen["type"] == "model_type":
        message = f"must be a mapping, got {reprlib.repr(chosen['input'])}"
        if chosen["input"] is None and not chosen["loc"]:
            message += ": it is empty"
    else:
        message = f"{chosen['msg']}, got {reprlib.repr(chosen['input'])}"
    return f"{field or 'file'}: {message}"


_ALTERNATIVE = re.compile(
    r"int|float|str|(?:list|dict)\[.*\]|function-.*|nullable.*|constrained-.*"
)
"""Parts of pydantic's locations that name one alternative of a type, not a key."""
