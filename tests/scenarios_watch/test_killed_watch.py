"""A watch that is killed at random moments loses nothing of what it has seen."""

import os
import random
import threading

import pytest
from processes import kill_and_wait, python, wait_until
from watch_folders import add_lines, begin, flags_of, state_of
from watched_job import START_S, WORLD, watch

from agents.replanning.observed_world import WorldObservation
from scenarios.watch.command import main

KILLS = int(os.environ.get("KILLS", "50"))
NUM_MINUTES = 40


def survive(folder, kills, rng):
    """Kill the watch again and again while lines come; return its world after all lines."""
    begin(folder)
    flags = [*flags_of(folder), "--state", str(folder / "state.json")]
    assert main([*flags, "--once"]) == 0
    for kill in range(kills):
        with python("-m", "scenarios.watch", *flags, "--every", "0.01s") as process:
            before = mtime_ns(folder)
            for minute in range(kill * NUM_MINUTES // kills, (kill + 1) * NUM_MINUTES // kills):
                add_lines(folder, event(minute))
            assert wait_until(lambda then=before: mtime_ns(folder) != then, process)
            threading.Event().wait(rng.uniform(0.0, 0.2))
            kill_and_wait(process)
        assert state_of(folder)["format"] == "eastwest-watch"
    assert main([*flags, "--once"]) == 0
    return state_of(folder)["watch"]["world"]


def mtime_ns(folder):
    """Time at which the state was written last."""
    return (folder / "state.json").stat().st_mtime_ns


def event(minute):
    """Bandwidth of a link, as it changes from minute to minute."""
    return {"minute": minute, "link": "A->B", "bandwidth": f"{1 + minute % 7}Gbps"}


def known_without_kills():
    """World of a watch that has seen all lines in one go."""
    watching = watch()
    for minute in range(NUM_MINUTES):
        watching.take(
            WorldObservation(
                time_s=START_S + 60.0 * minute,
                about="A->B",
                figure="bandwidth_bytes_per_s",
                value=(1 + minute % 7) * 1e9 / 8,
            )
        )
    assert watching.world.base == WORLD
    return watching.world.plain()


def test_two_kills_lose_nothing(tmp_path):
    assert survive(tmp_path, 2, random.Random(0)) == known_without_kills()


@pytest.mark.soak
def test_fifty_kills_lose_nothing(tmp_path, capsys):
    """``KILLS=200 make soak ARGS=tests/scenarios_watch`` makes more."""
    assert survive(tmp_path, KILLS, random.Random(KILLS)) == known_without_kills()
    with capsys.disabled():
        print(f"{KILLS} kills, watch: same state, none left")  # noqa: T201
