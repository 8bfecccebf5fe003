"""Bad files are refused: no traceback, at most 5 s and 200 MiB, however small they are."""

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import fuzzed
import pytest
from processes import ROOT
from readers import READERS

from agents.ppo.checkpoint import pack_content, unpack_content

NUM_FILES = int(os.environ.get("FUZZED", "100000"))
"""Files of a soak, over all readers."""

FILES_PER_PROCESS = 1000
"""Of each reader."""

WITH_BOMBS = (
    *("network with laws", "network matrices", "results", "store of runs"),
    *("checkpoint of local plans", "ASTRA-sim network", "Chakra trace", "cluster slurm-tree"),
)
"""Readers of each format, whose bombs belong to the ordinary tests."""


LARGE = ("checkpoint",)
"""Readers whose networks take seconds to make; a soak has them, and a small one is read always."""


@pytest.fixture(autouse=True)
def _is_cut_short() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, fuzzed.stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.attack
@pytest.mark.parametrize("name", [name for name in READERS if name not in LARGE])
def test_damaged_files_are_refused_in_one_line(name, tmp_path):
    lines = list(fuzzed.read_all(READERS[name], 0, 4, tmp_path, with_bombs=False))

    assert lines == [{"reader": name, "read": 4, "bombs": 0}]


@pytest.mark.attack
@pytest.mark.parametrize("name", WITH_BOMBS)
def test_bombs_are_refused_before_they_go_off(name, tmp_path):
    *faults, numbers = fuzzed.read_all(READERS[name], 0, 0, tmp_path, with_bombs=True)

    assert faults == []
    assert numbers["bombs"] > 3


def test_a_reader_that_takes_too_much_is_found(tmp_path):
    """The test of the tests: memory, time, a traceback and an empty message."""

    def fault(read, longest_s: float = fuzzed.LONGEST_S) -> str:
        reader = fuzzed.Reader(name="bad", suffix=".txt", sample=bytes, read=read)
        fuzzed.begin()
        return str(fuzzed.fault_of(reader, b"", tmp_path, longest_s))

    def spend(path: Path) -> None:
        while True:
            pass

    assert "MiB" in fault(lambda path: len(b"a" * (300 * 2**20)))
    assert fault(lambda path: 1 // 0).startswith("ZeroDivisionError: ")
    assert fault(spend, 0.05).startswith("TooLongError")
    assert fault(lambda path: int("")) == "None"


def test_numbers_and_names_beyond_the_system_are_refused(tmp_path):
    """Found by a soak: integers beyond floats and beyond 64 bits, a name beyond all files."""
    beyond = b"9" * 400
    changes = {"profile": b": 0.01", "training log": b"256", "job": b"gpt3_175b"}
    for name, old in changes.items():
        reader = READERS[name]
        content = reader.sample().replace(old, (b": " if old[:1] == b":" else b"") + beyond)
        assert content != reader.sample()
        assert fuzzed.fault_of(reader, content, tmp_path) is None


@pytest.mark.parametrize("name", ["checkpoint", "checkpoint of local plans"])
def test_parameters_without_names_are_refused(name, tmp_path):
    """Found by a soak: a name of a tensor that is a tuple."""
    metadata, payload = unpack_content(READERS[name].sample())
    held = next(part for part in (payload, *payload.values())
                if isinstance(part, dict) and "parameters" in part)  # fmt: skip
    held["parameters"] = {(key,): value for key, value in held["parameters"].items()}

    assert fuzzed.fault_of(READERS[name], pack_content(payload, metadata), tmp_path) is None


@pytest.mark.soak
def test_a_hundred_thousand_bad_files_are_refused(tmp_path):
    """``FUZZED=1000000 make soak ARGS=tests/reliability`` reads more; files of faults are kept."""
    seed, num_read = int(os.environ.get("SEED", "0")), 0
    while num_read < NUM_FILES:
        words = [sys.executable, fuzzed.__file__, str(seed), str(FILES_PER_PROCESS), str(tmp_path)]
        words += [] if num_read else ["--bombs"]  # they are the same each time
        paths = (ROOT, ROOT / "tests", ROOT / "tests" / "reliability", ROOT / "astra-sim")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line for line in lines if "fault" in line] == []
        num_read += sum(line["read"] for line in lines)
        seed += 1
    assert num_read >= NUM_FILES
