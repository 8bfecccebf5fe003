"""GPUs that are divided into MIG devices: named where read, refused where jobs take whole GPUs."""

import json
import re

import pytest

from des.devices.files.gpu_list import read_gpu_list
from scenarios.devices.command import main

LIST = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00)
  MIG 3g.20gb     Device  0: (UUID: MIG-01)
  MIG 1c.3g.20gb  Device  1: (UUID: MIG-02)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-03)
"""
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-1\nGPU1\tNV12\t X \t0-1\n"


def written(tmp_path, text):
    path = tmp_path / "server.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(capsys, *argv):
    assert main([*argv]) == 2
    return capsys.readouterr().err


def test_mig_devices_are_read_as_slices_of_their_gpu():
    assert [gpu.mig_devices for gpu in read_gpu_list(LIST.splitlines())] == [
        ("3g.20gb", "1c.3g.20gb"),
        (),
    ]


def test_show_names_mig_devices_and_placing_refuses_their_gpu(tmp_path, capsys):
    path = written(tmp_path, MATRIX + LIST)

    assert main(["show", "--file", path, "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    assert [each["mig_devices"] for each in devices] == [["3g.20gb", "1c.3g.20gb"], []]
    assert main(["show", "--file", path, "--format", "tree"]) == 0
    assert "GPU0 (a100); divided into MIG 3g.20gb, 1c.3g.20gb" in capsys.readouterr().out
    message = refusal(capsys, "place", "--file", path, "--gpus", "1")
    assert "GPU0 must be whole, got one divided into the MIG devices 3g.20gb, 1c.3g.20gb" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LIST, "got none but a list of 2 GPUs, divided into MIG devices: GPU 0 with 3g.20gb, 1c"),
        (
            MATRIX + "MIG0\t X \tSYS\t0-1\n",
            "line 4: rows and columns must be of whole GPUs .* MIG0",
        ),
        (
            "",
            "must be the output of nvidia-smi topo -m .* rocm-smi --showtopo .*; got an empty fil",
        ),
    ],
)
def test_what_holds_no_matrix_of_whole_gpus_is_refused_by_what_it_holds(
    text, message, tmp_path, capsys
):
    assert re.search(message, refusal(capsys, "show", "--file", written(tmp_path, text)))
