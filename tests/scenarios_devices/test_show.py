"""The command shows what recorded outputs hold, and refuses bad input in one line."""

import json

import pytest
from command_output import error_of, examples_of, help_of
from topo_outputs import GOLDEN, READABLE, expected, server_in

from des.devices.presets import KIND_NAMES, simulated
from scenarios.devices.command import TABLE, main

NOT_SHOWN = {"parse", "source", "quirks", "strict_error"}


def shown(capsys, *argv):
    """What the command prints."""
    assert main([*argv]) == 0
    return capsys.readouterr().out


def refusal(capsys, *argv):
    """The one line of a refusal."""
    return error_of(main, argv, capsys)


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_facts_are_those_of_the_recorded_outputs(path, capsys):
    facts = json.loads(shown(capsys, "show", "--file", str(path), "--json"))

    for key, value in expected(path).items():
        if key == "devices":
            for wanted, got in zip(value, facts[key], strict=True):
                assert wanted.items() <= got.items()
        elif key not in NOT_SHOWN:
            assert facts[key] == value, key


@pytest.mark.parametrize("kind", ["dgx-1-v100", "gb200-nvl72", "pcie_pairs"])
def test_a_shown_matrix_is_read_as_the_same_server(kind, capsys):
    printed = shown(capsys, "show", "--simulate", kind, "--format", "matrix")

    assert server_in(printed).tokens == simulated(kind).tokens
    assert [gpu.cpus for gpu in server_in(printed).gpus] == [
        gpu.cpus for gpu in simulated(kind).gpus
    ]


def test_a_tree_names_nodes_gpus_and_their_nearest_cards(capsys):
    lines = shown(capsys, "show", "--simulate", "gb200-nvl72", "--format", "tree").splitlines()

    assert lines[:3] == [
        "gb200-nvl72: 4 GPUs, 4 network cards; joined by NVLink: GPUs 0-3",
        "├─ NUMA node 0: CPUs 0-71, 480.0 GiB, 480.0 GiB free",
        "│  ├─ GPU0 (gb200); NV18 to 1-3; NODE NIC0,NIC1",
    ]


def test_pictures_are_the_same_bytes_twice(tmp_path, capsys):
    for suffix, begins in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        first, again = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
        for path in (first, again):
            shown(capsys, "show", "--simulate", "pcie-4", "--picture", str(path))
        assert first.read_bytes() == again.read_bytes()
        assert first.read_bytes().startswith(begins)


def test_a_matrix_of_pcie_alone_is_noted(tmp_path, capsys):
    path = tmp_path / "mp.txt"
    path.write_text("\tGPU0\nGPU0\t X \n\nLegend:\n  X    = Self\n  PIX  = one\n", "utf-8")

    assert main(["show", "--file", str(path)]) == 0
    assert "leaves NVLinks out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "exactly one of --file, --simulate, --here and --nvml must be given, got none"),
        (["--simulate", "pcie-4", "--nvml"], "got --simulate and --nvml"),
        (["--simulate", "dgx-a101"], "unknown kind 'dgx-a101'; did you mean"),
        (["--file", "nowhere.txt"], "nowhere.txt: cannot be read: No such file"),
        (["--file", str(GOLDEN / "README.md")], "README.md: must be the output of nvidia-smi"),
        (["--simulate", "pcie-4", "--picture", "a.jpg"], "a.jpg: must end with .png or .svg"),
    ],
)
def test_bad_input_is_refused_in_one_line(flags, message, capsys):
    assert message in refusal(capsys, "show", *flags)


def test_damaged_and_glued_outputs_are_refused_in_one_line(capsys):
    damaged, glued = (
        GOLDEN / "13-damaged-glued-cells.txt",
        GOLDEN / "14-dgx1-p100-soc-header-glued.txt",
    )

    assert "line 6: row GPU4 has glued tokens, NODENODE" in refusal(
        capsys, "show", "--file", str(damaged)
    )
    assert "header lost its tabs" in refusal(capsys, "show", "--file", str(glued), "--strict")


@pytest.mark.parametrize("name", TABLE.commands)
def test_help_has_examples_of_each_subcommand(name, capsys):
    printed = help_of(lambda flags: main([name, *flags]), capsys)

    assert examples_of(printed, f"scenarios.devices {name}")


def test_help_of_show_lists_every_kind(capsys):
    printed = " ".join(
        help_of(lambda flags: main(["show", *flags]), capsys).replace("│", "").split()
    )

    assert ", ".join(KIND_NAMES) in printed
