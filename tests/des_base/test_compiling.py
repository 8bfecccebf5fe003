"""Messages while Numba compiles."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
from des.base.jit import kernel

@kernel
def least(values):
    found = values[0]
    for value in values:
        found = min(found, value)
    return found

@kernel
def twice_the_least(values):
    return 2 * least(values)
"""
USE = "import numpy, doubling; print(doubling.twice_the_least(numpy.array([3.0, 2.0])))"


def run(folder):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "4.0\n"
    return done.stderr.splitlines()


def test_compiling_is_named_and_timed_once_and_a_filled_cache_is_quiet(tmp_path):
    (tmp_path / "doubling.py").write_text(MODULE, "utf-8")

    first, second = run(tmp_path), run(tmp_path)

    assert first[0] == f"compiling for this machine, kept in {tmp_path / 'cache'}"
    # The inner function is part of the outer one's time; a quick machine says nothing of either.
    assert all(line.startswith("compiling: twice_the_least took ") for line in first[1:])
    assert len(first) <= 2
    assert second == []
