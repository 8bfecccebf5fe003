"""Output of commands: one line of error that leaves no files, and the help with its examples."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from scenarios.entry.command import command_named


def printed_by(line):
    """Run a line of a page as a shell does and return what it printed, also into its file."""
    words, _, path = line.partition(" > ")
    name, *argv = shlex.split(words)[1:]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert command_named(name).run(argv) == 0
    if path:
        Path(path).write_text(shown.getvalue(), encoding="utf-8")
    return shown.getvalue()


def error_of(main, argv, capsys):
    """Return the one line with which a command ends that refuses its input, with exit code 2."""
    capsys.readouterr()
    assert main(list(argv)) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


def assert_refused(main, argv, message, capsys, *, unwritten):
    """A command names what is wrong in one line, with exit code 2, and writes nothing."""
    error = error_of(main, argv, capsys)

    assert re.match(f"error: .*{message}", error), error
    assert not unwritten.exists()


PAPER = ("--figures", "svg", "--parquet")
"""Flags of a command that measures: figures for a paper, and rows as Parquet."""


def assert_measurement_is_written(folder, *, rows, figure="", settings="config.json"):
    """A command that measures, with `PAPER`, leaves settings, rows in two forms, page, figure."""
    assert {"config", "versions"} <= json.loads((folder / settings).read_text("utf-8")).keys()
    table = pd.read_parquet(folder / f"{rows}.parquet")
    assert len(table) == len(pd.read_csv(folder / f"{rows}.csv")) > 0
    assert "<html" in (folder / "report.html").read_text("utf-8")
    if figure:
        assert "<svg" in (folder / f"{figure}.svg").read_text("utf-8")


def help_of(main, capsys, *, fields=()):
    """Help of a command, which names the flags of all these fields of its configuration."""
    with pytest.raises(SystemExit) as end:
        main(["--help"])

    shown = capsys.readouterr().out
    assert end.value.code == 0
    for field in (each for each in fields if not each.metadata.get("is_positional")):
        assert re.search(rf"^  --{field.name.replace('_', '-')}[ ,]", shown, re.M), field.name
    return shown


def examples_of(shown, command):
    """Arguments of the examples that a help shows for a command."""
    joined = shown.replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(rf"^  python -m {command}(.*)$", joined, re.M)]
