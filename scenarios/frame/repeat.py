"""The command that repeats a run."""

import shlex
from collections.abc import Collection
from dataclasses import fields
from typing import TYPE_CHECKING

from des.base.command_line import spelt
from des.base.fields import plain_fields

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_WHERE = frozenset({"out", "resume", "report", "workers", "figures", "parquet"})
"""Flags that change where results go, not what they are."""


def repeat_command(prog: str, config: "DataclassInstance", given: Collection[str]) -> str:
    """Return the command with the flags that were given, in the order of the settings."""
    parts = [prog]
    for field in fields(config):
        if field.name in given and field.name not in _WHERE:
            value = plain_fields(getattr(config, field.name))
            name = spelt(field.name)
            if isinstance(value, bool):
                parts.append(name if value else f"--no-{name.removeprefix('--')}")
            elif value is not None:
                text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                is_positional = field.metadata.get("is_positional", False)
                parts += [shlex.quote(text)] if is_positional else [name, shlex.quote(text)]
    return " ".join(parts)
