"""Gangs that would do harm: victims for nothing, and GPUs promised to pods that are gone."""

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from k8s_cases import args, bind_args, book_of, flat_cluster, grant_of, pod, whole_nodes

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import (
    Binding,
    begin_binding,
    end_binding,
    filter_answer,
    preempt_answer,
)
from des.devices.presets import simulated

SERVERS = {8: simulated("dgx-1-v100"), 16: simulated("dgx-2")}
GANG = ("ml", "g")


def member(rank: int, gpus: int, size: int) -> dict:
    return pod(f"g-{rank}", gpus, gang="g", gang_size=str(size))


def offered(victims: dict[str, list[str]]) -> dict:
    """Victims by UID, as kube-scheduler offers them; nodes without any are not offered."""
    return {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
        for node, uids in victims.items()
        if uids
    }


@pytest.mark.attack
@settings(max_examples=examples(200))
@given(
    data=st.data(),
    num_gpus=st.sampled_from([8, 16]),
    per_pod=st.sampled_from([1, 2, 4, 8, 16]),
    size=st.integers(2, 8),
    num_nodes=st.integers(1, 4),
)
def test_pods_are_evicted_only_where_the_whole_gang_gets_in(
    data, num_gpus, per_pod, size, num_nodes
):
    """As many pods fit on a node as its free and offered GPUs hold; the sum decides."""
    nodes = [f"n{place}" for place in range(num_nodes)]
    decider = Decider(book=book_of(whole_nodes(nodes, SERVERS[num_gpus])))
    victims: dict[str, list[str]] = {node: [] for node in nodes}
    room, own_room = 0, {}
    for node in nodes:
        left = num_gpus
        for quarter in range(4):
            gpus = range(quarter * num_gpus // 4, (quarter + 1) * num_gpus // 4)
            held_by = data.draw(st.sampled_from(["none", "victim", "other"]))
            if held_by != "none":
                decider.book.grant(grant_of(f"{node}-{quarter}", node, gpus))
            if held_by == "victim":
                victims[node].append(f"{node}-{quarter}")
            left -= len(gpus) * (held_by == "other")
        room += left // per_pod
        own_room[node] = left // per_pod
    call = {"Pod": member(0, per_pod, size), "NodeNameToMetaVictims": offered(victims)}

    answer = preempt_answer(decider, call, 0.0)["NodeNameToMetaVictims"]

    helped = [node for node in nodes if victims[node] and own_room[node]]
    assert list(answer) == (helped if room >= size else [])
    for node, row in answer.items():
        assert [each["UID"] for each in row["Pods"]] == victims[node]


@pytest.mark.attack
def test_a_gang_that_no_cluster_holds_evicts_nobody():
    """Five pods of 16 GPUs on three nodes of 16, each of them tried again and again."""
    nodes = ["a", "b", "c"]
    decider = Decider(book=book_of(whole_nodes(nodes, SERVERS[16])))
    for node in nodes:
        for gpu in range(16):
            decider.book.grant(grant_of(f"{node}-{gpu}", node, [gpu]))
    victims = offered({node: [f"{node}-{gpu}" for gpu in range(16)] for node in nodes})
    for attempt in range(10):
        for rank in range(5):
            asked = member(rank, 16, 5)
            assert filter_answer(decider, args(asked, nodes), float(attempt))["NodeNames"] == []
            call = {"Pod": asked, "NodeNameToMetaVictims": victims}
            assert preempt_answer(decider, call, 0.0) == {"NodeNameToMetaVictims": {}}

    assert len(decider.book.grants) == 48


def test_what_is_promised_to_a_gang_counts_for_it():
    """Both pods have slots, one of them on a node that is no candidate any more."""
    decider = Decider(book=book_of(whole_nodes(["a", "b", "c"])))
    decider.book.grant(grant_of("victim", "b", range(8)))
    filter_answer(decider, args(member(0, 8, 2), ["a", "c"]), 0.0)
    assert len(decider.book.promises[GANG].slots) == 2
    call = {"Pod": member(1, 8, 2), "NodeNameToMetaVictims": offered({"b": ["victim"]})}

    assert list(preempt_answer(decider, call, 1.0)["NodeNameToMetaVictims"]) == ["b"]


@pytest.mark.attack
@settings(max_examples=examples(200))
@given(
    size=st.integers(2, 12),
    events=st.lists(
        st.tuples(st.sampled_from(["see", "bind", "fail", "delete"]), st.integers(0, 3))
    ),
)
def test_a_promise_goes_with_the_last_known_pod_of_its_gang(size, events):
    """Whatever order pods come, are bound and are deleted in, and at once, not at the deadline."""
    nodes = [f"n{place}" for place in range(12)]
    decider = Decider(book=book_of(whole_nodes(nodes)))
    known: set[int] = set()
    for event, rank in events:
        uid = f"g-{rank}"
        if event == "see":
            known.add(rank)
            filter_answer(decider, args(member(rank, 8, size), nodes), 0.0)
        elif event == "delete":
            known.discard(rank)
            decider.forget(uid)
        else:
            promise = decider.book.promises.get(GANG)
            node = promise.slots[0].node if promise else "n0"
            binding = begin_binding(decider, bind_args(uid, node), 0.0)
            if isinstance(binding, Binding):
                end_binding(decider, binding, "conflict" if event == "fail" else "", 0.0)
        if not known:
            assert not decider.book.promises
            assert not decider.book.grants

    for rank in known:
        decider.forget(f"g-{rank}")
    assert all(len(decider.book.free(node)) == 8 for node in nodes)


@pytest.mark.attack
@settings(max_examples=examples(200))
@given(per_pod=st.sampled_from([8, 16]), num_nodes=st.integers(2, 4), data=st.data())
def test_a_gang_whose_room_was_made_by_evictions_gets_it(per_pod, num_nodes, data):
    """kube-scheduler sends each pod its own node alone: others are nominated to the rest."""
    nodes = [f"n{place}" for place in range(num_nodes)]
    decider = Decider(book=book_of(whole_nodes(nodes, SERVERS[16])))
    each = 16 // per_pod
    node_of = {rank: nodes[rank // each] for rank in range(each * num_nodes)}
    pods = {rank: member(rank, per_pod, len(node_of)) for rank in node_of}
    for rank in data.draw(st.permutations(sorted(pods))):
        pods[rank]["status"] = {"nominatedNodeName": node_of[rank]}
        filter_answer(decider, args(pods[rank], [node_of[rank]]), 0.0)
    assert decider.book.news_on in nodes
    for rank in data.draw(st.permutations(sorted(pods))):
        found = filter_answer(decider, args(pods[rank], [node_of[rank]]), 1.0)
        assert found["NodeNames"] == [node_of[rank]]
        binding = begin_binding(decider, bind_args(f"g-{rank}", node_of[rank]), 1.0)
        end_binding(decider, binding, "", 1.0)

    assert not decider.book.promises
    assert not any(decider.book.free(node) for node in nodes)


EVENTS = st.tuples(
    st.sampled_from(["see", "see", "bind", "fail", "delete", "wait", "lose", "take"]),
    st.integers(0, 3),
    st.permutations(range(5)),
    st.integers(2, 3),
)


@pytest.mark.attack
@settings(max_examples=examples(400))
@given(size=st.integers(2, 3), events=st.lists(EVENTS, min_size=2, max_size=12))
def test_pods_hear_of_all_that_is_promised_no_more(size, events):
    """However a promise ends or gives way to another one: else they wait for minutes."""
    nodes = [f"n{place}" for place in range(5)]
    decider = Decider(book=book_of(whole_nodes(nodes)), gang_timeout_s=10.0)
    book, now_s = decider.book, 0.0
    for event, rank, places, num_nodes in events:
        uid, few = f"g-{rank}", [nodes[place] for place in places[:num_nodes]]
        before = {slot.node for each in book.promises.values() for slot in each.slots}
        book.news_on = None
        if event == "see":
            filter_answer(decider, args(member(rank, 8, size), few), now_s)
        elif event == "delete":
            decider.forget(uid)
        elif event == "wait":
            now_s += 6.0
            book.expire(now_s)
        elif event == "lose":
            left = [node for node in nodes if node != few[0]]
            book.replace_nodes(whole_nodes(left), flat_cluster(left))
        elif event == "take":
            book.enter_outside(grant_of(f"other-{rank}", few[0], range(8)))
        else:
            promise = book.promises.get(GANG)
            node = promise.slots[0].node if promise else "n0"
            binding = begin_binding(decider, bind_args(uid, node), now_s)
            if isinstance(binding, Binding):
                end_binding(decider, binding, "conflict" if event == "fail" else "", now_s)
        free = {node for node in before if node in book.nodes and len(book.free(node)) == 8}
        if event != "fail":  # kube-scheduler hears of those by itself
            assert bool(free) <= (book.news_on in book.nodes)
