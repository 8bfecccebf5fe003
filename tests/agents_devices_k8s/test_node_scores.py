"""Scores of nodes: hand-computed cases, bounds, order, and names that play no part."""

from dataclasses import replace

import pytest
from device_servers import servers
from hypothesis import given
from hypothesis import strategies as st
from k8s_cases import args, book_of, pod, whole_nodes

from agents.devices.k8s.book import NodeGpus
from agents.devices.k8s.decider import Decider
from agents.devices.k8s.node_fit import NodeFit, NoFit, fit_on_server
from agents.devices.k8s.node_scores import score_share, whole_scores
from agents.devices.k8s.score_weights import ScoreWeights
from agents.devices.k8s.verbs import filter_answer, prioritize_answer
from des.devices.presets import simulated

FIT = NodeFit(
    gpus=(0, 1), all_reduce_s=4.0, latency_s=2e-5, num_nodes=2, fragmentation_fraction=0.25
)
SHARES = st.lists(st.none() | st.floats(0.0, 1.0), max_size=30)
POLICIES = ("none", "best-effort", "restricted", "single-numa")


def test_a_score_is_the_weighted_mean_of_its_parts():
    """Two doublings of at least three, two NUMA nodes, a quarter lost, not preferred."""
    share = score_share(FIT, (1.0, 2.0), is_preferred=False, weights=ScoreWeights())

    assert share == pytest.approx((40 / 3 + 30 / 2 + 20 * 0.75) / 100)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"topology": 1.0}, 1 / 3),
        ({"numa": 1.0}, 1 / 2),
        ({"balance": 2.0}, 0.75),
        ({"preference": 3.0}, 1.0),
        ({"latency": 1.0}, 2 / 3),
        ({"numa": 1.0, "same_numa_bonus": 50.0, "cross_numa_penalty": 20.0}, 50 / 170),
    ],
)
def test_each_weight_is_that_of_its_part(weights, expected):
    zeros = dict.fromkeys(("topology", "numa", "balance", "preference"), 0.0)
    of = ScoreWeights(**{**zeros, **weights})

    share = score_share(FIT, (1.0, 2.0), is_preferred=True, weights=of, latencies_s=(1e-5, 1.5e-5))
    assert share == pytest.approx(expected)


def test_gpus_on_one_numa_node_gain_the_bonus():
    points = ScoreWeights(same_numa_bonus=50.0, cross_numa_penalty=20.0)
    near, far = (
        score_share(replace(FIT, num_nodes=count), (1.0, 2.0), is_preferred=True, weights=points)
        for count in (1, 2)
    )
    assert 170 * (near - far) == pytest.approx(30 / 2 + 50 + 20)  # NUMA part, bonus, penalty


def test_the_latency_of_a_cluster_counts_where_it_has_a_weight():
    """A small all-reduce of GPUs 0, 1, 4 and 6 of a DGX-1 goes between its processors."""
    weights = ScoreWeights(topology=0.0, numa=0.0, balance=0.0, preference=0.0, latency=1.0)
    nodes = [
        NodeGpus(name=name, server=simulated("dgx-1-v100"), free=free)
        for name, free in (("near", (0, 1, 2, 3)), ("far", (0, 1, 4, 6)))
    ]
    decider = Decider(book=book_of(nodes), weights=weights)

    near, far = prioritize_answer(decider, args(pod("p", 4), ["near", "far"]), 0.0)
    assert near["Score"] > far["Score"]


@pytest.mark.parametrize("field", ["topology", "numa", "balance", "preference"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_weights_are_checked(field, value):
    with pytest.raises(ValueError, match=f"score weights: {field} must be"):
        ScoreWeights(**{field: value})


@given(shares=SHARES)
def test_whole_scores_are_in_range_and_in_order(shares):
    scores = whole_scores(shares)

    assert all(type(score) is int and 0 <= score <= 10 for score in scores)
    assert all((score == 0) == (share is None) for score, share in zip(scores, shares, strict=True))
    ranked = sorted((s, n) for s, n in zip(shares, scores, strict=True) if s is not None)
    assert [score for _, score in ranked] == sorted(score for _, score in ranked)


@given(shares=st.lists(st.sampled_from([place / 40 for place in range(41)]), max_size=10))
def test_up_to_ten_different_shares_have_different_scores(shares):
    scores = whole_scores(shares)

    assert len(set(scores)) == len(set(shares))


@given(of=st.lists(servers(most_gpus=5), min_size=1, max_size=3), data=st.data())
def test_answers_do_not_depend_on_names_or_order_of_nodes(of, data):
    """Renamed and shuffled nodes keep their scores; names of the call come back in its order."""
    names = [f"n{place}" for place in range(len(of))]
    other = data.draw(st.permutations(names))
    call = pod(
        "p",
        data.draw(st.integers(1, 4)),
        policy=data.draw(st.sampled_from(POLICIES)),
    )
    free = [tuple(sorted(data.draw(st.sets(st.sampled_from(range(each.num_gpus)))))) for each in of]
    rows = list(zip(of, free, strict=True))

    def answers(own: list[str]) -> tuple[list, dict]:
        book = book_of(
            [NodeGpus(name=n, server=s, free=f) for n, (s, f) in zip(own, rows, strict=True)]
        )
        decider = Decider(book=book)
        scores = prioritize_answer(decider, args(call, own), 0.0)
        return scores, filter_answer(decider, args(call, own), 0.0)

    scores, kept = answers(names)
    others, kept_others = answers(other)
    assert [row["Host"] for row in others] == other
    assert [row["Score"] for row in others] == [row["Score"] for row in scores]
    renamed = dict(zip(names, other, strict=True))
    assert kept_others["NodeNames"] == [renamed[name] for name in kept["NodeNames"]]
    assert {row["Host"] for row in scores if row["Score"]} == set(kept["NodeNames"])
    for field in ("FailedNodes", "FailedAndUnresolvableNodes"):
        assert kept_others[field] == {renamed[n]: why for n, why in kept[field].items()}


def test_preferred_nodes_score_higher():
    decider = Decider(book=book_of(whole_nodes(["a", "b"])))
    call = args(pod("p", 2, preferred_nodes="b"), ["a", "b"])

    (a, b) = prioritize_answer(decider, call, 0.0)

    assert a["Score"] < b["Score"]


def test_a_node_with_a_better_set_scores_higher():
    """Four V100 of one board beat four over both boards of the same kind of server."""
    server = simulated("dgx-1-v100")
    near, far = (0, 1, 2, 3), (0, 1, 6, 7)
    nodes = [
        NodeGpus(name=name, server=server, free=free)
        for name, free in (("far", far), ("near", near))
    ]
    rows = prioritize_answer(Decider(book=book_of(nodes)), args(pod("p", 4), ["far", "near"]), 0.0)

    assert rows[0]["Score"] < rows[1]["Score"]


def test_a_node_that_nothing_can_free_is_told_apart():
    server = simulated("dgx-1-v100")

    full = fit_on_server(server, (), 4, "best-effort")
    never = fit_on_server(server, range(8), 5, "single-numa")
    unknown = fit_on_server(server, range(8), 2, "closest")

    assert isinstance(full, NoFit)
    assert full.can_be_freed
    assert isinstance(never, NoFit)
    assert not never.can_be_freed
    assert isinstance(unknown, NoFit)
    assert "policy must be one of none, best-effort" in unknown.reason


@pytest.mark.parametrize("policy", ["single-numa", "single-numa-node"])
def test_kubernetes_name_of_the_policy_is_known(policy):
    fit = fit_on_server(simulated("dgx-1-v100"), tuple(range(8)), 4, policy)

    assert isinstance(fit, NodeFit)
    assert fit.num_nodes == 1
