"""A command line as tyro reads it: flags of text, one value each, and switches."""

import contextlib
import dataclasses
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import tyro

from des.base.checks import nearest
from des.base.command import UsageError
from des.base.fields import FieldKind, from_text
from des.base.help_text import fit_text, terminal_width
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.base.spelling import SPELLING, own_arguments

with lazy_imports(__name__):
    from des.base import version

_ABSENT = object()
"""Value of a flag that the user did not give."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag as tyro sees it; all flags are absent by default."""

    name: str
    kind: FieldKind
    help_text: str
    default: str
    is_positional: bool = False
    formerly: str | None = None

    @property
    def spelling(self) -> str:
        """Spelling on the command line."""
        return self.name.upper() if self.is_positional else spelt(self.name)

    @property
    def absent(self) -> object:
        """Value of a flag that is not given; tyro takes a switch of two flags for None alone."""
        return None if self.kind.is_switch else _ABSENT

    @property
    def annotation(self) -> object:
        """Type for tyro, with what help texts show and how the text is read."""
        word = self.name.removesuffix("_")  # as of `from_`, since Python reserves the word alone
        shown = tyro.conf.arg(
            name=None if word == self.name else word,
            help=self.help_text,
            help_behavior_hint=f"({self.default})",
        )
        if self.kind.is_switch:
            return Annotated[Optional[bool], tyro.conf.DisallowNone, shown]  # noqa: UP045 tyro's
        reading: tyro.constructors.PrimitiveConstructorSpec[object] = (
            tyro.constructors.PrimitiveConstructorSpec(
                nargs="*" if self.takes_words else 1,
                metavar=self.name.upper() if self.is_positional else self.kind.metavar,
                instance_from_str=self._read,
                is_instance=lambda _: True,
                str_from_instance=lambda _: [],
            )
        )
        if self.is_positional:
            return Annotated[object, reading, shown, tyro.conf.Positional]
        return Annotated[object, reading, shown]

    @property
    def takes_words(self) -> bool:
        """Whether its place has any number of words, such as what a shell makes of ``*.json``."""
        return self.is_positional and self.kind.is_tuple

    def _read(self, texts: Sequence[object]) -> object:
        if self.takes_words:
            each = dataclasses.replace(self.kind, is_tuple=False)
            return tuple(self._value(text, each) for text in texts) or _ABSENT
        return self._value(texts[0], self.kind)

    def _value(self, text: object, kind: FieldKind) -> object:
        if not isinstance(text, str):  # an empty list, where a place has no text but others follow
            return _ABSENT
        try:
            return from_text(text, kind)
        except ValueError as error:
            raise _WrongFlagError(f"argument {self.spelling}: {error}") from error


PRINT_FLAGS = "--print-flags"
"""Last argument on which a command prints its flags and their words, for shells that complete."""

_COMMON = (
    Flag(
        name="quiet",
        kind=FieldKind(scalar=bool),
        help_text="no progress and no notes on stderr; results and errors stay",
        default="default: false",
    ),
    Flag(
        name="version",
        kind=FieldKind(scalar=bool),
        help_text="print the version and exit",
        default="default: false",
    ),
)
"""Flags of every command."""


class _WrongFlagError(Exception):
    """A value is wrong; no `ValueError`, as tyro shows these itself, in a frame of many lines."""


def given_flags(
    flags: Sequence[Flag],
    argv: Sequence[str] | None,
    *,
    prog: str,
    description: str,
    epilog: str,
) -> dict[str, object]:
    """Read the values of the flags that are on the command line, by name.

    ``--help`` prints the flags, then the epilog broken at the width of the terminal, and exits;
    ``--version`` prints the version. ``--quiet`` drops all notes of this process.

    Raises
    ------
    UsageError
        If a flag is unknown, has no value or more than one, or a wrong one.
    """
    own, flags = flags, (*flags, *_COMMON)
    arguments = _rename_former_keys(own, own_arguments(argv, prog))
    if arguments[-1:] == [PRINT_FLAGS]:
        sys.stdout.write("".join(_complete(each) for each in flags))
        raise SystemExit(0)
    if "--version" in arguments:
        sys.stdout.write(f"{version.version_line()}\n")
        raise SystemExit(0)
    values = _values(flags, arguments, SPELLING.of(prog), description, SPELLING.of(epilog))
    if values.pop("quiet", False):
        SPEAKER.is_quiet = True
    values.pop("version", None)
    return values


def _values(
    flags: Sequence[Flag], arguments: list[str], prog: str, description: str, epilog: str
) -> dict[str, object]:
    spec = [(each.name, each.annotation, dataclasses.field(default=each.absent)) for each in flags]
    found: object
    shown = io.StringIO()
    flags_class = dataclasses.make_dataclass("Flags", spec, kw_only=True)
    try:
        with (
            contextlib.redirect_stderr(io.StringIO()),  # what tyro says of a missing value
            contextlib.redirect_stdout(shown),
        ):
            found, unknown = tyro.cli(
                flags_class,
                args=arguments,
                prog=prog,
                description=description.strip(),
                return_unknown_args=True,
            )
    except _WrongFlagError as error:
        raise UsageError(str(error)) from error
    except SystemExit as end:
        if end.code:
            raise UsageError(_missing_value(flags, arguments)) from end
        text = shown.getvalue() + (f"\n{epilog.strip()}\n" if epilog else "")
        sys.stdout.write(fit_text(text, terminal_width()))
        raise
    if unknown:
        hint = nearest(unknown[0], [each.spelling for each in flags])
        raise UsageError(f"{prog}: unknown argument {unknown[0]!r}; {hint}")
    values = vars(found)
    return {each.name: values[each.name] for each in flags if values[each.name] is not each.absent}


def _rename_former_keys(flags: Sequence[Flag], arguments: Sequence[str]) -> list[str]:
    """Write flags by their present names where former ones were given."""
    former = {spelt(each.formerly): each.spelling for each in flags if each.formerly}
    parts = [argument.partition("=") for argument in arguments]
    return ["".join((former.get(name.replace("_", "-"), name), *rest)) for name, *rest in parts]


def _complete(flag: Flag) -> str:
    """Flag, tab, the words that it takes; ``file`` where it takes the name of one."""
    if flag.is_positional:
        return ""
    is_file = flag.kind.scalar is Path or flag.name in ("network", "model", "job")
    words = "file" if is_file else " ".join(flag.kind.choices)
    return f"{flag.spelling}\t{words}\n"


def _missing_value(flags: Sequence[Flag], arguments: Sequence[str]) -> str:
    """Say which flag has no value, the only thing that tyro refuses before it reads values."""
    names = {each.spelling for each in flags if not each.kind.is_switch}
    after = [*arguments[1:], "--"]
    without = [
        name
        for name, value in zip(arguments, after, strict=True)
        if name.replace("_", "-") in names and value[:1] == "-" and not value[1:2].isdigit()
    ]
    return f"argument {', '.join(without[:1])}: expected one argument, got none"


def spelt(name: str) -> str:
    """Spell the name of a field as its flag.

    Examples
    --------
    >>> spelt("num_steps"), spelt("from_")
    ('--num-steps', '--from')
    """
    return "--" + name.removesuffix("_").replace("_", "-")
