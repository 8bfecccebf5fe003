"""Commands in README and docs: modules, subcommands, flags and files that there are."""

import re
import shlex
from contextlib import redirect_stdout, suppress
from functools import cache
from io import StringIO

import pytest
from documented import PAGES, ROOT, shown_on

from des.base.command import UsageError
from des.base.command_line import PRINT_FLAGS
from scenarios.entry.command import command_named
from scenarios.entry.table import COMMANDS, Command
from scenarios.train.tasks import TASKS

BEHIND = Command(name="agents.decide", module="agents.decide", about="Decide, without a report")
"""Module with a part of the flags of `eastwest decide`."""
BY_MODULE = {command.module: command for command in (*COMMANDS, BEHIND)}
OPTIONAL_SUBCOMMANDS = {"autoscale": {"capacity", "queues", "shared", "speed"}, "train": set(TASKS)}
"""Subcommands of commands that have flags of their own as well."""
EXPLAINED = {"X", "NAME", "..."}
"""Words that stand for any command."""

_NAME = re.compile(r"(?m)^\| `(eastwest [\w -]+)` \|")
"""A row of the table of names in docs/reference.md."""
_COMMAND = re.compile(
    r"(?:^|[\s/(])(?:python -m (scenarios|agents|calibration)((?:\.\w+)*)|(eastwest)) (.*)"
)


def lines_of(page):
    """Commands of ours on a page, whole: of blocks, of spans of code and of a table of names."""
    lines = [*(shown.line for shown in shown_on(page)), *_NAME.findall(page.read_text("utf-8"))]
    return [line for line in lines if _COMMAND.search(f"{line} ")]


@cache
def flags_of(name, *before):
    """Flags or subcommands of a command; the module may be one behind no row of the table."""
    shown = StringIO()
    with suppress(SystemExit), redirect_stdout(shown):
        command = BEHIND if name == BEHIND.name else command_named(name)
        command.run([*before, PRINT_FLAGS])
    return {line.partition("\t")[0] for line in shown.getvalue().splitlines()}


def wrong_in(line):
    """What a command names that is not there; empty for none."""
    found = _COMMAND.search(f"{line} ")
    module, words = f"{found[1]}{found[2]}", shlex.split(found[4].strip(" )"), comments=True)
    if found[3] or module == "scenarios":
        if not words or words[0].startswith("-") or words[0] in ("COMMAND", *EXPLAINED):
            return ""
        command, words = command_named(words[0]), words[1:]
    elif module.endswith(".X"):
        return ""
    else:
        command = BY_MODULE[module]
    if command.extra:
        return ""
    before = []
    if not any(each.startswith("--") for each in flags_of(command.name)) and words:
        if words[0] not in flags_of(command.name) | EXPLAINED | {"COMMAND"}:
            return f"no subcommand {words[0]}"
        before, words = [words[0]], words[1:]
    if words and words[0] in OPTIONAL_SUBCOMMANDS.get(command.name, ()):
        before, words = [words[0]], words[1:]
    if "--policy" in words and command.name == "train":
        before = ["--policy", words[words.index("--policy") + 1]]
    known = flags_of(command.name, *before) | {"--help", "--config"}
    given = {word.partition("=")[0].rstrip(",.;:") for word in words if word.startswith("--")}
    unknown = {flag for flag in given if not {flag, flag.replace("--no-", "--")} & known}
    return f"no flag {', '.join(sorted(unknown))}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_have_the_flags_that_they_are_shown_with(page):
    wrong = {}
    for line in lines_of(page):
        try:
            said = wrong_in(line)
        except (UsageError, KeyError, ValueError) as error:
            said = repr(error)
        if said:
            wrong[line] = said

    assert wrong == {}


def test_files_that_commands_of_the_pages_read_are_shipped():
    """Those in the checkout; what a page makes itself, or leaves to the user, has another place."""
    named = {
        word.rstrip(",.")
        for page in PAGES
        for line in lines_of(page)
        for word in re.findall(r"(?<![\w/.-])examples/[\w./-]+", line)
    }

    assert "examples/my_world.yaml" in named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
