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

DIFFERENCES = {
    "bus-2GiB-messages-abort": "bytes on the shared bus in 32 signed bits: aborts",
    "bus-above-2GiB-messages-stall": "bytes on the shared bus in 32 signed bits: stalls",
    "bus-above-4GiB-messages-shorter": "bytes on the shared bus in 32 signed bits: too short",
    "memory-pool-without-figures-unused": "reads 0 for missing figures; the engine refuses",
    "memory-pool-without-latency": "reads 0 for missing figures; the engine refuses",
    "memory-type-missing-used": "divides by zero (136); the engine ends with 1",
    "rendezvous-2GiB": "sizes in 32 signed bits; the engine refuses",
    "rendezvous-4GiB": "sizes in 32 bits; the engine refuses",
    "time-beyond-2p53-collective": "stalls; the engine finishes",
}
"""Corners in which the engine does something else, and what the original does there."""


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
def test_corners_stay_as_they_are_recorded(name, golden_astra, tmp_path):
    """What the engine does is fixed, and equals the original wherever that is itself sound."""
    case = golden_astra / CORNERS / name
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    original = expected["original"]
    for backend in expected["backends"]:
        printed = run_case(case, tmp_path, backend, expected["extra_args"])
        lines = [list(line) for line in printed.finish_lines]

        assert printed.exit_code == expected["engine"]["exit_code"]
        assert lines == expected["engine"]["finish_lines"]
        if name in CRASHES:
            assert printed.exit_code == 0
            assert all(line in lines for line in original["finish_lines"])
        else:
            same = (printed.exit_code, lines) == (original["exit_code"], original["finish_lines"])
            assert same is (name not in DIFFERENCES)
        if name not in DIFFERENCES:
            assert {tuple(each) for each in original["statistics"]} <= set(printed.statistics)


def test_every_corner_that_differs_is_one_that_is_recorded():
    assert {*CRASHES, *DIFFERENCES} < set(names(CORNERS))
