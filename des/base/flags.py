"""The configuration is the interface: a flat frozen dataclass becomes a command line, by tyro.

Each field of the dataclass is a flag, and a key that a YAML or JSON file given with ``--config``
may set; a flag wins over the file. Fields are ``str``, ``int``, ``float``, ``bool``, ``Path``,
``Literal`` words or tuples such as ``tuple[int, ...]``, each also with ``| None``. On the command
line a tuple is written ``0,1,2`` and None ``none``. Help comes from `option` and `required`.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from des.base.command import UsageError
from des.base.command_line import PRINT_FLAGS, Flag, given_flags, spelt
from des.base.document import DOCUMENT
from des.base.fields import (
    Check,
    FieldKind,
    check_fields,
    fields_of,
    kinds_of,
    plain_fields,
    short,
)
from des.base.lazy import lazy_imports
from des.base.spelling import own_arguments

with lazy_imports(__name__):
    from _typeshed import DataclassInstance

    from des.base import text_files

DefaultT = TypeVar("DefaultT")
ConfigT = TypeVar("ConfigT", bound="DataclassInstance")

_FILE_FLAG = Flag(
    name="config",
    kind=FieldKind(scalar=Path),
    help_text="YAML or JSON file of field names and values; flags win over it",
    default="default: none",
)


def option(
    default: DefaultT,
    help_text: str,
    *,
    is_file: bool = False,
    is_positional: bool = False,
    check: Check | None = None,
    default_text: str | None = None,
    formerly: str | None = None,
    is_recorded: bool = True,
) -> DefaultT:
    """Make a dataclass field with a default and a help text for its flag.

    A value that names a file is looked for next to the configuration file that gives it, then as
    it is. A positional field has no flag, only a place. ``check`` is one of `des.base.checks` or
    alike; it sees what the user gives, if not none. ``default_text`` is what help texts say of the
    default. ``formerly`` is an earlier name, which command lines and files may still have. A field
    that is not recorded says how results are shown, not what they are: `to_dict` leaves it out.
    """
    metadata = {
        "help": help_text,
        "is_file": is_file,
        "is_positional": is_positional,
        "check": check,
        "default_text": default_text,
        "formerly": formerly,
        "is_recorded": is_recorded,
    }
    field: DefaultT = dataclasses.field(default=default, metadata=metadata)
    return field


def required(help_text: str, *, is_file: bool = False, is_positional: bool = False) -> Any:
    """Make a dataclass field without a default; a positional one has no flag, only a place."""
    metadata = {"help": help_text, "is_file": is_file, "is_positional": is_positional}
    return dataclasses.field(metadata=metadata)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JsonFlag:
    """Flag of the commands that answer with a document, see `des.base.document`."""

    json: bool = option(
        False, "one JSON document on stdout; text for people goes to stderr", is_recorded=False
    )


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
    flags = [*(_flag_of(one, kinds[one.name]) for one in fields_of(config_class)), _FILE_FLAG]
    values = given_flags(flags, argv, prog=prog, description=description, epilog=epilog)
    path = values.pop("config", None)
    if isinstance(path, Path):
        given = _beside(path, config_class, _rename_former_keys(config_class, _read_mapping(path)))
        values = check_fields(kinds, given, source=str(path)) | values
    config = _construct(config_class, values, source=prog)
    if isinstance(config, JsonFlag) and config.json:
        DOCUMENT.begin()
    return config, frozenset(values)


def from_dict(config_class: type[ConfigT], values: Mapping[str, object], *, source: str) -> ConfigT:
    """Build a configuration from plain values, as `to_dict` made them or a file held them.

    ``source`` names their origin in error messages.

    Raises
    ------
    UsageError
        If a key is unknown, a value has the wrong type or a required field is missing.
    """
    renamed = _rename_former_keys(config_class, values)
    checked = check_fields(kinds_of(config_class), renamed, source=source)
    return _construct(config_class, checked, source=source)


def to_dict(config: "DataclassInstance") -> dict[str, object]:
    """Return the fields as plain values for JSON or YAML: paths as text, tuples as lists."""
    return {
        field.name: plain_fields(getattr(config, field.name))
        for field in fields_of(type(config))
        if field.metadata.get("is_recorded", True)
    }


def with_quick_sizes(
    config: ConfigT, given: frozenset[str], quick: Mapping[str, object]
) -> ConfigT:
    """Return a configuration with the sizes of a quick run; what the user gave stays.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Config:
    ...     steps: int = 10
    ...     worlds: int = 8
    >>> with_quick_sizes(Config(worlds=3), frozenset({"worlds"}), {"steps": 1, "worlds": 1})
    Config(steps=1, worlds=3)
    """
    sizes = {name: value for name, value in quick.items() if name not in given}
    return dataclasses.replace(config, **sizes)


def parse_command(
    commands: Mapping[str, str],
    argv: Sequence[str] | None,
    *,
    prog: str,
    description: str,
    epilog: str = "",
) -> tuple[str, list[str]]:
    """Read which command the first argument names; ``--help`` in its place lists all of them.

    ``commands`` says of each name what the command does. Returns the name and the arguments after
    it, which are those of the command.

    Raises
    ------
    UsageError
        If no command is named, or there is none of that name.
    """
    arguments = own_arguments(argv, prog)
    if arguments[:1] == [PRINT_FLAGS]:
        sys.stdout.write("".join(f"{name}\t\n" for name in commands))
        raise SystemExit(0)
    kind = FieldKind(scalar=str, choices=tuple(commands))
    width = max(map(len, commands))
    lines = "".join(f"  {name:{width}}  {about}\n" for name, about in commands.items())
    flag = Flag(
        name="COMMAND", kind=kind, help_text="what to run", default="required", is_positional=True
    )
    found = given_flags(
        [flag],
        arguments[:1],
        prog=prog,
        description=description,
        epilog=f"commands:\n{lines}\n{prog} COMMAND --help says more.\n{epilog}",
    )
    if not found:
        raise UsageError(f"{prog}: COMMAND must be {kind.allowed}, got none")
    return str(found["COMMAND"]), arguments[1:]


def _flag_of(field: "dataclasses.Field[object]", kind: FieldKind) -> Flag:
    return Flag(
        name=field.name,
        kind=kind,
        help_text=field.metadata.get("help", ""),
        default=_default_text(field),
        is_positional=field.metadata.get("is_positional", False),
        formerly=field.metadata.get("formerly"),
    )


def _rename_former_keys(
    config_class: type["DataclassInstance"], values: Mapping[str, object]
) -> dict[str, object]:
    """Give fields their present names where a file has former ones."""
    former = {field.metadata.get("formerly"): field.name for field in fields_of(config_class)}
    return {former.get(name, name) if name else name: value for name, value in values.items()}


def _default_text(field: "dataclasses.Field[object]") -> str:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING:
        return "required"
    if field.metadata.get("default_text") is not None:
        return f"default: {field.metadata['default_text']}"
    elements = default if isinstance(default, tuple) else (default,)
    return "default: " + ",".join(
        str(element).lower() if element is None or isinstance(element, bool) else str(element)
        for element in elements
    )


def _construct(
    config_class: type[ConfigT], values: Mapping[str, object], *, source: str
) -> ConfigT:
    for field in dataclasses.fields(config_class):
        defaults, about = (field.default, field.default_factory), field.metadata.get("help", "")
        if defaults == (dataclasses.MISSING,) * 2 and field.name not in values:
            is_positional = field.metadata.get("is_positional", False)
            spelling = field.name.upper() if is_positional else spelt(field.name)
            raise UsageError(f"{source}: {field.name} is required ({spelling}): {about}")
    return config_class(**values)


def _beside(
    path: Path, config_class: type["DataclassInstance"], values: dict[str, object]
) -> dict[str, object]:
    """Resolve names of files next to the configuration file, where there are such files."""
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
        loaded = (text_files.read_json if path.suffix == ".json" else text_files.read_yaml)(path)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if isinstance(loaded, dict) and {"config", "versions"} <= loaded.keys():
        loaded = loaded["config"]
    if not isinstance(loaded, dict):
        got = "None: it is empty" if loaded is None else short.repr(loaded)
        raise UsageError(f"{path}: must be a mapping of field names to values, got {got}")
    return loaded
