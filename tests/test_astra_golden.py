"""Cycle counts that the original printed, case by case, judged as the cases' own script judges.

Inputs and outputs stand in ``../shared/golden/astra``; ``check.py`` there runs the same cases
against any two commands.
"""

import importlib.util
import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from astra_sim import aware, unaware

GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden" / "astra"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/expected.json"))
NEEDS_CASES = pytest.mark.skipif(not CASES, reason="no golden cases in ../shared/golden/astra")

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
"""How the original ends, by the table of failures in its description; not in the cases."""


def run_case(name: str, folder: Path) -> tuple[int, str, str]:
    """Exit code, output and diagnosis of a case, run within this process."""
    case = GOLDEN / name
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    flags = [
        f"--workload-configuration={case / 'trace'}",
        f"--system-configuration={case / 'system.json'}",
        f"--remote-memory-configuration={case / 'remote_memory.json'}",
        f"--network-configuration={case / 'network.yml'}",
        f"--logging-folder={folder / 'log'}",
        *expected["extra_args"],
    ]
    if (case / "comm_group.json").exists():
        flags.append(f"--comm-group-configuration={case / 'comm_group.json'}")
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        exit_code = MAINS[expected["backend"]](flags)
    return exit_code, output.getvalue(), errors.getvalue()


@pytest.fixture(scope="module")
def check():
    """The script of the cases, as a module."""
    spec = importlib.util.spec_from_file_location("golden_astra_check", GOLDEN / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@NEEDS_CASES
@pytest.mark.parametrize("name", CASES)
def test_every_rank_has_the_cycles_of_the_original(name, check, tmp_path):
    expected = json.loads((GOLDEN / name / "expected.json").read_text("utf-8"))

    exit_code, output, errors = run_case(name, tmp_path)

    assert check.judge(expected, exit_code, output, errors) == []


@NEEDS_CASES
@pytest.mark.parametrize("name", sorted(set(EXIT_CODES) & set(CASES)))
def test_failures_have_the_exit_codes_of_the_original_and_say_why(name, tmp_path):
    exit_code, _, errors = run_case(name, tmp_path)

    assert exit_code == EXIT_CODES[name]
    assert errors.strip()


@NEEDS_CASES
@pytest.mark.parametrize("only", ["multi-ar-*", "err-no-splits", "p2p-*incast*", "groups-of-one*"])
def test_the_script_of_the_cases_is_content_with_the_commands(only):
    command = [sys.executable, str(GOLDEN / "check.py"), f"--only={only}"]
    for backend in ("unaware", "aware"):
        command.append(f"--{backend}={sys.executable} -m astra_sim.{backend}")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    num_exact, _, num_cases, *_ = done.stdout.split()[-5:]
    assert num_exact == num_cases
