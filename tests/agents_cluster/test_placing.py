"""Placing: every rule on hand-made clusters, and what all of them hold to."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queues import queued

from agents.cluster.placing import BestFit, Consolidated, FirstFree, Packed, Scattered
from agents.cluster.table import PLACINGS
from des.cluster.free_gpus import FreeCounts
from des.cluster.live_job import LiveJob
from des.cluster.node_set import NodeSet


def cluster(free_of, *, gpus=4, **shape):
    """Nodes with these numbers of free GPUs."""
    free = FreeCounts(NodeSet.equal(len(free_of), gpus, **shape))
    for node, count in enumerate(free_of):
        free.open_node(node)
        if count < gpus:
            free.take((free.first_gpus(node, gpus - count),))
    return free


def placed(placing, free_of, width, *, gpus=4, shape=None, **job):
    """Number of GPUs on each node that a job gets; None if it waits."""
    live = LiveJob(queued((0, width, 1), **job)[0])
    found = placing.place(cluster(free_of, gpus=gpus, **(shape or {})), live)
    return found and {node: mask.bit_count() for node, mask in found}


@pytest.mark.parametrize(
    ("placing", "free_of", "width", "expected"),
    [
        (FirstFree(), (1, 0, 4), 3, {0: 1, 2: 2}),
        (FirstFree(), (1, 0, 1), 3, None),
        (Scattered(), (4, 4, 4), 3, {0: 1, 1: 1, 2: 1}),
        (Scattered(), (1, 4, 2), 5, {0: 1, 1: 2, 2: 2}),
        (BestFit(), (4, 2, 3), 2, {1: 2}),
        (BestFit(), (4, 2, 3), 6, {0: 4, 1: 2}),
        (BestFit(), (1, 1, 1), 3, {0: 1, 1: 1, 2: 1}),
        (Consolidated(), (3, 3, 3), 4, None),
        (Consolidated(), (3, 4, 2), 6, {1: 4, 2: 2}),
        (Packed(), (4, 1, 2), 3, {0: 3}),
        (Packed(), (2, 1, 2), 3, {1: 1, 2: 2}),
    ],
)
def test_hand_made_cluster(placing, free_of, width, expected):
    assert placed(placing, free_of, width) == expected


def test_a_level_is_required_or_preferred():
    """Racks of two nodes: 3 + 1 and 2 + 3 free."""
    racks = {"shape": {"nodes_per_rack": 2}}
    free_of = (3, 1, 2, 3)

    assert placed(FirstFree(level="rack"), free_of, 4, **racks) == {0: 3, 1: 1}
    assert placed(FirstFree(level="rack"), free_of, 5, **racks) == {2: 2, 3: 3}
    assert placed(FirstFree(level="rack"), free_of, 6, **racks) == {0: 3, 1: 1, 2: 2}
    assert placed(FirstFree(level="rack", is_required=True), free_of, 6, **racks) is None
    own = {"level": "node", "is_level_required": True}
    assert placed(FirstFree(level="rack"), free_of, 4, **racks, **own) is None
    assert placed(FirstFree(), free_of, 3, **racks, **own) == {0: 3}


def test_a_job_of_a_domain_stays_there():
    domains = {"shape": {"num_domains": 2}}

    assert placed(FirstFree(), (4, 4), 2, domain="d1", **domains) == {1: 2}
    assert placed(FirstFree(), (4, 1), 2, domain="d1", **domains) is None


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(PLACINGS)),
    level=st.sampled_from(["", "node", "rack"]),
    free_of=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    width=st.integers(1, 12),
)
def test_a_job_gets_all_its_gpus_of_free_ones_or_none(name, level, free_of, width):
    free = cluster(free_of, nodes_per_rack=2)
    found = PLACINGS[name].make(level, False).place(free, LiveJob(queued((0, width, 1))[0]))

    if found is None:
        assert width > sum(free_of) or name == "consolidated"
        return
    assert sum(mask.bit_count() for _, mask in found) == width
    free.take(found)  # asserts that they are free
    free.give(found)
    assert [free.free_of[node] for node in range(len(free_of))] == free_of
    assert free.num_free == sum(free_of)
    assert free.num_whole == 4 * sum(count == 4 for count in free_of)
