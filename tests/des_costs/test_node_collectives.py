"""Collectives over nodes: by hand, and where they must be those of one level."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.costs.collectives import all_gather_s, reduce_scatter_s, ring_all_reduce_s
from des.costs.node_collectives import (
    RankGroup,
    group_all_gather_s,
    group_all_reduce_s,
    group_all_to_all_s,
    group_reduce_scatter_s,
    group_ring_all_reduce_s,
    group_tree_all_reduce_s,
)

ONE_LEVEL = {
    group_all_gather_s: all_gather_s,
    group_reduce_scatter_s: reduce_scatter_s,
    group_ring_all_reduce_s: ring_all_reduce_s,
}
payloads = st.floats(0.0, 1e12)


@st.composite
def groups(draw: st.DrawFn, *, num_nodes: int | None = None, size: int | None = None) -> RankGroup:
    """As many ranks on every node."""
    nodes = draw(st.integers(1, 2048)) if num_nodes is None else num_nodes
    each = draw(st.integers(1, 16)) if size is None else size
    return RankGroup(
        num_ranks=nodes * each,
        num_nodes=nodes,
        most_per_node=each,
        inner_bandwidth_bytes_per_s=draw(st.floats(1e9, 1e12)),
        inner_latency_s=draw(st.floats(0.0, 1e-5)),
        outer_bandwidth_bytes_per_s=draw(st.floats(1e9, 1e12)),
        outer_latency_s=draw(st.floats(0.0, 1e-4)),
    )


FOURS = RankGroup(
    num_ranks=12,
    num_nodes=3,
    most_per_node=4,
    inner_bandwidth_bytes_per_s=8.0,
    inner_latency_s=1.0,
    outer_bandwidth_bytes_per_s=2.0,
    outer_latency_s=10.0,
)


def test_three_nodes_of_four_by_hand():
    """24 bytes: rings pass 9 inner and 2 outer hops with 22 bytes at 2 bytes/s; a tree 3 and 2."""
    assert group_all_gather_s(24.0, FOURS) == 9 + 20 + 11
    assert group_reduce_scatter_s(24.0, FOURS) == 40
    assert group_ring_all_reduce_s(24.0, FOURS) == 80
    assert group_tree_all_reduce_s(24.0, FOURS) == 2 * (3 + 2 * 10 + 24 / 2)
    assert group_all_reduce_s(24.0, FOURS) == 70


def test_all_to_all_on_three_nodes_of_four_by_hand():
    """2 bytes a pair: to 3 partners inside, meanwhile to 8 outside, as four ranks do at once."""
    assert group_all_to_all_s(24.0, FOURS) == 10 + 8 * 2 * 4 / 2
    wide = replace(FOURS, outer_bandwidth_bytes_per_s=1e9, outer_latency_s=0.5)
    assert group_all_to_all_s(24.0, wide) == 1 + 3 * 2 / 8


@pytest.mark.parametrize("collective", ONE_LEVEL)
@given(data=st.data(), payload=payloads)
def test_one_node_is_one_level_to_the_last_bit(collective, data, payload):
    group = data.draw(groups(num_nodes=1))
    inner = (group.inner_bandwidth_bytes_per_s, group.inner_latency_s)
    expected = ONE_LEVEL[collective](payload, group.num_ranks, *inner)
    assert collective(payload, group) == expected
    assert group_all_reduce_s(payload, group) == ring_all_reduce_s(payload, group.num_ranks, *inner)


@pytest.mark.parametrize("collective", ONE_LEVEL)
@given(data=st.data(), payload=payloads)
def test_one_rank_a_node_is_one_level_between_nodes(collective, data, payload):
    group = data.draw(groups(size=1, num_nodes=data.draw(st.integers(2, 64))))
    outer = (group.outer_bandwidth_bytes_per_s, group.outer_latency_s)
    assert collective(payload, group) == ONE_LEVEL[collective](payload, group.num_ranks, *outer)


@given(data=st.data(), payload=payloads)
def test_levels_of_equal_figures_are_one_ring(data, payload):
    """Up to rounding, whatever the nodes."""
    group = data.draw(groups())
    figures = (group.inner_bandwidth_bytes_per_s, group.inner_latency_s)
    flat = RankGroup(
        num_ranks=group.num_ranks,
        num_nodes=group.num_nodes,
        most_per_node=group.most_per_node,
        inner_bandwidth_bytes_per_s=figures[0],
        inner_latency_s=figures[1],
        outer_bandwidth_bytes_per_s=figures[0],
        outer_latency_s=figures[1],
    )
    expected = ring_all_reduce_s(payload, group.num_ranks, *figures)
    assert group_ring_all_reduce_s(payload, flat) == pytest.approx(expected)


@given(group=groups(), payload=payloads)
def test_the_quicker_of_ring_and_tree_is_taken(group, payload):
    """As NCCL's model has them: latencies of hops, and 2 (n - 1) / n or 2 of the payload."""
    ranks, nodes = group.num_ranks, group.num_nodes
    steps, outer_steps = 2 * (ranks - 1), 2 * (nodes - 1)
    latencies = group.inner_latency_s, group.outer_latency_s
    pace = payload / group.pace_bytes_per_s
    ring_s = (steps - outer_steps) * latencies[0] + outer_steps * latencies[1]
    ring_s += steps / ranks * pace
    depth = math.ceil(math.log2(nodes))
    tree_s = 2 * ((ranks / nodes - 1) * latencies[0] + depth * latencies[1] + pace)
    if ranks == 1:
        tree_s = 0.0
    assert group_all_reduce_s(payload, group) == pytest.approx(min(ring_s, tree_s), rel=1e-12)


def ring_passed_on_s(part_s: list[float], latency_s: list[float]) -> float:
    """All-gather of a ring whose ranks pass parts on as they come, hop by hop."""
    num_ranks = len(part_s)
    sent_s = [0.0] * num_ranks  # start of the part that each rank sends in a step
    for _ in range(num_ranks - 2):
        arrived_s = [
            sent_s[rank - 1] + part_s[rank - 1] + latency_s[rank - 1] for rank in range(num_ranks)
        ]
        free_s = [start_s + each_s for start_s, each_s in zip(sent_s, part_s, strict=True)]
        sent_s = list(map(max, arrived_s, free_s))
    return max(map(sum, zip(sent_s, part_s, latency_s, strict=True)))


@given(group=groups(num_nodes=4), payload=payloads, size=st.integers(2, 8))
def test_a_ring_passed_on_part_by_part_is_no_slower(group, payload, size):
    """But for one inner hop on the worst way that is an outer one; and no quicker than its bytes.

    The ring of one channel: every node's last rank sends to the next node.
    """
    group = replace(group, num_ranks=4 * size, most_per_node=size)
    is_outer = [rank % size == size - 1 for rank in range(group.num_ranks)]
    inner = (group.inner_bandwidth_bytes_per_s, group.inner_latency_s)
    outer = (group.outer_bandwidth_bytes_per_s, group.outer_latency_s)
    hops = [outer if each else inner for each in is_outer]
    part_bytes = payload / group.num_ranks
    found_s = ring_passed_on_s([part_bytes / hop[0] for hop in hops], [hop[1] for hop in hops])

    spare_s = max(0.0, outer[1] - inner[1])
    expected_s = group_all_gather_s(payload, group)
    assert found_s <= (expected_s + spare_s) * (1 + 1e-12)
    bytes_s = (group.num_ranks - 1) * part_bytes / group.pace_bytes_per_s
    assert found_s >= bytes_s * (1 - 1e-12)
    assert found_s >= (expected_s - bytes_s) * (1 - 1e-9) - spare_s


@given(group=groups(), payload=payloads)
def test_no_all_reduce_beats_the_bytes_that_must_leave_a_node(group, payload):
    """Half of what nodes of equal ranks sum up must come in, at least, and the result go out."""
    nodes = group.num_nodes
    least_s = 2 * (nodes - 1) / nodes * payload / group.outer_bandwidth_bytes_per_s
    assert group_all_reduce_s(payload, group) >= least_s * (1 - 1e-12)


@given(group=groups(), payload=payloads)
def test_one_rank_exchanges_nothing(group, payload):
    alone = RankGroup(
        num_ranks=1,
        most_per_node=1,
        inner_bandwidth_bytes_per_s=group.inner_bandwidth_bytes_per_s,
        inner_latency_s=group.inner_latency_s,
    )
    for collective in (*ONE_LEVEL, group_tree_all_reduce_s, group_all_reduce_s, group_all_to_all_s):
        assert collective(payload, alone) == 0.0


def test_impossible_groups_are_refused():
    figures = {"inner_bandwidth_bytes_per_s": 1.0, "inner_latency_s": 0.0}
    with pytest.raises(ValueError, match="most_per_node must be 3 to 4 for 5 ranks on 2 nodes"):
        RankGroup(num_ranks=5, num_nodes=2, most_per_node=5, **figures)
    with pytest.raises(ValueError, match="inner_bandwidth_bytes_per_s must be positive"):
        RankGroup(num_ranks=1, most_per_node=1, **figures | {"inner_bandwidth_bytes_per_s": 0.0})
    uneven = RankGroup(num_ranks=5, num_nodes=2, most_per_node=3, **figures)
    with pytest.raises(ValueError, match="all-to-all: ranks must be as many on each of 2 nodes"):
        group_all_to_all_s(1.0, uneven)
