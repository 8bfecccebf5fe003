"""Promises to gangs: all slots or none, taken one by one, given back, ended at the deadline."""

import pytest
from k8s_cases import args, bind_args, book_of, grant_of, pod, whole_nodes

from agents.devices.k8s.book import GpuBook, NodeGpus
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import (
    Binding,
    begin_binding,
    end_binding,
    filter_answer,
    preempt_answer,
    prioritize_answer,
)
from des.devices.cluster import Cluster, ClusterNode, Switch
from des.devices.presets import simulated

NAMES = ["a", "b", "c"]


@pytest.fixture
def decider():
    """Three DGX-1 without pods."""
    return Decider(book=book_of(whole_nodes(NAMES)), gang_timeout_s=60.0)


def member(rank: int, gpus: int = 4, size: int = 4, gang: str = "g") -> dict:
    return pod(f"{gang}-{rank}", gpus, gang=gang, gang_size=str(size))


def bound(decider: Decider, uid: str, node: str, now_s: float, error: str = "") -> Binding | str:
    binding = begin_binding(decider, bind_args(uid, node), now_s)
    if isinstance(binding, Binding):
        end_binding(decider, binding, error, now_s)
    return binding


def kept(decider: Decider, of_pod: dict, now_s: float) -> list[str]:
    return filter_answer(decider, args(of_pod, NAMES), now_s)["NodeNames"]


def test_four_pods_of_four_gpus_are_promised_two_nodes(decider):
    assert kept(decider, member(0), 0.0) == ["a", "b"]

    (promise,) = decider.book.promises.values()
    assert [slot.node for slot in promise.slots] == ["a", "a", "b", "b"]
    assert decider.book.free("a") == decider.book.free("b") == ()
    assert kept(decider, pod("other", 4), 1.0) == ["c"]
    assert kept(decider, member(1), 1.0) == ["a", "b"]  # no second promise
    assert len(decider.book.promises) == 1


APART = {"app": "train"}


def apart(rank: int, size: int = 3) -> dict:
    """Pod of a gang that keeps others with its labels off its node."""
    found = member(rank, 2, size)
    found["metadata"]["labels"] = APART
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": APART}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    found["spec"]["affinity"] = {"podAntiAffinity": rules}
    return found


def test_pods_that_keep_apart_are_promised_a_node_each(decider):
    assert kept(decider, apart(0), 0.0) == NAMES
    assert isinstance(bound(decider, "g-0", "b", 1.0), Binding)
    decider.book.give_up(("ml", "g"))

    assert kept(decider, apart(1), 2.0) == ["a", "c"]  # b has a sibling
    assert kept(decider, apart(0, size=4) | {}, 2.0) == NAMES  # bound already
    assert kept(Decider(book=book_of(whole_nodes(NAMES))), apart(5, size=4), 3.0) == []


def test_pods_take_slots_until_the_promise_is_used_up(decider):
    kept(decider, member(0), 0.0)
    slots = {(slot.node, slot.fit.gpus) for slot in decider.book.promises["ml", "g"].slots}
    for rank, node in enumerate("aabb"):
        assert node in kept(decider, member(rank), 1.0)
        assert isinstance(bound(decider, f"g-{rank}", node, 2.0), Binding)

    assert {(grant.node, grant.gpus) for grant in decider.book.grants.values()} == slots
    assert not decider.book.promises
    assert decider.book.expire(1e9) == 0


def test_a_gang_that_does_not_fit_as_a_whole_is_not_begun(decider):
    answer = filter_answer(decider, args(member(0, size=7), NAMES), 0.0)

    assert answer["NodeNames"] == []
    assert set(answer["FailedNodes"]) == set(NAMES)
    assert "7 pods of 4 GPUs together do not fit" in answer["FailedNodes"]["a"]
    assert not decider.book.promises
    assert not answer["Error"]


def test_a_promise_ends_at_its_deadline_and_a_late_sibling_gets_another(decider):
    kept(decider, member(0), 0.0)
    bound(decider, "g-0", "a", 1.0)

    assert kept(decider, pod("other", 8), 59.0) == ["c"]
    assert kept(decider, pod("other", 8), 60.0) == ["b", "c"]
    assert decider.book.num_expired == 1
    assert len(decider.book.grants) == 1
    kept(decider, member(1), 61.0)
    assert len(decider.book.promises["ml", "g"].slots) == 3
    assert decider.book.promises["ml", "g"].deadline_s == 121.0


def test_calls_of_the_same_pod_do_not_prolong_a_promise(decider):
    for now_s in (0.0, 30.0, 59.0):
        kept(decider, member(0), now_s)
    assert decider.book.promises["ml", "g"].deadline_s == 60.0


def test_a_failed_binding_gives_the_slot_back_to_the_gang(decider):
    kept(decider, member(0, size=2), 0.0)
    kept(decider, member(1, size=2), 0.0)
    before = list(decider.book.promises["ml", "g"].slots)
    bound(decider, "g-0", "a", 1.0)
    bound(decider, "g-1", "a", 1.0, error="conflict")

    assert decider.book.promises["ml", "g"].slots == before[1:]
    assert set(decider.book.grants) == {"g-0"}


def test_a_failed_binding_after_the_deadline_leaves_nothing(decider):
    kept(decider, member(0, size=2), 0.0)
    binding = begin_binding(decider, bind_args("g-0", "a"), 59.0)
    assert isinstance(binding, Binding)
    assert end_binding(decider, binding, "timed out", 61.0) == {"Error": "timed out"}
    decider.book.expire(61.0)

    assert not decider.book.grants
    assert not decider.book.promises
    assert len(decider.book.free("a")) == 8


def test_a_pod_of_a_gang_is_bound_on_promised_nodes_alone(decider):
    kept(decider, member(0, size=2), 0.0)

    assert "gang g has GPUs promised" in str(bound(decider, "g-0", "c", 1.0))


@pytest.mark.parametrize(("size", "said"), [(4, "a, b, c, d"), (5, "a, b, c, d, ...")])
def test_of_many_promised_nodes_four_are_named(size, said):
    names = list("abcdef")
    decider = Decider(book=book_of(whole_nodes(names)), gang_timeout_s=60.0)
    answer = filter_answer(decider, args(member(0, gpus=8, size=size), names), 0.0)

    assert answer["FailedNodes"]["f"] == f"gang g has GPUs promised on {said}"


def test_promised_gpus_do_not_help_a_preemptor(decider):
    decider.book.grant(grant_of("victim", "a", [0, 1, 2, 3]))
    kept(decider, member(0, size=5), 0.0)
    victims = {"a": {"Pods": [{"UID": "victim"}], "NumPDBViolations": 0}}
    call = {"Pod": pod("p", 8), "NodeNameToMetaVictims": victims}

    assert preempt_answer(decider, call, 1.0) == {"NodeNameToMetaVictims": {}}


def test_promises_on_gpus_that_are_gone_are_given_up(decider):
    kept(decider, member(0, size=2), 0.0)
    decider.book.enter_outside(grant_of("stranger", "a", [0]))
    assert not decider.book.promises

    kept(decider, member(0, size=2), 0.0)
    decider.book.replace_nodes([NodeGpus(name="z")], Cluster(nodes=(ClusterNode(name="z"),)))
    assert not decider.book.promises


def test_other_slots_are_promised_where_no_candidate_has_one(decider):
    kept(decider, member(0, size=2), 0.0)
    answer = filter_answer(decider, args(member(0, size=2), ["b", "c"]), 30.0)

    assert answer["NodeNames"] == ["b"]
    assert decider.book.promises["ml", "g"].deadline_s == 60.0
    assert len(decider.book.free("a")) == 8


def test_siblings_are_close_to_each_other():
    """Of two racks the one that holds the whole gang is chosen, not the first nodes."""
    names = ["n0", "n1", "n2", "n3"]
    book = GpuBook()
    nodes = tuple(ClusterNode(name=name, switch="r0" if name == "n0" else "r1") for name in names)
    racks = tuple(Switch(name=name, level="rack", parent="dc") for name in ("r0", "r1"))
    cluster = Cluster(nodes=nodes, switches=(*racks, Switch(name="dc", level="datacentre")))
    book.replace_nodes(whole_nodes(names), cluster)
    decider = Decider(book=book)

    found = filter_answer(decider, args(member(0, gpus=8, size=3), names), 0.0)

    assert found["NodeNames"] == ["n1", "n2", "n3"]


def test_uneven_room_is_used_up():
    """Nodes with room for 2, 1 and 0 pods hold three."""
    server = simulated("dgx-1-v100")
    free = {"a": tuple(range(8)), "b": (0, 1, 2, 3), "c": (0,)}
    book = book_of([NodeGpus(name=n, server=server, free=free[n]) for n in NAMES])
    decider = Decider(book=book)

    assert kept(decider, member(0, size=3), 0.0) == ["a", "b"]
    scores = prioritize_answer(decider, args(member(0, size=3), NAMES), 0.0)
    assert [row["Score"] > 0 for row in scores] == [True, True, False]


def test_a_pod_beyond_the_size_of_its_gang_is_placed_by_itself(decider):
    for rank in range(2):
        kept(decider, member(rank, size=2), 0.0)
        bound(decider, f"g-{rank}", "a", 0.0)

    assert kept(decider, member(2, size=2), 0.0) == ["b", "c"]
    assert not decider.book.promises
