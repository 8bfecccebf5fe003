"""Command lines that are damaged: an exit code of the help, one line of error, no half files."""

import os
import random
import shlex
from collections import Counter
from pathlib import Path

import pytest
from command_lines import changed_words, ending_of, load_commands
from documented import ways

from scenarios.entry.table import COMMANDS

NUM_LINES = int(os.environ.get("LINES", "2000"))
"""Lines of a soak, over all commands."""


def good_lines() -> dict[str, list[list[str]]]:
    """Words of the commands of all pages by the name of the command, and the command alone."""
    found = {command.name: [[command.name]] for command in COMMANDS}
    for line in ways():
        program, *words = shlex.split(line)
        if program == "eastwest" and words and words[0] in found:
            found[words[0]].append(words)
    return found


def take_lines(count: int, seed: str, folder: Path) -> tuple[Counter[str], list[str]]:
    """Run damaged lines, of each command in turn; how they ended, and what was wrong."""
    good, ended, faults = good_lines(), Counter[str](), []
    names = list(good)
    load_commands(names)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        words = changed_words(rng.choice(good[names[number % len(names)]]), rng)
        place = folder / str(number)
        ending = ending_of(words, place)
        ended["at work" if ending.code is None else f"code {ending.code}"] += 1
        fault = ending.fault([path.name for path in place.rglob("*")])
        if fault:
            faults.append(f"{shlex.join(words)}: {fault}")
    return ended, faults


@pytest.mark.soak
def test_two_thousand_damaged_lines_end_in_order(tmp_path, capsys):
    """``LINES=20000 make soak ARGS=tests/reliability/test_fuzzed_command_lines.py`` runs more."""
    ended, faults = take_lines(NUM_LINES, os.environ.get("SEED", "0"), tmp_path)
    with capsys.disabled():
        print(f"command lines: {dict(ended)}, {len(faults)} faults")  # noqa: T201

    assert faults == []
