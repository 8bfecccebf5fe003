"""Examples of the formats' own documentation: read as expected, written and read again."""

from collections import Counter
from pathlib import Path

import pytest

from des.devices.cluster_files.features import FEATURES, leave_out
from des.devices.cluster_files.table import (
    CLUSTER_FORMATS,
    format_of_text,
    read_cluster,
    write_cluster,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "clusters"
FILES = sorted(path for path in GOLDEN.iterdir() if path.suffix != ".md")
EXPECTED = {
    "hypernodes": ("hypernodes", 8, ("tier3", "tier2", "tier1"), True),
    "hypernodes-selectors": ("hypernodes", 3, ("tier1", "rack"), False),
    "kubectl-nodes": ("node-labels", 2, ("region", "zone", "nvlink"), False),
    "node-labels": ("node-labels", 5, ("zone", "block", "rack"), True),
    "slurm-block": ("slurm-conf", 128, ("nvlink",), True),
    "slurm-topology": ("slurm-yaml", 16, ("spine", "leaf", "nvlink"), True),
    "slurm-tree": ("slurm-conf", 18, ("spine", "leaf"), True),
    "topograph-block": ("slurm-conf", 6, ("nvlink",), True),
    "topograph-fabric-labels": (
        "node-labels",
        1,
        ("fabric-tier-2", "fabric-tier-1", "fabric-tier-0", "nvlink"),
        True,
    ),
    "topograph-labels": ("node-labels", 1, ("core", "spine", "leaf", "nvlink"), True),
    "topograph-tree": ("slurm-conf", 6, ("spine", "leaf"), True),
}
"""Format, nodes, levels, and whether the file is in normal form."""


def test_every_file_is_expected_and_named_in_the_readme():
    readme = (GOLDEN / "README.md").read_text("utf-8")

    assert {path.stem for path in FILES} == set(EXPECTED)
    assert all(f"`{path.name}`" in readme for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_are_read_written_and_read_again(path):
    name, num_nodes, levels, is_normal = EXPECTED[path.stem]
    text = path.read_text("utf-8")

    cluster = read_cluster(path)
    written = write_cluster(cluster, name)

    assert format_of_text(text) == format_of_text(written) == name
    assert len(cluster.nodes) == num_nodes
    assert cluster.level_names == levels
    assert CLUSTER_FORMATS[name].read(written) == cluster
    assert (written == text) == is_normal


def test_every_format_has_an_example_or_shares_its_reader():
    read = {CLUSTER_FORMATS[row[0]].read for row in EXPECTED.values()}

    assert {row.read for row in CLUSTER_FORMATS.values()} == read


def test_racks_of_one_name_are_told_apart_by_the_path():
    cluster = read_cluster(GOLDEN / "node-labels.yaml")

    assert Counter(
        cluster.level("rack").units[at] for at in cluster.level("rack").unit_of_node
    ) == {
        "zone-a/block-1/rack-1": 2,
        "rack-2": 1,
        "block-2/rack-1": 1,
        "zone-b/block-1/rack-1": 1,
    }


def test_nodes_of_kubectl_have_gpus_zones_and_nvlink_domains():
    cluster = read_cluster(GOLDEN / "kubectl-nodes.json")
    first = cluster.nodes[0]

    assert (first.name, first.num_gpus, first.block) == ("gpu-a1", 8, "7d2e.1")
    assert cluster.ancestors("gpu-a1") == ("us-east-1a", "us-east-1")
    assert dict(first.labels)["node.kubernetes.io/instance-type"] == "p5.48xlarge"
    assert dict(cluster.labels) == {"kubernetes.nvlink": "nvidia.com/gpu.clique"}


def test_selectors_of_hypernodes_find_nodes():
    cluster = read_cluster(GOLDEN / "hypernodes-selectors.yaml")

    assert [(node.name, node.switch) for node in cluster.nodes] == [
        ("node-0", "s0"),
        ("node-1", "s0"),
        ("worker-01", "rack-0"),
    ]


@pytest.mark.parametrize("target", CLUSTER_FORMATS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_become_every_format_or_are_refused_by_name(path, target):
    """A refusal names features; without them the cluster is written and read as it then is."""
    cluster = read_cluster(path)
    try:
        write_cluster(cluster, target)
    except ValueError as error:
        if "needs" in str(error) or "which every node has" in str(error):
            return
        lost = str(error).partition("leave out ")[2].split()[0].split(",")
        assert set(lost) <= set(FEATURES)
        written = write_cluster(cluster, target, lost)
        cluster = leave_out(cluster, lost)
    else:
        written = write_cluster(cluster, target)
    again = CLUSTER_FORMATS[target].read(written)

    assert {node.name for node in again.nodes} == {node.name for node in cluster.nodes}
    assert {node.name: node.block for node in again.nodes} == {
        node.name: node.block for node in cluster.nodes
    }
