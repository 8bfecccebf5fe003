"""The command binds processes near their GPUs, and refuses what cannot be had in one line."""

import json

import pytest
from command_output import error_of
from topo_outputs import GOLDEN

from scenarios.devices.command import main

A100 = ["numa", "--simulate", "dgx-a100"]


def test_a_binding_of_the_dgx_a100_by_hand(capsys):
    assert main([*A100, "--gpu-numbers", "0", "--count", "18"]) == 0

    assert capsys.readouterr().out == (
        "CPUs of NUMA node 3: 48-63,176-177\n"
        "memory of NUMA nodes: 3\n"
        "numactl --physcpubind=48-63,176-177 --membind=3 COMMAND\n"
    )


def test_a_binding_as_json(capsys):
    flags = [
        "--gpu-numbers",
        "1",
        "--count",
        "2",
        "--taken",
        "48-49",
        "--memory",
        "300GiB",
        "--json",
    ]

    assert main([*A100, *flags]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "gpus": [1],
        "cpus": [50, 51],
        "memory_nodes": [0, 3],
        "command": "numactl --physcpubind=50-51 --membind=0,3",
    }


def test_memory_is_left_free_where_nodes_are_not_known(capsys):
    path = GOLDEN / "05-v100-hybrid-cube-mesh-sys.txt"

    assert main(["numa", "--file", str(path), "--gpu-numbers", "3", "--count", "4"]) == 0
    assert capsys.readouterr().out.endswith("\nnumactl --physcpubind=0-3 COMMAND\n")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "gpu_numbers is required (--gpu-numbers)"),
        (["--gpu-numbers", "8"], "gpus must be one or more different ones of 0-7, got 8"),
        (["--gpu-numbers", "0", "--count", "999"], "count must be from 1 to 256"),
        (["--gpu-numbers", "0", "--memory", "9TiB"], "memory must be at most 2048.0 GiB"),
        (["--gpu-numbers", "0", "--memory", "much"], "--memory must be a size such as"),
        (["--gpu-numbers", "0", "--taken", "7-3"], "--taken must be rising ranges"),
    ],
)
def test_bad_input_is_refused_in_one_line(flags, message, capsys):
    assert message in error_of(main, [*A100, *flags], capsys)
