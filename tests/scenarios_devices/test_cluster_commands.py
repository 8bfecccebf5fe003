"""Subcommands labels and nodes: text, JSON, conversion, and one line for bad input."""

import json
import typing
from pathlib import Path

import pytest
from command_output import error_of

from des.devices.cluster_files.table import CLUSTER_FORMATS, read_cluster
from scenarios.devices.cluster_source import FormatName
from scenarios.devices.command import main

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "clusters"
TREE = str(GOLDEN / "slurm-tree.conf")


def test_names_of_formats_are_those_of_the_table():
    assert typing.get_args(FormatName) == tuple(CLUSTER_FORMATS)


def test_labels_are_printed_for_each_node(capsys):
    assert main(["labels", "--cluster", str(GOLDEN / "slurm-topology.yaml")]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "node01 network.topology.nvidia.com/spine=sw_root network.topology.nvidia.com/leaf=s1 "
        "network.topology.nvidia.com/accelerator=b1"
    )
    assert len(lines) == 16


def test_the_tree_has_a_line_for_each_switch(capsys):
    assert main(["labels", "--cluster", TREE, "--to", "tree"]) == 0

    assert capsys.readouterr().out == (
        "18 nodes; levels spine, leaf\n"
        "└─ spine s3: 18 nodes\n"
        "   ├─ leaf s0: 6 nodes\n"
        "   │  └─ dev[0-5]\n"
        "   ├─ leaf s1: 6 nodes\n"
        "   │  └─ dev[6-11]\n"
        "   └─ leaf s2: 6 nodes\n"
        "      └─ dev[12-17]\n"
    )


def test_a_cluster_is_converted_to_a_file(tmp_path, capsys):
    out = tmp_path / "topology.yaml"
    code = main(["labels", "--cluster", TREE, "--to", "slurm-yaml", "--out", str(out)])

    assert code == 0
    assert read_cluster(out) == read_cluster(Path(TREE))
    assert capsys.readouterr().out == f"{out}: 18 nodes as slurm-yaml\n"


def test_features_that_get_lost_must_be_named(capsys):
    argv = ["labels", "--cluster", str(GOLDEN / "slurm-topology.yaml"), "--to", "slurm-tree"]

    lost = "unswitched,empty,blocks,block-sizes,slurm-names"
    assert f"leave out {lost} to write the rest" in error_of(main, argv, capsys)
    assert main([*argv, "--leave-out", lost]) == 0
    assert "SwitchName=s1 Nodes=node[01-02]" in capsys.readouterr().out


def test_nodes_are_chosen_and_shown(capsys):
    assert main(["nodes", "--cluster", TREE, "--count", "6", "--taken", "dev[0-2]"]) == 0

    assert capsys.readouterr().out == (
        "dev[6-11]\n"
        "6 nodes in leaf s1 (1 spine, 1 leaf)\n"
        "exact\n"
        "6 nodes; levels spine, leaf\n"
        "└─ spine s3: 6 nodes\n"
        "   └─ leaf s1: 6 nodes\n"
        "      └─ dev[6-11]\n"
    )


def test_nodes_as_json(capsys):
    argv = ["nodes", "--cluster", TREE, "--count", "4", "--spread", "leaf:2", "--json"]

    assert main([*argv, "--data-near", "s2,dev0", "--prefer-nodes", "dev1"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": 1,
        "nodes": ["dev0", "dev1", "dev12", "dev13"],
        "level": "spine",
        "unit": "s3",
        "num_units": {"spine": 1, "leaf": 2},
        "near_fraction": 0.75,
        "num_preferred": 1,
        "is_exact": True,
    }


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nodes", "--count", "7", "--required", "leaf"], "the largest, s0, has 6; level spine"),
        (["nodes", "--count", "19"], "count must be at most 18"),
        (["nodes", "--count", "2", "--required", "rack"], "level must be one of any, spine, leaf"),
        (["nodes", "--count", "2", "--spread", "leaf"], "--spread must be LEVEL:NODES"),
        (["nodes", "--count", "2", "--taken", "x1"], "--taken: unknown node 'x1'"),
        (["nodes", "--count", "2", "--free", "dev[3-1]"], "hosts: a range must go up"),
        (
            ["labels", "--format", "hypernodes"],
            "slurm-tree.conf: not YAML|slurm-tree.conf: document 1",
        ),
        (["labels", "--to", "slurm-block"], "slurm-block needs blocks"),
        (["labels", "--to", "xml"], "xml"),
    ],
)
def test_bad_input_is_one_line(argv, message, capsys):
    error = error_of(main, [argv[0], "--cluster", TREE, *argv[1:]], capsys)
    assert any(part in error for part in message.split("|"))


def test_files_that_are_missing_or_unclear_are_named(tmp_path, capsys):
    path = tmp_path / "x.yaml"
    assert main(["labels", "--cluster", str(path)]) == 2
    path.write_text("domains: []\n")
    assert main(["labels", "--cluster", str(path)]) == 2

    assert "x.yaml: format is not clear from the text" in capsys.readouterr().err


def test_levels_get_other_labels(capsys):
    keys = "spine=cloud.provider.com/topology-block,leaf=cloud.provider.com/topology-rack"

    assert main(["labels", "--cluster", TREE, "--label-keys", keys]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "dev0 cloud.provider.com/topology-block=s3 cloud.provider.com/topology-rack=s0"
    )
    assert main(["labels", "--cluster", TREE, "--label-keys", "row=a/b"]) == 2
    assert main(["labels", "--cluster", TREE, "--label-keys", "leaf"]) == 2
    error = capsys.readouterr().err
    assert "level must be one of any, spine, leaf; got 'row'" in error
    assert "--label-keys must be LEVEL=KEY" in error


def test_levels_can_be_named_by_their_labels(capsys):
    flags = ["nodes", "--cluster", str(GOLDEN / "node-labels.yaml"), "--count", "2", "--json"]

    assert main([*flags, "--required", "cloud.provider.com/topology-rack"]) == 0
    assert json.loads(capsys.readouterr().out)["unit"] == "zone-a/block-1/rack-1"
