"""Outputs of commands in pages: run again and written back."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from des.base.atomic_write import write_atomically
from des.base.command import BAD_INPUT, EXIT_CODES, UsageError
from des.base.commands import command
from des.base.flags import required

PROG = "python -m scenarios.rewrite_page"
_EPILOG = f"""\
examples:
  {PROG} docs/decide.md
  {PROG} docs/cluster.md

exit codes: 0 written; 2 the page cannot be read or shows no command, or a command fails;
  {EXIT_CODES}
"""
_SHOWN = re.compile(
    r"```\n\$ ((?:python -m|eastwest) [^\n>]+)\n((?:(?!\.\.\.$|\$ )[^`\n]*\n)*)```", re.M
)
"""A block with one command and all that it prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings; the fields are the flags."""

    page: Path = required(
        "page in Markdown whose blocks begin with $ python -m or $ eastwest", is_positional=True
    )


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    text = config.page.read_text(encoding="utf-8")
    shown = shown_commands(text)
    if not shown:
        raise UsageError(f"{config.page}: page must show a command, got none")
    write_atomically(config.page, with_outputs(text, partial(_output_of, shown)).encode())


def shown_commands(text: str) -> dict[str, str]:
    """Return the whole outputs that a page shows, by their commands."""
    return {match[1]: match[2] for match in _SHOWN.finditer(text)}


def with_outputs(text: str, run: Callable[[str], str]) -> str:
    """Return a page with the output of every command that it shows.

    Examples
    --------
    >>> with_outputs("```\\n$ eastwest x --y\\nold\\n```", lambda line: f"new {line}\\n")
    '```\\n$ eastwest x --y\\nnew eastwest x --y\\n```'
    """
    return _SHOWN.sub(lambda match: f"```\n$ {match[1]}\n{run(match[1])}```", text)


def _output_of(shown: Mapping[str, str], line: str) -> str:
    """Return what a command prints, or its error where the page shows one."""
    words = shlex.split(line.removeprefix("python -m "))
    words[0] = "scenarios" if words[0] == "eastwest" else words[0]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False
    )
    error = done.stderr[done.stderr.find("error: ") :]
    if done.returncode == BAD_INPUT and shown[line].startswith("error: "):
        return error
    if done.returncode:
        raise ValueError(f"{line}: must end with code 0, got {error.strip()}")
    return done.stdout
