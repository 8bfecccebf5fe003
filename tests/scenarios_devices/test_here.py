"""The server of this machine is read by running the programs that describe it."""

import json

import pytest
from command_output import error_of
from topo_outputs import GOLDEN

from scenarios.devices.command import main

MATRIX = GOLDEN / "06-rtx4090-8gpu-all-sys.txt"
LSCPU = """Architecture:          x86_64
NUMA node(s):          2
NUMA node0 CPU(s):     0-63,128-191
NUMA node1 CPU(s):     64-127,192-255
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Folder that is the whole search path, and a way to install programs in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return install


def nvidia_smi(matrix):
    """A program that prints a matrix for ``topo -m`` and nothing otherwise."""
    return f'if [ "$1" = topo ]; then /bin/cat {matrix}; fi'


def test_matrix_and_numa_nodes_of_this_machine_are_read(programs, tmp_path, capsys):
    programs("nvidia-smi", nvidia_smi(MATRIX))
    (tmp_path / "lscpu.txt").write_text(LSCPU)
    programs("lscpu", f"/bin/cat {tmp_path / 'lscpu.txt'}")

    assert main(["show", "--here", "--json"]) == 0
    here = json.loads(capsys.readouterr().out)
    assert main(["show", "--file", f"{MATRIX},{tmp_path / 'lscpu.txt'}", "--json"]) == 0
    from_files = json.loads(capsys.readouterr().out)
    assert sum(one["kind"] == "gpu" for one in here["devices"]) == 8
    same = {"name": "this machine"}
    assert here | same == from_files | same


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "this machine: nvidia-smi or rocm-smi must be installed, got neither"),
        ("echo no driver >&2; exit 9", "nvidia-smi topo -m ended with code 9: no driver"),
        ("echo hello", "this machine: 0 nvidia-smi topo -m: must be the output of nvidia-smi"),
    ],
)
def test_a_machine_that_does_not_answer_is_one_line(script, message, programs, capsys):
    if script is not None:
        programs("nvidia-smi", script)
    assert message in error_of(main, ["show", "--here"], capsys)
