"""Answers beyond the recorded pairs: strange nodes, pods without GPUs, whole pods as victims."""

import pytest
from k8s_cases import args, bind_args, book_of, flat_cluster, grant_of, pod, whole_nodes

from agents.devices.k8s.book import NodeGpus
from agents.devices.k8s.cluster_state import ClusterState, enter_state
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import (
    Binding,
    begin_binding,
    end_binding,
    filter_answer,
    preempt_answer,
    prioritize_answer,
)
from des.devices.presets import simulated

NAMES = ["a", "b"]


@pytest.fixture
def decider():
    return Decider(book=book_of(whole_nodes(NAMES)))


def test_a_node_that_is_not_known_never_fits(decider):
    answer = filter_answer(decider, args(pod("p", 2), ["x", "a"]), 0.0)

    assert answer["NodeNames"] == ["a"]
    assert answer["FailedAndUnresolvableNodes"] == {"x": "is not known to the extender"}
    assert prioritize_answer(decider, args(pod("p", 2), ["x"]), 0.0) == [{"Host": "x", "Score": 0}]


def test_a_pod_without_gpus_fits_everywhere(decider):
    answer = filter_answer(decider, args(pod("p", 0), ["x", "a"]), 0.0)

    assert answer["NodeNames"] == ["x", "a"]
    binding = begin_binding(decider, bind_args("p", "x"), 0.0)
    assert isinstance(binding, Binding)
    assert binding.object_to_post(decider.keys)["metadata"].keys() == {
        "name",
        "namespace",
        "uid",
    }


def test_bindings_carry_gpus_and_numa_nodes(decider):
    """GPUs 0 to 3 of a DGX-1 are on NUMA node 0, the other four on node 1."""
    for name, count, numbers, nodes in (("p", 4, "0,1,2,3", "0"), ("q", 4, "4,5,6,7", "1")):
        filter_answer(decider, args(pod(name, count), ["a"]), 0.0)
        binding = begin_binding(decider, bind_args(name, "a"), 0.0)
        found = binding.object_to_post(decider.keys, decider.book.nodes["a"].server)
        assert found["metadata"]["annotations"] == {
            "topology.example.com/gpus": numbers,
            "topology.example.com/gpu-ids": numbers,
            "topology.example.com/numa-node": nodes,
        }


def test_another_resource_than_that_of_the_node_never_fits(decider):
    decider.book.replace_nodes(
        [NodeGpus(name="a", server=simulated("dgx-1-v100"), resource="huawei.com/Ascend910B")],
        flat_cluster(["a"]),
    )
    answer = filter_answer(decider, args(pod("p", 2), ["a"]), 0.0)

    assert "offers huawei.com/Ascend910B" in answer["FailedAndUnresolvableNodes"]["a"]


@pytest.mark.parametrize("uid", ["other", ""])
def test_a_pod_that_was_not_seen_is_not_bound(decider, uid):
    call = bind_args(uid or "p", "a")

    assert "not seen in a filter call" in str(begin_binding(decider, call, 0.0))


def test_a_second_binding_of_a_pod_takes_no_more_gpus(decider):
    filter_answer(decider, args(pod("p", 2), NAMES), 0.0)
    first = begin_binding(decider, bind_args("p", "a"), 0.0)
    second = begin_binding(decider, bind_args("p", "a"), 1.0)

    assert isinstance(first, Binding)
    assert isinstance(second, Binding)
    assert second.grant == first.grant
    end_binding(decider, second, "AlreadyExists", 1.0)
    assert set(decider.book.grants) == {"p"}
    assert "already holds GPUs of node a" in str(begin_binding(decider, bind_args("p", "b"), 2.0))


def test_whole_pods_as_victims_are_answered_by_uid(decider):
    decider.book.grant(grant_of("v", "a", range(8)))
    victim = {"metadata": {"name": "v", "uid": "v"}}
    call = {
        "Pod": pod("p", 8),
        "NodeNameToVictims": {"a": {"Pods": [victim], "NumPDBViolations": 2}},
        "NodeNameToMetaVictims": None,
    }

    assert preempt_answer(decider, call, 0.0) == {
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}}
    }


def test_victims_of_other_nodes_are_not_named(decider):
    decider.book.grant(grant_of("here", "a", range(8)))
    decider.book.grant(grant_of("there", "b", [0]))
    pods = [{"UID": "there"}, {"UID": "here"}]
    call = {
        "Pod": pod("p", 8),
        "NodeNameToMetaVictims": {
            "a": {"Pods": pods, "NumPDBViolations": 0},
            "b": {"Pods": [], "NumPDBViolations": 0},
            "x": {"Pods": pods, "NumPDBViolations": 0},
        },
    }

    assert preempt_answer(decider, call, 0.0)["NodeNameToMetaVictims"] == {
        "a": {"Pods": [{"UID": "here"}], "NumPDBViolations": 0}
    }


def test_victims_whose_gpus_are_scattered_are_spared(decider):
    """Four GPUs would be free, but on both NUMA nodes: a single-numa pod gains nothing."""
    for uid, gpus in (("v", [0, 1]), ("w", [4, 5]), ("rest", [2, 3, 6, 7])):
        decider.book.grant(grant_of(uid, "a", gpus))
    call = {
        "Pod": pod("p", 4, policy="single-numa"),
        "NodeNameToMetaVictims": {
            "a": {"Pods": [{"UID": "v"}, {"UID": "w"}], "NumPDBViolations": 0}
        },
    }

    assert preempt_answer(decider, call, 0.0) == {"NodeNameToMetaVictims": {}}


def test_a_new_state_keeps_younger_grants_and_drops_older_ones(decider):
    book = decider.book
    book.grant(grant_of("old", "a", [0], since_s=10.0))
    book.grant(grant_of("young", "a", [1], since_s=30.0))
    book.grant(grant_of("clashing", "a", [2], since_s=30.0))
    book.grant(grant_of("listed", "b", [3], since_s=10.0, gang=("ml", "g")))
    state = ClusterState(
        nodes=tuple(whole_nodes(NAMES)),
        cluster=flat_cluster(NAMES),
        grants=(grant_of("outside", "a", [2]), grant_of("listed", "b", [3])),
    )

    enter_state(book, state, known_until_s=20.0)

    assert set(book.grants) == {"young", "outside", "listed"}
    assert len(book.bound(("ml", "g"))) == 1
    assert book.free("a") == (0, 3, 4, 5, 6, 7)


@pytest.mark.parametrize(
    ("grants", "match"),
    [
        ([grant_of("p", "x", [0])], "pod p: node must be one of the state's, got x"),
        ([grant_of("p", "a", [0]), grant_of("q", "a", [0])], "pod q: gpus must be GPUs of a"),
        ([grant_of("p", "a", [0]), grant_of("p", "b", [0])], "pod p: must be given once"),
    ],
)
def test_states_that_contradict_themselves_are_refused(grants, match):
    with pytest.raises(ValueError, match=match):
        ClusterState(
            nodes=tuple(whole_nodes(NAMES)), cluster=flat_cluster(NAMES), grants=tuple(grants)
        )
