"""The scenario file is the interface: a flat frozen dataclass becomes a command line.

Each field of the dataclass is a flag, and a key that a YAML or JSON file given with ``--config``
may set; a flag wins over the file. Fields are ``str``, ``int``, ``float``, ``bool``, ``Path`` or
tuples such as ``tuple[int, ...]``, each also with ``| None``. On the command line a tuple is
written ``0,1,2`` and None is written ``none``. Help comes from ``field(metadata={"help": ...})``.
"""

import argparse
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from des.base.checks import nearest
from des.base.command import UsageError
from scenarios.frame.fields import (
    SWITCH,
    Kind,
    checked_fields,
    from_text,
    kinds_of,
    plain_fields,
    short,
)
from scenarios.frame.files import read_json, read_yaml

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DefaultT = TypeVar("DefaultT")
ConfigT = TypeVar("ConfigT", bound="DataclassInstance")


def option(default: DefaultT, help_text: str, *, is_file: bool = False) -> DefaultT:
    """Make a dataclass field with a default and a help text for its flag.

    A value that names a file is looked for beside the scenario file that gives it, then as it is.
    """
    metadata = {"help": help_text, "is_file": is_file}
    field: DefaultT = dataclasses.field(default=default, metadata=metadata)
    return field


def parse(
    config_class: type[ConfigT],
    argv: Sequence[str] | None,
    *,
    prog: str,
    description: str,
    epilog: str = "",
) -> ConfigT:
    """Build a configuration from the command line and the file named by its ``--config``.

    Parameters
    ----------
    config_class
        Flat dataclass whose fields are the flags: ``num_steps`` becomes ``--num-steps``.
    argv
        Arguments without the program name; None takes those of the process.

    Raises
    ------
    UsageError
        If a flag, the file, or a key or value in it is wrong, or a required field is missing.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Config:
    ...     steps: int = 10
    >>> parse(Config, ["--steps", "1_000"], prog="demo", description="A demo.")
    Config(steps=1000)
    """
    return parse_given(config_class, argv, prog=prog, description=description, epilog=epilog)[0]


def parse_given(
    config_class: type[ConfigT],
    argv: Sequence[str] | None,
    *,
    prog: str,
    description: str,
    epilog: str = "",
) -> tuple[ConfigT, frozenset[str]]:
    """Do what `parse` does, and also return the names of the fields that the user gave."""
    kinds = kinds_of(config_class)
    parser = _Parser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    file_help = "YAML or JSON file of field names and values; flags win over it"
    parser.add_argument("--config", type=Path, metavar="FILE", help=file_help)
    for field in dataclasses.fields(config_class):
        _add_flag(parser, field, kinds[field.name])
    explicit, unknown = parser.parse_known_args(argv)
    if unknown:
        flags = [_flag(name) for name in kinds]
        raise UsageError(f"unknown argument {unknown[0]!r}; {nearest(unknown[0], flags)}")
    values = vars(explicit)
    path: Path | None = values.pop("config")
    if path is not None:
        given = _beside(path, config_class, _read_mapping(path))
        values = checked_fields(kinds, given, source=str(path)) | values
    return _construct(config_class, values, source=prog), frozenset(values)


def from_dict(config_class: type[ConfigT], values: Mapping[str, object], *, source: str) -> ConfigT:
    """Build a configuration from plain values, as `to_dict` made them or a file held them.

    ``source`` names their origin in error messages.

    Raises
    ------
    UsageError
        If a key is unknown, a value has the wrong type or a required field is missing.
    """
    checked = checked_fields(kinds_of(config_class), values, source=source)
    return _construct(config_class, checked, source=source)


def to_dict(config: "DataclassInstance") -> dict[str, object]:
    """Return the fields as plain values for JSON or YAML: paths as text, tuples as lists."""
    return {
        field.name: plain_fields(getattr(config, field.name))
        for field in dataclasses.fields(config)
    }


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing the usage, so that every error is one line."""

    def error(self, message: str) -> NoReturn:
        """Report a wrong command line."""
        raise UsageError(message)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _add_flag(
    parser: argparse.ArgumentParser, field: "dataclasses.Field[object]", kind: Kind
) -> None:
    """Add one flag without a default, so that only explicit flags are in the namespace."""
    explanation = f"{field.metadata.get('help', '')} ({_default_text(field)})".strip()
    add = functools.partial(
        parser.add_argument,
        _flag(field.name),
        dest=field.name,
        default=argparse.SUPPRESS,
        help=explanation.replace("%", "%%"),
    )
    if kind == SWITCH:
        add(action=argparse.BooleanOptionalAction)
    else:
        metavar = kind.scalar.__name__.upper() + (",..." if kind.is_tuple else "")
        add(type=lambda text: from_text(text, kind), metavar=metavar)


def _default_text(field: "dataclasses.Field[object]") -> str:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING:
        return "required"
    elements = default if isinstance(default, tuple) else (default,)
    return "default: " + ",".join(
        str(element).lower() if element is None or isinstance(element, bool) else str(element)
        for element in elements
    )


def _construct(
    config_class: type[ConfigT], values: Mapping[str, object], *, source: str
) -> ConfigT:
    for field in dataclasses.fields(config_class):
        defaults = (field.default, field.default_factory)
        if defaults == (dataclasses.MISSING,) * 2 and field.name not in values:
            raise UsageError(f"{source}: {field.name} is required ({_flag(field.name)})")
    return config_class(**values)


def _beside(
    path: Path, config_class: type["DataclassInstance"], values: dict[str, object]
) -> dict[str, object]:
    """Let names of files mean those beside the scenario file, where there are such files."""
    for field in dataclasses.fields(config_class):
        value = values.get(field.name)
        if field.metadata.get("is_file") and isinstance(value, str):
            neighbour = path.parent / value
            if value and neighbour.is_file():
                values = values | {field.name: str(neighbour)}
    return values


def _read_mapping(path: Path) -> dict[str, object]:
    """Read field names and values; of a run's config.json, take its ``config`` section."""
    try:
        loaded = read_json(path) if path.suffix == ".json" else read_yaml(path)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if isinstance(loaded, dict) and {"config", "versions"} <= loaded.keys():
        loaded = loaded["config"]
    if not isinstance(loaded, dict):
        shown = short.repr(loaded)
        raise UsageError(f"{path}: must be a mapping of field names to values, got {shown}")
    return loaded
