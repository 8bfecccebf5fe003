"""The command that repeats a run."""

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import TYPE_CHECKING

from des.base.command_line import spelt
from des.base.fields import plain_fields

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_WHERE = frozenset({"out", "resume", "report", "workers", "figures", "parquet"})
"""Flags that change where results go, not what they are."""


def _is_said(field: Field[object]) -> bool:
    """Whether a field says what the results are, not where they go or how they are shown."""
    return field.name not in _WHERE and bool(field.metadata.get("is_recorded", True))


def repeated_settings(config: "DataclassInstance") -> dict[str, object]:
    """Return the settings that say what the results are, as plain values."""
    return {
        field.name: plain_fields(getattr(config, field.name))
        for field in fields(config)
        if _is_said(field)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """Settings of a run by name, and the command that repeats it."""

    command: str
    configuration: Mapping[str, object]


def repetition_of(prog: str, config: "DataclassInstance") -> Repetition:
    """Return how a command with these settings is repeated."""
    return Repetition(command=repeat_command(prog, config), configuration=repeated_settings(config))


def repeat_command(prog: str, config: "DataclassInstance") -> str:
    """Return the command with the flags that are not at their defaults, in their order."""
    parts = [prog]
    for field in fields(config):
        value = plain_fields(getattr(config, field.name))
        is_default = field.default is not MISSING and value == plain_fields(field.default)
        if _is_said(field) and not is_default:
            name = spelt(field.name)
            if isinstance(value, bool):
                parts.append(name if value else f"--no-{name.removeprefix('--')}")
            elif value is not None:
                text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                if not field.metadata.get("is_positional", False):
                    parts += [name, shlex.quote(text)]
                else:
                    words = value if isinstance(value, list) else [text]
                    parts += [shlex.quote(str(word)) for word in words]
    return " ".join(parts)
