"""Folders for ASTRA-sim: whole or not there, and run by the commands that they name."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from full_disk import files_of_at_most
from reference_programs import fake_programs, gpu_case, small_case
from said import without_compiling

from calibration.cases.case import Measurement
from calibration.measuring.measure import measure_case
from calibration.reference.export import PROGRAMS, why_only_ours, write_folder
from calibration.reference.finish_lines import parse_finishes

SMALL_FILES = {
    "network.yml",
    "system.json",
    "remote_memory.json",
    "comm_group.json",
    "README.md",
    "run.sh",
}
CASES = {
    "domains": small_case(num_microbatches=4),
    "overlapped": small_case("overlapped", num_microbatches=4, schedule="gpipe"),
    "gpus": gpu_case(),
}


def commands(folder: Path) -> list[str]:
    """Command lines that a folder's README holds."""
    return re.findall(r"```sh\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)


def run_in(folder: Path, command: str, *, binaries: Path = Path("none")) -> str:
    """Run a command line as a person would who stands in the folder; returns its output."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "ASTRA_SIM_BIN": str(binaries),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert without_compiling(done.stderr) == ""
    return done.stdout


def assert_same(output: str, case, measured: Measurement) -> None:
    finishes = parse_finishes(output, case.num_npus)
    assert max(finish.cycles for finish in finishes) / 1e9 == measured.makespan_s
    size = case.gpus_per_domain
    for domain, exposed_s in enumerate(measured.exposed_s):
        cycles = [each.exposed_cycles for each in finishes[domain * size : (domain + 1) * size]]
        assert max(cycles) / 1e9 == exposed_s  # one device per domain


@pytest.mark.parametrize("backend", ["unaware", "aware", "pairwise"])
@pytest.mark.parametrize("name", CASES)
def test_a_folder_gives_what_the_case_does(name, backend, tmp_path):
    case, folder = CASES[name], tmp_path / "not-empty" / "out"

    write_folder(case, backend, folder)

    traces = {f"trace.{rank}.et" for rank in range(case.num_npus)}
    scripts = {"run_original.sh"} if why_only_ours(case, backend) is None else set()
    assert {path.name for path in folder.iterdir()} == SMALL_FILES | traces | scripts
    output = run_in(folder, commands(folder)[0])
    assert_same(output, case, measure_case(case, backend))
    assert (folder / "run.sh").read_text().endswith(f"\nexec {commands(folder)[0]}")


def test_the_script_in_a_folder_runs_it_from_anywhere(tmp_path):
    case = CASES["domains"]
    write_folder(case, "unaware", tmp_path / "out")

    assert_same(run_in(tmp_path, "sh out/run.sh"), case, measure_case(case, "unaware"))


def test_the_original_runs_it_by_the_command_in_it(tmp_path):
    """Its programs are stood in for by ours, which print the same lines."""
    case, binaries = CASES["domains"], fake_programs(tmp_path / "bin")
    for backend, program in PROGRAMS.items():
        folder = tmp_path / backend
        write_folder(case, backend, folder)

        _, command = commands(folder)

        assert command.startswith(f'"$ASTRA_SIM_BIN"/{program} ')
        elsewhere = f"sh {backend}/run_original.sh"
        for place, line in ((folder, command), (tmp_path, elsewhere)):
            output = run_in(place, line, binaries=Path(os.path.relpath(binaries, place)))
            assert_same(output, case, measure_case(case, backend))


@pytest.mark.parametrize(
    ("name", "backend", "reason"),
    [
        ("domains", "pairwise", "only our engine reads matrices of links"),
        ("gpus", "aware", "congestion-aware network has one dimension"),
        ("overlapped", "unaware", "transport.endpoints is overlapped"),
    ],
)
def test_what_only_our_engine_reads_is_said(name, backend, reason, tmp_path):
    write_folder(CASES[name], backend, tmp_path / "out")

    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "The original fails on it or gives other cycles: " in text
    assert reason in text
    assert len(commands(tmp_path / "out")) == 1


def test_equal_cases_make_equal_folders(tmp_path):
    for name in ("one", "two"):
        write_folder(CASES["gpus"], "unaware", tmp_path / name)

    contents = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    ]
    assert contents[0] == contents[1]


def test_an_empty_folder_is_filled_and_a_full_one_refused(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    write_folder(CASES["domains"], "aware", folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}

    with pytest.raises(ValueError, match="out: must be empty or new, but already holds files"):
        write_folder(CASES["domains"], "unaware", folder)

    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(ValueError, match=r"folder .*file: cannot be written: Not a directory"):
        write_folder(CASES["domains"], "aware", tmp_path / "file")
    with pytest.raises(ValueError, match=r"folder .*out: cannot be written: "):
        write_folder(CASES["domains"], "aware", tmp_path / "file" / "out")


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path):
    """Files of at most 100 bytes."""
    message = "folder .*out: cannot be written: File too large"
    with files_of_at_most(100), pytest.raises(ValueError, match=message):
        write_folder(small_case(), "aware", tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


def test_the_reduction_is_part_of_the_folder(tmp_path):
    case = CASES["domains"]
    first, *others = case.topology.links
    slower = replace(first, bandwidth_bytes_per_s=2.0**29)
    case = replace(case, topology=replace(case.topology, links=(slower, *others)))

    for aggregation in ("min", "max"):
        write_folder(case, "aware", tmp_path / aggregation, aggregation=aggregation)

    slow, fast = ((tmp_path / name / "network.yml").read_text("utf-8") for name in ("min", "max"))
    assert "bandwidth: [ 0.5 ]" in slow
    assert "bandwidth: [ 1.0 ]" in fast
    assert "reduction of their figures: min" in (tmp_path / "min" / "README.md").read_text("utf-8")
