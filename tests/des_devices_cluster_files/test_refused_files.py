"""Files that are refused, each by a line that names what is wrong."""

import pytest

from des.devices.cluster import Block, Cluster, ClusterNode, Switch
from des.devices.cluster_files.table import (
    CLUSTER_FORMATS,
    format_of_text,
    read_cluster,
    write_cluster,
)
from des.devices.presets import simulated

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {%s}}}\n"
HYPER = "{kind: HyperNode, metadata: {name: %s}, spec: {tier: %s, members: [%s]}}\n"
MEMBER = "{type: %s, selector: {%s}}"


def hyper(*parts: str) -> str:
    """HyperNode s of tier 1 with one member."""
    return HYPER % ("s", "1", MEMBER % parts)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("slurm-conf", "SwitchName=s Nodes=n1\nSwitchName=t Nodes=n1", "node n1 must be in one"),
        ("slurm-conf", "SwitchName=s Nodes=n[1-2],n1", "line 1: node n1 must .* got s twice"),
        ("slurm-conf", "SwitchName=s Switches=t", "switch s: unknown switch 't' below it"),
        ("slurm-conf", "SwitchName=s Nodes=n1\nSwitchName=s Nodes=n2", "line 2: switch s is given"),
        ("slurm-conf", "SwitchName=s Switches=s Nodes=n", "circle s -> s"),
        ("slurm-conf", "RingName=r Nodes=n[1-4]", "line 1: must begin with SwitchName, .*ringname"),
        ("slurm-conf", "BlockName=b Switches=s", "allowed after blockname are nodes; got"),
        ("slurm-conf", "BlockName=b Nodes=n1\nBlockSizes=a", "BlockSizes must be given once, like"),
        ("slurm-conf", "SwitchName=s[1-2] Nodes=n1", "switchname must be one name"),
        ("slurm-conf", "SwitchName s", "line 1: must be KEY=VALUE"),
        ("slurm-conf", "# nothing", "nodes must be at least one, got none"),
        ("slurm-yaml", "- topology: t\n  tree: {}\n  flat: true", "topology t: must be one of"),
        ("slurm-yaml", "- topology: t\n  torus: {}", "unknown key 'torus'"),
        ("slurm-yaml", "- {topology: a, tree: }\n- {topology: b, tree: }", "topologies a and b"),
        ("slurm-yaml", "- topology: [", "line 2: not YAML"),
        ("slurm-yaml", "a: 1\na: 2", "line 2: a is given twice"),
        ("hypernodes", hyper("Pod", "exactMatch: {name: n}"), "type must be Node or HyperNode"),
        ("hypernodes", hyper("Node", "regexMatch: {pattern: n}"), "needs the nodes in the same"),
        ("hypernodes", hyper("HyperNode", "exactMatch: {name: t}"), "unknown HyperNode 't'"),
        ("hypernodes", hyper("HyperNode", "regexMatch: {pattern: '('}"), "cannot be read"),
        ("hypernodes", hyper("Node", ""), "selector must be one, got none"),
        (
            "hypernodes",
            f"{hyper('Node', 'exactMatch: {name: n}')}---\n"
            + HYPER % ("t", "1", MEMBER % ("HyperNode", "exactMatch: {name: s}")),
            "HyperNode s: tier must be below 1, that of t, got 1",
        ),
        ("node-labels", "{kind: Pod}", "kind must be Node, got 'Pod'"),
        ("node-labels", "{metadata: {}}", "document 1: kind must be given"),
        (
            "node-labels",
            NODE % "network.topology.nvidia.com/leaf: l, network.topology.nvidia.com/spine: a"
            + "---\n"
            + (NODE % "network.topology.nvidia.com/leaf: l").replace("n1", "n2"),
            "leaf: l must be in one unit of a coarser level, got a, none",
        ),
    ],
)
def test_damaged_files(name, text, message):
    with pytest.raises(ValueError, match=message):
        CLUSTER_FORMATS[name].read(text)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text("SwitchName=s Nodes=n[")

    with pytest.raises(ValueError, match=r"topology\.conf: line 1: hosts must be like"):
        read_cluster(path)


@pytest.mark.parametrize("name", [None, "slurm-conf", "slurm-tree"])
def test_a_file_of_comments_alone_is_refused(name, tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text("# Managed by a controller. Not synced yet.\n\n")

    with pytest.raises(ValueError, match=r"no SwitchName or NodeName in topology\.conf"):
        read_cluster(path, name)


def test_texts_of_no_format_are_refused():
    with pytest.raises(ValueError, match="format is not clear from the text: name one of slurm"):
        format_of_text("domains: []")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"kind: Topology\nspec: {{}}\n---\n{NODE % ''}", "kind: Topology, an object of Kueue"),
        ("switches: {s: {nodes: [n1]}}", "a model of topograph"),
        ('{"instances": [{"id": "n1"}]}', "instances, a graph of topograph"),
        ("NodeName=n[1-2] Gres=gpu:4", "nodes of slurm.conf, whose switches are in topology.conf"),
    ],
)
def test_known_forms_that_are_not_read_are_named(text, form, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)

    with pytest.raises(ValueError, match=rf"cluster\.yaml: format must be one of slurm.*{form}"):
        read_cluster(path)


def spine(**changes: object) -> Cluster:
    """One node below a leaf, with further fields."""
    node = ClusterNode(name="n", switch="s", **changes)  # type: ignore[arg-type]
    return Cluster(nodes=(node,), switches=(Switch(name="s", level="leaf"),))


@pytest.mark.parametrize(
    ("name", "cluster", "message"),
    [
        ("slurm-block", spine(), "slurm-block cannot express unblocked|needs blocks"),
        ("slurm-tree", spine(num_gpus=8), r"cannot express gpus \(node n\); leave out gpus"),
        (
            "slurm-tree",
            Cluster(
                nodes=(ClusterNode(name="n", switch="s", server="GB200"),),
                switches=(Switch(name="s", level="leaf", labels=(("region", "us-west"),)),),
            ),
            r"express kinds \(node n\), switch-labels \(switch s\); leave out kinds,switch-labels",
        ),
        ("slurm-conf", spine(server=simulated("dgx-h100")), r"cannot express servers \(node n\)"),
        ("node-labels", spine(uplink_bytes_per_s=1e9), r"cannot express bandwidths \(node n\)"),
        (
            "slurm-tree",
            spine(num_gpus=8, labels=(("a", "b"),)),
            r"express gpus \(node n\), labels \(node n\); leave out gpus,labels to write the rest",
        ),
        (
            "hypernodes",
            Cluster(nodes=(ClusterNode(name="n", block="b"),), blocks=(Block(name="b"),)),
            "hypernodes needs switches, and the cluster has none",
        ),
        (
            "slurm-conf",
            Cluster(nodes=(ClusterNode(name="n"),)),
            r"slurm-conf cannot express loose \(node n\), which every node has",
        ),
    ],
)
def test_lost_features_are_named(name, cluster, message):
    with pytest.raises(ValueError, match=message):
        write_cluster(cluster, name)


def test_unknown_features_are_refused():
    with pytest.raises(ValueError, match=r"leave out: must be of loose, .*; got 'colour'"):
        write_cluster(spine(), "slurm-tree", ["colour"])


def test_names_that_a_format_cannot_hold_are_refused():
    node = ClusterNode(name="n 1", switch="s")
    cluster = Cluster(nodes=(node,), switches=(Switch(name="s", level="leaf"),))

    with pytest.raises(ValueError, match="name must be without blanks"):
        write_cluster(cluster, "slurm-tree")
    long = Cluster(
        nodes=(ClusterNode(name="n", switch="s" * 64),),
        switches=(Switch(name="s" * 64, level="leaf"),),
    )
    with pytest.raises(ValueError, match="a label must be at most 63 letters"):
        write_cluster(long, "node-labels")
