"""Gangs whose pods need different numbers of GPUs, and sizes from objects of the cluster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from k8s_cases import args, bind_args, book_of, pod, whole_nodes

from agents.devices.k8s.book import NodeGpus
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import Binding, begin_binding, end_binding, filter_answer
from des.devices.presets import simulated

NAMES = ["a", "b", "c"]


@pytest.fixture
def decider():
    """Three DGX-1 without pods."""
    return Decider(book=book_of(whole_nodes(NAMES)), gang_timeout_s=60.0)


def kept(decider: Decider, of_pod: dict, now_s: float = 0.0) -> list[str]:
    return filter_answer(decider, args(of_pod, NAMES), now_s)["NodeNames"]


def bound(decider: Decider, uid: str, node: str, now_s: float = 0.0) -> int:
    """Number of GPUs that a pod is bound to."""
    binding = begin_binding(decider, bind_args(uid, node), now_s)
    assert isinstance(binding, Binding), binding
    assert end_binding(decider, binding, "", now_s) == {"Error": ""}
    return len(binding.grant.gpus)


def sizes(decider: Decider, gang: str = "g") -> dict[str, list[int]]:
    """GPUs of the promised slots on each node."""
    found: dict[str, list[int]] = {}
    for slot in decider.book.promises["ml", gang].slots:
        found.setdefault(slot.node, []).append(len(slot.fit.gpus))
    return found


@pytest.mark.parametrize("first", [4, 8])
def test_sizes_that_a_pod_says_are_promised_at_once(decider, first):
    """A leader of eight GPUs and two workers of four fill two servers in any order of arrival."""
    kept(decider, pod("p", first, gang="g", gang_gpus="4,8,4"))

    assert sorted(sizes(decider).values()) == [[4, 4], [8]]
    assert len(decider.book.free("c")) == 8


def test_members_of_different_sizes_are_bound_to_their_own_slots(decider):
    for uid, count in (("w-0", 4), ("lead", 8), ("w-1", 4)):
        nodes = kept(decider, pod(uid, count, gang="g", gang_gpus="8,4,4"))
        assert bound(decider, uid, nodes[0]) == count

    assert not decider.book.promises
    assert len({grant.node for grant in decider.book.grants.values()}) == 2
    assert kept(decider, pod("more", 4, gang="g", gang_gpus="8,4,4")) == ["c"]  # by itself


def test_sizes_are_learnt_as_siblings_come(decider):
    """The first pod keeps its slot; that of the sibling is of the right size from then on."""
    assert kept(decider, pod("w", 4, gang="g", gang_size="2")) == ["a"]
    assert sizes(decider) == {"a": [4, 4]}

    assert kept(decider, pod("lead", 8, gang="g", gang_size="2"), 1.0) == ["b"]
    assert sizes(decider) == {"a": [4], "b": [8]}
    assert decider.book.promises["ml", "g"].deadline_s == 60.0
    assert bound(decider, "w", "a") == 4
    assert bound(decider, "lead", "b") == 8


def test_a_gang_of_unequal_pods_that_does_not_fit_is_not_begun(decider):
    answer = filter_answer(decider, args(pod("p", 8, gang="g", gang_gpus="8,8,8,1"), NAMES), 0.0)

    assert answer["NodeNames"] == []
    reason = "gang g: 3 pods of 8 GPUs and 1 pod of 1 GPUs together do not fit on the candidates"
    assert answer["FailedNodes"] == dict.fromkeys(NAMES, reason)
    assert not decider.book.promises


def test_a_sibling_for_which_there_is_no_room_leaves_the_promise(decider):
    kept(decider, pod("w", 4, gang="g", gang_size="2"))

    assert kept(decider, pod("lead", 16, gang="g", gang_size="2"), 1.0) == []
    assert sizes(decider) == {"a": [4, 4]}


def test_pods_of_calls_count_as_siblings_for_a_time(decider):
    """A pod that was deleted after its call is known by its size until the time-out."""
    kept(decider, pod("gone", 8, gang="g", gang_size="2"), 0.0)
    kept(decider, pod("w-0", 4, gang="g", gang_size="2"), 59.0)
    assert sorted(map(sum, sizes(decider).values())) == [4, 8]

    kept(decider, pod("w-0", 4, gang="g", gang_size="2"), 61.0)
    assert list(map(sum, sizes(decider).values())) == [8]


def test_a_size_that_an_object_says_makes_a_gang(decider):
    """PodGroup by name; Workload by name and group, for each of its replicas."""
    decider.waiting.gang_sizes |= {("ml", "group"): 2, ("ml", "w/g"): 3}
    of_group = pod("p", 8)
    of_group["spec"]["schedulingGroup"] = {"podGroupName": "group"}
    of_workload = pod("q", 4)
    reference = {"name": "w", "podGroup": "g", "podGroupReplicaKey": "1"}
    of_workload["spec"]["workloadRef"] = reference

    kept(decider, of_group)
    assert sorted(sizes(decider, "group").values()) == [[8], [8]]
    assert kept(decider, of_workload) == []  # there is no room for three of four next to it
    decider.book.withdraw(("ml", "group"))
    kept(decider, of_workload)
    assert sum(map(len, sizes(decider, "w/g/1").values())) == 3


def test_slots_are_for_pods_of_the_same_policy(decider):
    kept(decider, pod("p", 4, gang="g", gang_size="2", policy="none"))
    kept(decider, pod("q", 4, gang="g", gang_size="2", policy="single-numa"), 1.0)

    policies = [slot.policy for slot in decider.book.promises["ml", "g"].slots]
    assert sorted(policies) == ["none", "single-numa"]


@given(
    counts=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=7),
    free=st.lists(st.integers(0, 8), min_size=1, max_size=4),
)
def test_promised_slots_are_those_that_were_asked_for_and_do_not_overlap(counts, free):
    """All slots or none; powers of two on free servers are refused where GPUs are too few alone."""
    server = simulated("dgx-1-v100")
    names = [f"n{place}" for place in range(len(free))]
    nodes = [
        NodeGpus(name=name, server=server, free=tuple(range(count)))
        for name, count in zip(names, free, strict=True)
    ]
    decider = Decider(book=book_of(nodes))
    call = pod("p", counts[0], gang="g", gang_gpus=",".join(map(str, counts)), policy="none")
    answer = filter_answer(decider, args(call, names), 0.0)

    promise = decider.book.promises.get(("ml", "g"))
    if promise is None:
        assert answer["NodeNames"] == []
        assert set(free) != {8} or sum(counts) > sum(free)
        return
    assert sorted(len(slot.fit.gpus) for slot in promise.slots) == sorted(counts)
    taken = [(slot.node, gpu) for slot in promise.slots for gpu in slot.fit.gpus]
    assert len(set(taken)) == len(taken)
    assert all(gpu < free[names.index(node)] for node, gpu in taken)
    assert set(answer["NodeNames"]) == promise.nodes_for(decider.waiting.ask("p"))
