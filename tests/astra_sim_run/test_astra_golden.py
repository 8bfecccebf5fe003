"""Cycle counts that the original printed, case by case: ``tests/golden/README.md``."""

import fnmatch
import io
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from golden_astra import CASES, CORNERS, names

from astra_sim import aware, unaware

MAINS = {"congestion_unaware": unaware.main, "congestion_aware": aware.main}

EXIT_CODES = {
    "err-cpu-node-then-comm-last": 134,
    "err-endpoint0-at-time-zero": 134,
    "err-event-at-time-zero-aware": 134,
    "err-memory-node-without-memory": 1,
    "err-metadata-node": 134,
    "err-missing-trace": 1,
    "err-multidim-aware": 255,
    "err-no-implementation": 134,
    "err-no-splits": 136,
    "err-npus-one": 255,
    "err-reduce-unsupported": 134,
    "err-send-to-self": 134,
    "err-topology-name": 255,
    "err-two-npu-ring-aware": 134,
    "err-unknown-algorithm": 1,
    "err-unknown-dependency": 134,
    "err-unknown-group": 1,
    "err-zero-bandwidth": 255,
    "err-zero-size-send": 134,
}
"""Ends of the original, by the table of failures in its description; not in the cases."""

CRASHES = (
    "exit-crash-loses-lines",
    "heap-case-1062-bus",
    "heap-case-1135-collbig",
    "heap-case-1153-dag",
    "heap-case-20000-mem",
    "heap-case-53-collbig",
)
"""Corners in which the original corrupts its heap and dies, and some or all lines are lost."""

_BUS = r"sys\[0\], model-shared-bus: messages must have less than 2147483648 bytes"
_RENDEZVOUS = "message 0->1: with rendezvous must have less than 2147483648 bytes"
REFUSALS = {
    "bus-2GiB-messages-abort": _BUS,
    "bus-above-2GiB-messages-stall": _BUS,
    "bus-above-4GiB-messages-shorter": _BUS,
    "rendezvous-2GiB": _RENDEZVOUS,
    "rendezvous-4GiB": _RENDEZVOUS,
    "time-beyond-2p53-collective": r"rank 0, node 1 'coll': must be done by 9007199254740992 ns",
}
"""Corners in which the original errs, aborts or stalls, and the engine refuses with 134."""

WARNINGS = {
    "memory-pool-without-figures-unused": [
        "remote-mem-latency: not given for MEMORY_POOL, read as 0",
        "remote-mem-bw: not given for MEMORY_POOL, read as 0",
    ],
    "memory-pool-without-latency": ["remote-mem-latency: not given for MEMORY_POOL, read as 0"],
}
"""Corners in which the engine says what it reads as the original does."""

_FINISH = re.compile(r"sys\[(\d+)\] finished, (\d+) cycles, exposed communication (\d+) cycles")
_STATISTIC = re.compile(r"sys\[(\d+)\], (.+): (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Exit code, standard output and diagnosis of a run."""

    exit_code: int
    output: str
    errors: str

    @property
    def finish_lines(self) -> list[tuple[int, int, int]]:
        """Rank, cycles at its finish and exposed cycles of every finish line, in order."""
        return [
            (int(rank), int(finish), int(exposed))
            for rank, finish, exposed in _FINISH.findall(self.output)
        ]

    @property
    def statistics(self) -> list[tuple[str, ...]]:
        """Rank, name and value of every line of statistics."""
        return _STATISTIC.findall(self.output)


def flags_of(case: Path, folder: Path, extra_args: Sequence[str]) -> list[str]:
    """Flags that run a case, its log files in the folder."""
    flags = [
        f"--workload-configuration={case / 'trace'}",
        f"--system-configuration={case / 'system.json'}",
        f"--remote-memory-configuration={case / 'remote_memory.json'}",
        f"--network-configuration={case / 'network.yml'}",
        f"--logging-folder={folder / 'log'}",
    ]
    if (case / "comm_group.json").exists():
        flags.append(f"--comm-group-configuration={case / 'comm_group.json'}")
    return [*flags, *extra_args]


def run_case(case: Path, folder: Path, backend: str, extra_args: Sequence[str]) -> Printed:
    """Run a case within this process."""
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        exit_code = MAINS[backend](flags_of(case, folder, extra_args))
    return Printed(exit_code=exit_code, output=output.getvalue(), errors=errors.getvalue())


def recorded_lines(ranks: Mapping[str, Mapping[str, int]]) -> list[tuple[int, int, int]]:
    """Finish lines that are recorded of a case, by rank."""
    return sorted(
        (int(rank), cycles["finish_cycles"], cycles["exposed_comm_cycles"])
        for rank, cycles in ranks.items()
    )


@pytest.fixture(scope="module")
def run(golden_astra, tmp_path_factory):
    """Run a case, once for all tests: what is recorded of it, and what is printed."""
    done: dict[str, tuple[dict[str, object], Printed]] = {}

    def run_once(name):
        if name not in done:
            case = golden_astra / CASES / name
            expected = json.loads((case / "expected.json").read_text("utf-8"))
            folder = tmp_path_factory.mktemp("run")
            printed = run_case(case, folder, expected["backend"], expected["extra_args"])
            done[name] = expected, printed
        return done[name]

    return run_once


def test_all_recorded_cases_are_here():
    assert (len(names(CASES)), len(names(CORNERS))) == (175, 17)


@pytest.mark.parametrize("name", names(CASES))
def test_every_rank_has_the_cycles_of_the_original(name, run):
    expected, printed = run(name)

    if expected["outcome"] == "error":
        assert printed.exit_code != 0
    else:
        assert sorted(printed.finish_lines) == recorded_lines(expected["ranks"])
        assert printed.exit_code == 0


@pytest.mark.parametrize("name", names(CASES))
def test_failures_alone_have_the_exit_codes_of_the_original_and_say_why(name, run):
    expected, printed = run(name)

    assert (name in EXIT_CODES) is (expected["outcome"] == "error")
    assert printed.exit_code == EXIT_CODES.get(name, 0)
    assert printed.errors.strip() or name not in EXIT_CODES


@pytest.mark.parametrize("only", ["multi-ar-*", "err-no-splits", "p2p-*incast*", "groups-of-one*"])
def test_the_commands_print_the_same_as_their_functions(only, golden_astra, run, tmp_path):
    cases = fnmatch.filter(names(CASES), only)
    for name in cases:
        expected, printed = run(name)
        command = f"astra_sim.{expected['backend'].removeprefix('congestion_')}"
        flags = flags_of(golden_astra / CASES / name, tmp_path, expected["extra_args"])

        done = subprocess.run(
            [sys.executable, "-m", command, *flags], capture_output=True, text=True, check=False
        )

        assert done.returncode == printed.exit_code
        alone = Printed(exit_code=done.returncode, output=done.stdout, errors=done.stderr)
        assert alone.finish_lines == printed.finish_lines
        assert alone.errors == printed.errors
    assert cases


@pytest.mark.parametrize("name", names(CORNERS))
def test_corners_are_equal_or_refused_by_name(name, golden_astra, tmp_path):
    """Never another number: what a crash of the original has lost, its recorded run fills in."""
    case = golden_astra / CORNERS / name
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    original = expected["original"]
    for backend in expected["backends"]:
        printed = run_case(case, tmp_path, backend, expected["extra_args"])
        if name in REFUSALS:
            assert (printed.exit_code, printed.finish_lines) == (134, [])
            assert re.match(f"astra-sim-{backend[11:]}: error: {REFUSALS[name]}", printed.errors)
            assert printed.errors.count("\n") == 1
            continue
        lines = [list(line) for line in printed.finish_lines]
        told = [line.split(".json: ")[-1] for line in printed.errors.splitlines()]
        assert {tuple(each) for each in original["statistics"]} <= set(printed.statistics)
        if name in CRASHES:
            assert (printed.exit_code, lines) == (0, expected["engine"]["finish_lines"])
            assert all(line in lines for line in original["finish_lines"])
        else:
            assert (printed.exit_code, lines) == (original["exit_code"], original["finish_lines"])
        if printed.exit_code == 0:
            assert told == WARNINGS.get(name, [])


def test_every_corner_of_a_table_is_one_that_is_recorded():
    assert {*CRASHES, *REFUSALS, *WARNINGS} < set(names(CORNERS))
