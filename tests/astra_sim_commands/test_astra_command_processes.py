"""The commands as processes: exit codes, readers that go away, and what they import."""

import subprocess
import sys
from pathlib import Path

import pytest
from astra_traces import network_file
from command_runs import ALL_REDUCES, PAIR, ZERO_BYTES_AT_LAST, finished


def python(*arguments, **more):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **more
    )


@pytest.mark.parametrize(("module", "case"), [("unaware", ALL_REDUCES), ("aware", ALL_REDUCES)])
def test_module_runs_as_a_command(module, case, tmp_path):
    ended = python("-m", f"astra_sim.{module}", *case.write(tmp_path))

    assert (ended.returncode, ended.stderr) == (0, "")
    assert finished(ended.stdout) == dict.fromkeys(range(4), 33829)


@pytest.mark.parametrize(
    ("case", "code"), [(ZERO_BYTES_AT_LAST, 134), (PAIR.changed(network=network_file("X", 2)), 255)]
)
def test_module_ends_with_the_exit_code_and_no_traceback(case, code, tmp_path):
    ended = python("-m", "astra_sim.unaware", *case.write(tmp_path))

    assert ended.returncode == code
    assert len(ended.stderr.splitlines()) == 1


def test_reader_that_goes_away_is_no_traceback(tmp_path):
    flags = ALL_REDUCES.write(tmp_path)
    script = (
        "import subprocess, sys; command = subprocess.Popen([sys.executable, '-m', "
        "'astra_sim.unaware', *sys.argv[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE); "
        "command.stdout.close(); said = command.stderr.read(); "
        "sys.stderr.buffer.write(said); sys.exit(command.wait())"
    )

    ended = python("-c", script, *flags)

    assert (ended.returncode, ended.stderr) == (141, "")


def test_command_imports_nothing_heavy():
    """What takes long to import has no place in a command that starts at once."""
    heavy = ["networkx", "numpy", "pandas", "pydantic", "rich", "simpy", "torch", "des"]
    script = (
        f"import sys; import astra_sim.unaware, astra_sim.aware; "
        f"print(*(name for name in {heavy} if name in sys.modules))"
    )

    ended = python("-c", script, cwd=Path(__file__).parents[2])

    assert (ended.returncode, ended.stdout.split()) == (0, [])


def test_a_usual_run_loads_only_what_it_needs(tmp_path):
    """Neither libraries of files in other forms, nor modules of what the run does not have."""
    rare = [
        "chakra",
        "google.protobuf",
        "yaml",
        "astra_sim.run.diagnosis",
        "astra_sim.run.perfetto",
    ]
    rare += ["astra_sim.network.aware", "astra_sim.system.trees", "astra_sim.system.shared_bus"]
    script = (
        "import sys; from astra_sim.unaware import main; main(sys.argv[1:]); "
        f"print(*(name for name in {rare} if name in sys.modules), file=sys.stderr)"
    )
    flags = ALL_REDUCES.write(tmp_path)
    (tmp_path / "network.yml").write_text(
        "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
    )

    ended = python("-c", script, *flags, cwd=Path(__file__).parents[2])

    assert (ended.returncode, ended.stderr.split()) == (0, [])
    assert finished(ended.stdout) == dict.fromkeys(range(4), 33829)
