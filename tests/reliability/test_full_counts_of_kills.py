"""Long commands are killed again and again: each continues to the same bytes, without orphans."""

import os
import random
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest
from forked import adopt_orphans
from killed_commands import BASE, COMMANDS, ORPHANS_LIMIT_S, Command, kill_after, load, run_whole

NUM_KILLS = int(os.environ.get("KILLS", "100"))
"""Kills of a soak, over all commands."""

NAMES = os.environ.get("KILLED", ",".join(COMMANDS)).split(",")
KILLS_PER_RUN = 3


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the settings that commands name."""
    folder = tmp_path_factory.mktemp("kills")
    (folder / "base.yaml").write_text(BASE)
    return folder


def command_in(folder: Path, name: str, num_workers: int = 1) -> Command:
    """A command whose flags name the settings in a folder, and a number of workers."""
    words = {"BASE": str(folder / "base.yaml"), "WORKERS": str(num_workers)}
    command = COMMANDS[name]
    return replace(command, flags=tuple(words.get(one, one) for one in command.flags))


@pytest.mark.soak
def test_a_hundred_kills_leave_the_same_bytes_and_no_orphans(places, capsys):
    """``KILLS=500 make soak ARGS=tests/reliability`` makes more; ``KILLED=kpi`` of one alone."""
    adopt_orphans()
    rng, num_kills, longest_s = random.Random(os.environ.get("SEED", "0")), 0, 0.0
    wholes: dict[str, float] = {}
    for number, name in enumerate(cycle(NAMES)):
        if num_kills >= NUM_KILLS:
            break
        command, whole = command_in(places, name), places / f"{name}-whole"
        if name not in wholes:
            load(command, whole)  # compiles
            wholes[name] = run_whole(command, places / f"{name}-again")
            command.assert_same(whole, places / f"{name}-again")
        run = places / f"{name}-{number}"
        command = command_in(places, name, rng.choice((1, 1, 1, 2)))
        for _ in range(KILLS_PER_RUN):
            group = rng.random() < 0.5
            wait_s = rng.uniform(0.1, 1.0) * wholes[name]
            ended_s = kill_after(command, run, wait_s, group=group)
            if ended_s is None:
                break
            num_kills += 1
            longest_s = max(longest_s, ended_s)
            assert ended_s <= ORPHANS_LIMIT_S, (name, number, group, wait_s)
        run_whole(command, run)
        command.assert_same(whole, run)
        with capsys.disabled():
            print(f"{num_kills} kills, {name}: same bytes; none left after {longest_s:.2f} s")  # noqa: T201
