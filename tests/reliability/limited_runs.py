"""Simulate drawn worlds in copies of this process, each with a little memory of its own.

``python limited_runs.py SEED RUNS FOLDER`` draws worlds, compiles, and prints counts as JSON: runs
that were equal to the readable engine's, those for which there was no memory, and faults. Compiled
code comes from, and goes to, ``NUMBA_CACHE_DIR``.
"""

import faulthandler
import json
import mmap
import os
import random
import resource
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":  # pytest has these on the path
    sys.path[1:1] = [str(Path(__file__).parents[level]) for level in (1, 2)]

from forked import forked
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from law_strategies import movements
from sending import transports
from strategies import cases

from des import IterationResult, Plan, Topology, Workload, simulate
from des.compiled.simulate import simulate_compiled

NUM_CASES = 60
RUNS_PER_COPY = 50
"""Runs of a copy, all under its limit; making copies is what takes time."""

MOST_ROOM_BYTES = 4 << 20
"""Memory of a copy for its runs, at most."""

_BLOCK_BYTES, _SMALL_BYTES = 1 << 14, 400

Case = tuple[Topology, Workload, Plan]
Outcome = IterationResult | str
_EQUAL, _NO_MEMORY = 0, 1


def drawn_cases(seed: int) -> list[Case]:
    """Worlds, workloads and plans as tests of the engines have them."""
    found: list[Case] = []

    @seeded(seed)
    @settings(max_examples=NUM_CASES, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(min_domains=2), transport=transports(), movement=st.none() | movements())
    def draw(case, transport, movement) -> None:
        found.append((replace(case[0], transport=transport, movement=movement), *case[1:]))

    draw()
    return found


def outcome(simulator, case: Case) -> Outcome:
    """Result of a simulation, or why there is none."""
    try:
        return simulator(*case)
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def filled_memory(room_bytes: int) -> tuple[list[bytes], list[bytes]]:
    """Let this process get no more memory, and fill what it has but for some room in one piece."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * MOST_ROOM_BYTES, resource.RLIM_INFINITY))
    room, large, small = bytes(room_bytes), list[bytes](), list[bytes]()
    for held, num_bytes in ((large, _BLOCK_BYTES), (small, _SMALL_BYTES)):
        with suppress(MemoryError):
            while True:
                held.append(bytes(num_bytes))
    del room
    return large, small


def run_in_copy(
    expected: list[tuple[Case, Outcome]], rng: random.Random, folder: Path, counts: mmap.mmap
) -> str:
    """Run worlds in a copy that counts them; returns what went wrong, empty if nothing did."""
    room_bytes = rng.randrange(rng.choice((1 << 16, 1 << 18, 1 << 20, MOST_ROOM_BYTES)))
    picked = [rng.choice(expected) for _ in range(RUNS_PER_COPY)]

    def work() -> int:
        faulthandler.enable(sys.stderr)
        try:
            held = filled_memory(room_bytes)
        except MemoryError:  # not even for this
            counts[_NO_MEMORY] += 1
            return 0
        for case, wanted in picked:
            try:
                if outcome(simulate_compiled, case) != wanted:
                    raise AssertionError("the engines differ")
            except (MemoryError, SystemError):  # the second where a frame of Python gets none
                counts[_NO_MEMORY] += 1
            else:
                counts[_EQUAL] += 1
        return 0 if held else 1

    errors = folder / f"errors-{os.getpid()}"
    counts[_EQUAL] = counts[_NO_MEMORY] = 0
    errors.unlink(missing_ok=True)
    code = os.waitstatus_to_exitcode(os.waitpid(forked(work, folder, errors), 0)[1])
    return f"exit code {code}: {errors.read_text('utf-8', 'replace')[:2500]}" if code else ""


def main(seed: int, num_runs: int, folder: Path) -> None:
    """Compile, then run; a line of JSON."""
    warnings.simplefilter("ignore")
    expected = [(case, outcome(simulate, case)) for case in drawn_cases(seed)]
    assert all(outcome(simulate_compiled, case) == wanted for case, wanted in expected)
    rng, counts, found = random.Random(seed), mmap.mmap(-1, mmap.PAGESIZE), [0, 0]
    faults = []
    while sum(found) < num_runs:
        fault = run_in_copy(expected, rng, folder, counts)
        found = [one + counts[place] for place, one in enumerate(found)]
        if fault:
            faults.append(fault)
            found[_EQUAL] += 1  # so that there is an end
    line = {"runs": sum(found), "equal": found[0], "without memory": found[1], "faults": faults}
    sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
