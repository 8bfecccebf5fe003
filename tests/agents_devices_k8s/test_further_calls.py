"""Calls as kube-scheduler sends them beyond the recorded pairs: both modes, keys, odd pods."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s_cases import PAIRS, PREFIX, args, book_of, decider_of, grant_of, pod, whole_nodes

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import (
    begin_binding,
    filter_answer,
    preempt_answer,
    prioritize_answer,
)
from des.devices.k8s.pods import PodKeys

PAIR = PAIRS["e06-prioritize"]
NAMES = [*PAIR["state"], "stranger"]
ASCEND = "huawei.com/Ascend910B"


def node(name: str) -> dict:
    """Node as Go writes it: empty parts included."""
    return {
        "metadata": {"name": name, "creationTimestamp": None, "labels": {"a": name}},
        "spec": {},
        "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": {}},
    }


def whole(of_pod: dict, names: list[str]) -> dict:
    """``ExtenderArgs`` with whole nodes, as with ``nodeCacheCapable: false``."""
    return {
        "Pod": of_pod,
        "Nodes": {"metadata": {}, "items": [node(name) for name in names]},
        "NodeNames": None,
    }


def lowered(value: object) -> object:
    """Object with all keys of its first level in small letters, as other encoders write them."""
    return {key.lower(): each for key, each in value.items()}


POLICIES = st.sampled_from(["none", "best-effort", "restricted", "single-numa", "nearest", None])
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("main")},
        optional={
            "resources": st.dictionaries(
                st.sampled_from(["limits", "requests"]),
                st.fixed_dictionaries(
                    {"cpu": st.just("4")},
                    optional={"nvidia.com/gpu": st.integers(0, 9).map(str)},
                ),
            ),
            "restartPolicy": st.just("Always"),
        },
    ),
    max_size=3,
)


@st.composite
def pods(draw) -> dict:
    """Pods of all shapes: several containers, init containers, sidecars, with or without policy."""
    policy = draw(POLICIES)
    metadata = {"name": "p", "namespace": "ml", "uid": "p", "creationTimestamp": None}
    if policy is not None:
        metadata["annotations"] = {f"{PREFIX}/policy": policy}
    spec = {"containers": draw(CONTAINERS), "initContainers": draw(st.none() | CONTAINERS)}
    return {"metadata": metadata, "spec": spec, "status": {}}


@given(of_pod=pods(), names=st.permutations(NAMES))
def test_both_modes_answer_alike_and_every_node_has_an_answer(of_pod, names):
    """Each candidate is kept, or has one reason; kept ones stay in order; zeros do not fit."""
    decider = decider_of(PAIR)
    found = filter_answer(decider, args(of_pod, names), 0.0)
    other = filter_answer(decider, whole(of_pod, names), 0.0)
    scores = prioritize_answer(decider, args(of_pod, names), 0.0)

    kept, failed = found["NodeNames"], found["FailedNodes"]
    never = found["FailedAndUnresolvableNodes"]
    assert sorted([*kept, *failed, *never]) == sorted(names)
    assert kept == [name for name in names if name in kept]
    assert all([*failed.values(), *never.values()])
    assert [item["metadata"]["name"] for item in other["Nodes"]["items"]] == kept
    assert other["NodeNames"] is None
    assert (other["FailedNodes"], other["FailedAndUnresolvableNodes"]) == (failed, never)
    assert prioritize_answer(decider, whole(of_pod, names), 0.0) == scores
    assert [row["Host"] for row in scores] == names
    assert {row["Host"] for row in scores if row["Score"]} == set(kept)


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if pair["request"]])
def test_keys_in_small_letters_are_read_alike(name):
    """Go's decoder does not mind the case of keys, so neither do we; maps keep their keys."""
    pair = PAIRS[name]
    verb = {
        "filter": filter_answer,
        "prioritize": prioritize_answer,
        "preempt": preempt_answer,
        "bind": lambda *given: str(begin_binding(*given)),
    }[pair["verb"]]
    request = copy.deepcopy(pair["request"])

    assert verb(decider_of(pair), lowered(request), 0.0) == verb(decider_of(pair), request, 0.0)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({"NodeNames": []}, {"Nodes": None, "NodeNames": []}),
        ({"Nodes": {"metadata": {}, "items": None}}, {"Nodes": {"metadata": {}, "items": []}}),
        ({"Nodes": {}}, {"Nodes": {"items": []}}),
    ],
)
def test_no_candidates_are_no_error(nodes, expected):
    found = filter_answer(decider_of(PAIR), {"Pod": pod("p", 2), **nodes}, 0.0)

    assert {key: found[key] for key in expected} == expected
    assert found["FailedNodes"] == found["FailedAndUnresolvableNodes"] == {}
    assert found["Error"] == ""


def test_a_policy_that_is_not_known_is_a_reason_against_every_node():
    found = filter_answer(decider_of(PAIR), args(pod("p", 2, policy="nearest"), ["gpu-a"]), 0.0)

    (reason,) = found["FailedAndUnresolvableNodes"].values()
    assert reason.startswith("policy must be one of none, best-effort")
    assert "'nearest'" in reason


def test_the_policy_counts_in_scores_and_in_preemption_too():
    """Of three nodes one has four GPUs on a NUMA node; evicting other pods does not help."""
    decider = decider_of(PAIR)
    scores = prioritize_answer(
        decider, args(pod("p", 4, policy="single-numa"), ["gpu-a", "gpu-b", "gpu-c"]), 0.0
    )
    assert [row["Score"] > 0 for row in scores] == [True, False, False]
    victims = {name: {"Pods": [{"UID": "v"}], "NumPDBViolations": 0} for name in ("gpu-a", "gpu-c")}
    call = {"Pod": pod("p", 4, policy="single-numa"), "NodeNameToMetaVictims": victims}
    assert list(preempt_answer(decider, call, 0.0)["NodeNameToMetaVictims"]) == ["gpu-a"]


def test_fields_of_newer_schedulers_are_no_matter():
    """Pod-level resources, claims, gates, groups, status of all kinds: none changes the answer."""
    of_pod = pod("p", 2)
    before = filter_answer(decider_of(PAIR), args(of_pod, NAMES), 0.0)
    of_pod["metadata"] |= {"managedFields": [{"fieldsV1": {"f:a": {}}}], "generation": 7}
    of_pod["spec"] |= {
        "resources": {"limits": {"cpu": "8"}},
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
        "schedulingGates": None,
        "priority": 1000,
        "overhead": {"memory": "1Gi"},
        "tolerations": [{"operator": "Exists"}],
        "initContainers": None,
        "ephemeralContainers": [{"name": "debug"}],
    }
    of_pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "c"}]
    of_pod["status"] = {"phase": "Pending", "extendedResourceClaimStatus": None}

    assert filter_answer(decider_of(PAIR), args(of_pod, NAMES), 0.0) == before


def test_resources_and_annotation_by_other_names():
    """Nodes of which the state names no resource offer those of the flags, and no others."""
    keys = PodKeys(resources=("nvidia.com/gpu", ASCEND), policy_annotation="example.org/numa")
    decider = Decider(book=book_of(whole_nodes(["a", "b"])), keys=keys)
    decider.book.grant(grant_of("held", "b", [0, 1, 2, 4]))
    of_pod = pod("p", 4)
    of_pod["spec"]["containers"][0]["resources"]["limits"] = {ASCEND: "4", "nvidia.com/GPU": "9"}
    of_pod["metadata"]["annotations"] = {
        "example.org/numa": "single-numa",
        f"{PREFIX}/policy": "none",
    }

    found = filter_answer(decider, args(of_pod, ["a", "b"]), 0.0)

    assert found["NodeNames"] == ["a"]
    assert list(found["FailedNodes"]) == ["b"]


@pytest.mark.parametrize("pods_of_node", [None, []])
def test_nodes_without_victims_are_not_proposed(pods_of_node):
    call = {
        "Pod": pod("p", 2),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"gpu-a": {"Pods": pods_of_node, "NumPDBViolations": 0}},
    }

    assert preempt_answer(decider_of(PAIR), call, 0.0) == {"NodeNameToMetaVictims": {}}


def test_many_nodes_are_all_answered():
    """5,000 names, as in the largest clusters; answers are JSON as Go reads it."""
    names = [f"n{place}" for place in range(5000)]
    decider = Decider(book=book_of(whole_nodes(names[:100])))
    found = filter_answer(decider, args(pod("p", 2), names), 0.0)
    scores = prioritize_answer(decider, args(pod("p", 2), names), 0.0)

    assert found["NodeNames"] == names[:100]
    assert len(found["FailedAndUnresolvableNodes"]) == 4900
    assert [row["Host"] for row in json.loads(json.dumps(scores))] == names
