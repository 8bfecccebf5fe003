"""Compiled code under limits of memory: it gives its result, or says that there is no memory."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial

import limited_runs
import numpy as np
import pytest
from forked import forked
from processes import ROOT

from des.dynamics.correlation import share_common_factor

NUM_RUNS = int(os.environ.get("RUNS", "100000"))
"""Runs of a soak, over all caches and processes."""

NUM_CACHES = 3


@pytest.mark.attack
def test_a_law_without_memory_says_so(tmp_path):
    """Found by the soak: NumPy ends the process where a large broadcast finds no memory."""
    shape, ended = (64, 2, 100), Counter[int]()

    def draw(room_bytes: int) -> int:
        held = limited_runs.filled_memory(room_bytes)
        try:
            share_common_factor(np.random.default_rng(0), shape, 0.5)
        except MemoryError:
            return 3
        return 0 if held else 1

    for room_bytes in range(100_000, 500_000, 20_000):
        number = forked(partial(draw, room_bytes), tmp_path, tmp_path / "errors")
        ended[os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])] += 1

    assert set(ended) == {0, 3}


@pytest.mark.soak
def test_a_hundred_thousand_runs_under_limits_do_not_crash(tmp_path, capsys):
    """Two processes at a time compile into one new cache; copies of both run under ``ulimit -v``.

    ``RUNS=1000000 make soak ARGS=tests/reliability/test_limited_runs.py`` runs more.
    """
    paths = (ROOT, ROOT / "tests", ROOT / "tests" / "reliability", ROOT / "astra-sim")
    first, total = int(os.environ.get("SEED", "0")), Counter[str]()
    faults: list[str] = []
    for number in range(NUM_CACHES):
        cache = tmp_path / f"cache{number}"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        environment |= {"NUMBA_CACHE_DIR": str(cache)}
        words = [str(first + number), str(NUM_RUNS // (2 * NUM_CACHES)), str(tmp_path)]
        command = [sys.executable, limited_runs.__file__, *words]
        both = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for process in both:
            counts = json.loads(process.communicate()[0])
            assert process.returncode == 0
            faults += counts.pop("faults")
            total += Counter(counts)
        assert any(cache.rglob("*.nbi"))
    with capsys.disabled():
        print(f"limited runs: {dict(total)}, {len(faults)} faults")  # noqa: T201

    assert Counter(faults) == {}
    assert total["without memory"] > 0
