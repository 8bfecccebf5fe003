"""Nodes of Kubernetes that take no pods, GPUs that may be given, labels of no known form."""

import pytest

from des.devices.cluster_files.node_labels import read_node_labels

RACK = "cloud.provider.com/topology-rack"


def node(name, *, labels="", spec="", status="capacity: {nvidia.com/gpu: '8'}"):
    """A node as kubectl prints it."""
    return (
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{{labels}}}}}, "
        f"spec: {{{spec}}}, status: {{{status}}}}}\n---\n"
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("unschedulable: true", "unschedulable"),
        ("taints: [{key: a/b, effect: NoSchedule}]", "taint a/b: NoSchedule"),
        ("taints: [{key: c, value: d, effect: NoExecute}]", "taint c: NoExecute"),
    ],
)
def test_a_node_that_takes_no_pods_is_left_out_and_named(spec, why, capsys):
    cluster = read_node_labels(node("open") + node("closed", spec=spec))

    assert [one.name for one in cluster.nodes] == ["open"]
    assert f"note: node closed is left out: {why}\n" == capsys.readouterr().err
    with pytest.raises(ValueError, match=f"must take pods, got none: node closed .* {why}"):
        read_node_labels(node("closed", spec=spec))


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "unschedulable: false",
        "taints: [{key: a, effect: PreferNoSchedule}]",
        "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]",
    ],
)
def test_a_node_that_takes_pods_of_gpus_stays(spec, capsys):
    assert [one.name for one in read_node_labels(node("n", spec=spec)).nodes] == ["n"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("status", "gpus"),
    [
        ("capacity: {nvidia.com/gpu: '8'}, allocatable: {nvidia.com/gpu: '6'}", 6),
        ("capacity: {nvidia.com/gpu: '8'}, allocatable: {nvidia.com/gpu: '0'}", 0),
        ("capacity: {nvidia.com/gpu: '8'}, allocatable: {cpu: '64'}", 8),
        ("capacity: {cpu: '64'}", None),
    ],
)
def test_gpus_are_those_that_may_be_given_to_pods(status, gpus):
    assert read_node_labels(node("n", status=status)).nodes[0].num_gpus == gpus


def test_labels_that_seem_to_name_a_place_are_named(capsys):
    labels = f"example.com/rack-id: r7, {RACK}: r1, kubernetes.io/arch: amd64, a/trackers: x"

    cluster = read_node_labels(node("n", labels=labels))

    assert [one.name for one in cluster.switches] == ["r1"]
    said = "note: label example.com/rack-id is of no known form, so it names no place\n"
    assert capsys.readouterr().err == said
