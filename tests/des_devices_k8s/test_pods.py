"""Pods on the wire: quantities, containers, gangs, fields of other types."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.devices.k8s.pods import PodKeys, read_pod
from des.devices.k8s.wire import parse_wire, whole_quantity, wire_value

KEYS = PodKeys(resources=("nvidia.com/gpu", "huawei.com/Ascend910B"))
PREFIX = "topology.example.com"


def container(
    count: object, part: str = "limits", resource: str = "nvidia.com/gpu", **more
) -> dict:
    return {"resources": {part: {resource: count}}, **more}


def asks(*containers: dict, init: tuple[dict, ...] = ()) -> tuple:
    spec = {"containers": list(containers), "initContainers": list(init)}
    return read_pod({"spec": spec}, KEYS).asks


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("0", 0), ("4", 4), ("+4", 4), ("4.0", 4), ("4000m", 4), ("1k", 1000), ("1Ki", 1024)),
        *(("4e0", 4), (".4e1", 4), (8, 8)),
    ],
)
def test_whole_quantities(text, count):
    assert whole_quantity(text, "limits") == count


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "0.5", "1500m", "1e99", "4 GPUs", "NaN", True, None, 1.0, [], "9" * 99]
)
def test_other_quantities_are_refused(text):
    with pytest.raises(ValueError, match="limits: must be a whole quantity"):
        whole_quantity(text, "limits")


def test_containers_of_a_pod_count_together():
    assert asks(container("2"), container("3", "requests"), {}) == (("nvidia.com/gpu", 5),)


def test_init_containers_count_where_they_need_more():
    """One after the other; one that keeps running counts with all later ones."""
    stays = container("1", restartPolicy="Always")

    assert asks(container("2"), init=(container("4"),)) == (("nvidia.com/gpu", 4),)
    assert asks(container("2"), init=(stays, container("4"))) == (("nvidia.com/gpu", 5),)
    assert asks(container("5"), init=(stays, container("4"))) == (("nvidia.com/gpu", 6),)


def test_each_managed_resource_counts_by_itself():
    pod = asks(container("2"), container("1", resource="huawei.com/Ascend910B"))

    assert pod == (("nvidia.com/gpu", 2), ("huawei.com/Ascend910B", 1))


@pytest.mark.parametrize(
    ("metadata", "spec", "gang"),
    [
        ({}, {}, None),
        ({"annotations": {f"{PREFIX}/gang": "g"}}, {}, "g"),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}, "g"),
        ({}, {"workloadRef": {"name": "w", "podGroup": "g"}}, "w/g"),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, {}, "g"),
    ],
)
def test_gangs_have_names_of_several_kinds(metadata, spec, gang):
    assert read_pod({"metadata": metadata, "spec": spec}, KEYS).gang == gang


@pytest.mark.parametrize(
    ("pod", "match"),
    [
        ([], "Pod: must be an object"),
        ({"metadata": 1}, "Pod: metadata must be an object"),
        ({"metadata": {"uid": 1}}, "uid must be text"),
        ({"metadata": {"annotations": {"a": 1}}}, r"annotations\.a must be text"),
        ({"spec": {"containers": {}}}, "containers must be a list"),
        ({"spec": {"containers": [1]}}, "container: must be an object"),
        ({"metadata": {"annotations": {f"{PREFIX}/gang-size": "two"}}}, "gang-size: must be"),
    ],
)
def test_pods_of_other_types_are_refused(pod, match):
    with pytest.raises(ValueError, match=match):
        read_pod(pod, KEYS)


@given(key=st.sampled_from(["NodeNames", "nodenames", "NODENAMES", "nodeNames"]))
def test_keys_are_read_in_any_case(key):
    assert wire_value({"other": 1, key: ["a"]}, "NodeNames") == ["a"]


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'{"a":NaN}', b'{"a":Infinity}'])
def test_bodies_that_are_no_object_are_refused(body):
    with pytest.raises(ValueError, match="body: "):
        parse_wire(body)


@pytest.mark.parametrize("annotation", ["policy", "/policy", "example.com/"])
def test_names_of_annotations_have_a_prefix(annotation):
    with pytest.raises(ValueError, match="policy_annotation must be PREFIX/NAME"):
        PodKeys(policy_annotation=annotation)


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [
        ({"numa-affinity": "required"}, "single-numa-node"),
        ({"numa-affinity": "preferred"}, "best-effort"),
        ({"numa-affinity": "required", "policy": "none"}, "none"),
        ({}, "restricted"),
    ],
)
def test_numa_affinity_is_a_policy_where_none_is_named(annotations, policy):
    named = {f"{PREFIX}/{name}": text for name, text in annotations.items()}
    keys = PodKeys(default_policy="restricted")

    assert read_pod({"metadata": {"annotations": named}}, keys).policy == policy


def test_an_unknown_numa_affinity_is_refused():
    named = {f"{PREFIX}/numa-affinity": "always"}
    with pytest.raises(ValueError, match="numa-affinity: must be one of required, preferred"):
        read_pod({"metadata": {"annotations": named}}, KEYS)


@pytest.mark.parametrize(
    ("selector", "key", "is_apart"),
    [
        ({"matchLabels": {"app": "a"}}, "kubernetes.io/hostname", True),
        ({"matchLabels": {"app": "a"}}, "topology.kubernetes.io/zone", False),
        ({"matchLabels": {"app": "b"}}, "kubernetes.io/hostname", False),
        ({}, "kubernetes.io/hostname", False),
        *(
            (
                {"matchExpressions": [{"key": key, "operator": operator, "values": values}]},
                "kubernetes.io/hostname",
                is_apart,
            )
            for key, operator, values, is_apart in (
                ("app", "In", ["b", "a"], True),
                ("app", "NotIn", ["a"], False),
                ("app", "Exists", [], True),
                ("app", "DoesNotExist", [], False),
                ("other", "DoesNotExist", [], True),
            )
        ),
    ],
)
def test_pods_keep_apart_by_an_anti_affinity_to_their_own_labels(selector, key, is_apart):
    term = {"topologyKey": key, "labelSelector": selector}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = {"metadata": {"labels": {"app": "a"}}, "spec": {"affinity": rules}}

    assert read_pod(pod, KEYS).is_apart == is_apart
