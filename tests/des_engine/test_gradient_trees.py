"""Sums of gradients up and down a tree of domains against hand-computed cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import equal_world, model, replicas, sums
from strategies import world

from des import GradientExchange, Placement, Plan, Transfer, simulate
from des.plan.synchronisation import StreamingDiLoCo
from des.simulation.iteration import exchange_behind_s

STAR = GradientExchange(tree=(0, 0))
IN_A_STAR = world("ABC", dict.fromkeys(["AB", "BA", "AC", "CA"], (10.0, 0.5)))
"""A in the middle of B and C, which no link joins."""


def test_a_star_sums_up_and_down_by_hand():
    """3 s of work each, then 20 bytes from B and C to A, and 20 bytes back: 2.5 s each way."""
    result = simulate(IN_A_STAR, model(1, 3, 10.0), replicas([0], [1], [2], exchange=STAR))

    assert sums(result) == [
        Transfer(0, 0, "G", 0, 5.5, 7.5, 8),
        Transfer(1, 0, "G", 0, 5.5, 7.5, 8),
        Transfer(2, 1, "G", 0, 3, 5, 5.5),
        Transfer(3, 2, "G", 0, 3, 5, 5.5),
    ]
    assert result.makespan_s == 8


def test_a_ring_in_a_star_takes_longer_as_one_way_leads_through_the_middle():
    """Four rounds of 20 / 3 bytes: B waits for A in each, A for C, and C for two hops from B."""
    job = model(1, 3, 10.0)
    ring, tree = (
        simulate(IN_A_STAR, job, replicas([0], [1], [2], exchange=exchange)).makespan_s
        for exchange in (GradientExchange(), STAR)
    )
    step_s = 20 / 3 / 10 + 0.5
    assert ring >= 3 + 4 * step_s + 2 * step_s > tree == 8


def test_the_middle_waits_for_the_last_one_by_hand():
    """C has two microbatches, 6 s: its sum is in A at 8.5, where that of B has been since 5.5."""
    chosen = replicas([0], [1], [2], exchange=STAR, shares=(1, 1, 2))

    assert simulate(IN_A_STAR, model(1, 4, 10.0), chosen).makespan_s == 8.5 + 2.5


def test_a_chain_goes_up_and_down_hop_by_hop_by_hand():
    """C to B, B to A, and the same back: four messages one after the other."""
    chosen = replicas([0], [1], [2], exchange=GradientExchange(tree=(0, 1)))

    result = simulate(equal_world(3, link=(10.0, 0.5)), model(1, 3, 10.0), chosen)
    assert result.makespan_s == 3 + 4 * 2.5


def test_buckets_follow_each_other_along_a_tree_by_hand():
    """Two layers of 20 bytes, ready at 4 and 6: the second goes up while the first comes down.

    Layer 1 goes up 4-6, in A at 6.5, comes down 6.5-8.5, there at 9. Layer 0 goes up 6-8, in A at
    8.5, comes down 8.5-10.5, there at 11.
    """
    exchange = GradientExchange(tree=(0, 0), bucket_bytes=20.0)
    chosen = replicas([0, 0], [1, 1], [2, 2], exchange=exchange)

    result = simulate(IN_A_STAR, model(2, 3, 10.0), chosen)
    assert [move[4:] for move in sums(result) if move.link == 2] == [(4, 6, 6.5), (6, 8, 8.5)]
    assert [move[4:] for move in sums(result) if move.link == 0] == [(6.5, 8.5, 9), (8.5, 10.5, 11)]
    assert result.makespan_s == 11


@given(num_replicas=st.integers(2, 8), num_parameters=st.floats(1.0, 1e3))
def test_a_star_needs_two_messages_whatever_the_number_of_replicas(num_replicas, num_parameters):
    """A ring sends ``2 (R - 1)`` parts of ``1 / R`` in a row, a star two whole ones."""
    topology = equal_world(num_replicas, link=(10.0, 0.5))
    star = GradientExchange(tree=(0,) * (num_replicas - 1))
    chosen = replicas(*([domain] for domain in range(num_replicas)), exchange=star)

    result = simulate(topology, model(1, num_replicas, num_parameters), chosen)
    assert result.makespan_s == pytest.approx(3 + 2 * (2 * num_parameters / 10 + 0.5))
    assert result.communication_cost_bytes == pytest.approx(
        2 * (num_replicas - 1) * 2 * num_parameters
    )


def test_an_exchange_behind_the_next_steps_goes_along_the_tree_by_hand():
    mode = StreamingDiLoCo(steps_between=1, layers_per_fragment=1, overlap_steps=1)
    chosen = replicas([0], [1], [2], exchange=STAR, synchronisation=mode)

    assert exchange_behind_s(IN_A_STAR, model(1, 3, 10.0), chosen, 0) == 5


@pytest.mark.parametrize("tree", [(1,), (-1,), (0, 2), [0], (True,), (0.0,)])
def test_a_tree_names_earlier_replicas(tree):
    with pytest.raises(ValueError, match="tree must be a tuple of one earlier replica, from 0"):
        GradientExchange(tree=tree)


def test_a_tree_is_of_all_replicas():
    one, other = (Placement(domain_of_layer=(domain,)) for domain in range(2))
    with pytest.raises(
        ValueError, match=r"one replica for each of 1 further ones, .* got \(0, 0\)"
    ):
        Plan(placement=one, replicas=(other,), exchange=STAR)
