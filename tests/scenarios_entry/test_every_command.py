"""Every command of the table: help, flags that all have, and the page that lists the others."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from des.base.command_line import PRINT_FLAGS
from scenarios.entry.table import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 80
ALL_HAVE = ["--config", "--quiet", "--version"]
SOME_HAVE = ("--json", "--quick", "--seed", "--workers", "--resume", "--out", "--network")
OTHER_NAMES = {"--world", "--topology", "--short", "--processes", "--output", "--verbose"}
BUILT = [each for each in COMMANDS if not each.extra]
"""Commands that every installation has."""


def printed(command, arguments, capsys):
    """Standard output of a command that ends with exit code 0."""
    with suppress(SystemExit):
        assert command.run(arguments) == 0
    return capsys.readouterr().out


def flags_of(command, path, capsys):
    """Flags of a command or subcommand; names without dashes are its subcommands."""
    lines = printed(command, [*path, PRINT_FLAGS], capsys).splitlines()
    return [line.partition("\t")[0] for line in lines]


def paths_of(command, capsys):
    """Subcommands, each as a path of one word; the empty path of a command with flags itself."""
    found = flags_of(command, [], capsys)
    subcommands = [[name] for name in found if name and not name.startswith("--")]
    return [[], *subcommands] if any(name.startswith("--") for name in found) else subcommands


@pytest.mark.parametrize("command", BUILT, ids=lambda each: each.name)
def test_help_of_a_command_has_description_flags_and_two_examples(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for path in paths_of(command, capsys):
        shown = printed(command, [*path, "--help"], capsys)
        usage, description, rest = shown.split("\n\n", 2)
        examples = re.search(r"(?m)^examples:\n((?:  .*\n?|\n(?=  ))+)", rest)

        assert usage.startswith("usage: ")
        assert description[0].isupper()
        assert " options " in rest.partition("\n")[0] + rest
        assert examples, path
        assert len(re.findall(r"python -m|eastwest", examples[1])) >= 2, path
        assert "exit codes:" in rest
        wide = [line for line in shown.split("\n") if len(line) > WIDTH]
        assert not [line for line in wide if len(line.split()) > 1], path


@pytest.mark.parametrize("command", BUILT, ids=lambda each: each.name)
def test_flags_of_a_command_have_the_names_that_all_have(command, capsys):
    for path in paths_of(command, capsys):
        flags = flags_of(command, path, capsys)

        assert not set(ALL_HAVE) - set(flags), path
        assert not OTHER_NAMES & set(flags), path


def test_the_page_lists_every_command_with_its_flags(capsys):
    """Subcommands of the same flags share a row."""
    rows = [["command", "purpose", "subcommands", "flags"], ["---"] * 4]
    for command in BUILT:
        groups: dict[str, list[str]] = {}
        for path in paths_of(command, capsys):
            flags = flags_of(command, path, capsys)
            has = ", ".join(name.removeprefix("--") for name in SOME_HAVE if name in flags)
            groups.setdefault(has, []).extend(path or ["alone"])
        about = command.about
        for has, names in groups.items():
            subcommands = "" if groups == {has: ["alone"]} else ", ".join(names)
            rows.append([f"`eastwest {command.name}`", about, subcommands, has])
            about = ""
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)

    assert table in (ROOT / "docs/reference.md").read_text("utf-8"), table
