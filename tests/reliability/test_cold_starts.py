"""Every command says something within 2 s of its start, also in pipes."""

import os
import re
import selectors
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from processes import python

from scenarios.entry.table import COMMANDS

MOST_SILENCE_S = 2.0
ROOM_S = 0.5
"""For the start of Python itself, before anything of ours runs. [s]"""

SHELL = re.compile(r" [|>&]|  #")
"""Shell operators that end the words of a command."""

_WAIT_S = 60.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def first_example(name: str) -> list[str]:
    """Words of the first example in the help of a command, without its own name."""
    words = ["-m", "scenarios", name, "--help"]
    with python(*words, stdout=subprocess.PIPE, text=True, env={"COLUMNS": "400"}) as process:
        lines = (process.communicate()[0].partition("\nexamples:\n")[2]).splitlines()
    prog = f"python -m scenarios {name}"
    line = next(line for line in lines if line.strip().startswith(prog))
    return shlex.split(SHELL.split(line.strip().removeprefix(prog))[0])


def cpu_s(pid: int) -> float:
    """CPU time of a process so far. [s]"""
    words = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS_PER_S


def silence_s(words: list[str], folder: Path) -> float:
    """Time until a command has written something or has ended. [s]

    It is the time of a wall clock, or of its CPU where others slow it down.
    """
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    place = {"stdin": subprocess.DEVNULL, "cwd": folder}
    began_s = time.monotonic()
    with python("-m", "scenarios", *words, **streams, **place) as process:
        ready = selectors.DefaultSelector()
        ready.register(process.stdout, selectors.EVENT_READ)
        assert ready.select(_WAIT_S), f"{words}: nothing in {_WAIT_S} s"
        return min(time.monotonic() - began_s, cpu_s(process.pid))


@pytest.mark.soak
@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_the_first_example_of_a_command_is_not_silent(name, tmp_path, capsys):
    words = [name, *first_example(name)]
    found_s = silence_s(words, tmp_path)
    with capsys.disabled():
        print(f"{found_s:5.2f} s  {shlex.join(words)}")  # noqa: T201

    assert found_s <= MOST_SILENCE_S + ROOM_S
