"""Collectives take the steps and bytes of their algorithms, carried out rank by rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.costs.collectives import (
    all_gather_s,
    hierarchical_all_reduce_s,
    reduce_scatter_s,
    ring_all_reduce_s,
)

sizes = st.floats(0.0, 1e12)
bandwidths = st.floats(1e6, 1e12)
latencies = st.floats(0.0, 1.0)
ranks = st.integers(1, 64)


def test_four_ranks_by_hand():
    """8 GB in parts of 2 GB at 1 GB/s: 2 s a step, 3 steps for each half."""
    assert all_gather_s(8e9, 4, 1e9) == 6.0
    assert reduce_scatter_s(8e9, 4, 1e9, latency_s=1.0) == 9.0
    assert ring_all_reduce_s(8e9, 4, 1e9, latency_s=1.0) == 18.0


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 7])
def test_a_ring_carried_out_on_arrays_takes_the_time_of_the_formula(num_ranks):
    """Each step, every rank passes one part on; after the steps counted, all hold the sum."""
    own = np.random.default_rng(0).integers(0, 100, size=(num_ranks, num_ranks * 5))
    parts = [list(np.split(row, num_ranks)) for row in own]
    elapsed_s = 0.0
    for phase in ("reduce", "gather"):
        for step in range(num_ranks - 1):
            first = step if phase == "reduce" else step - 1
            sent = [parts[rank][(rank - first) % num_ranks] for rank in range(num_ranks)]
            for rank in range(num_ranks):
                place = (rank - 1 - first) % num_ranks
                received = sent[rank - 1]
                kept = parts[rank][place] if phase == "reduce" else 0
                parts[rank][place] = kept + received
            elapsed_s += 0.25 + sent[0].nbytes / 40.0

    for row in parts:
        np.testing.assert_array_equal(np.concatenate(row), own.sum(axis=0))
    payload_bytes = own[0].nbytes
    expected = ring_all_reduce_s(payload_bytes, num_ranks, 40.0, latency_s=0.25)
    assert elapsed_s == pytest.approx(expected)


@given(payload=sizes, num_ranks=ranks, bandwidth=bandwidths, latency=latencies)
def test_an_all_reduce_is_the_least_traffic_of_a_rank_and_its_latencies(
    payload, num_ranks, bandwidth, latency
):
    """A rank sends 2 (n - 1) / n of the buffer, in 2 (n - 1) messages."""
    steps = 2 * (num_ranks - 1)
    expected = steps * latency + steps / num_ranks * payload / bandwidth

    assert ring_all_reduce_s(payload, num_ranks, bandwidth, latency) == pytest.approx(expected)


def _hierarchical_s(payload, num_domains, ranks_per_domain, hops):
    inner, outer = hops
    return hierarchical_all_reduce_s(
        payload,
        num_domains=num_domains,
        ranks_per_domain=ranks_per_domain,
        inner_bandwidth_bytes_per_s=inner[0],
        inner_latency_s=inner[1],
        outer_bandwidth_bytes_per_s=outer[0],
        outer_latency_s=outer[1],
    )


hops = st.tuples(st.tuples(bandwidths, latencies), st.tuples(bandwidths, latencies))


@given(payload=sizes, num_ranks=ranks, hops=hops)
def test_one_domain_or_one_rank_a_domain_leaves_one_ring(payload, num_ranks, hops):
    """Without a second level the hierarchical all-reduce is a ring over the other."""
    inner, outer = hops

    assert _hierarchical_s(payload, 1, num_ranks, hops) == pytest.approx(
        ring_all_reduce_s(payload, num_ranks, *inner)
    )
    assert _hierarchical_s(payload, num_ranks, 1, hops) == pytest.approx(
        ring_all_reduce_s(payload, num_ranks, *outer)
    )


def test_two_levels_by_hand():
    """8 GB, 2 x 4 ranks: 3 (0.5 + 1) s inside, 2 (4 + 8) s between, 3 (0.5 + 1) s inside."""
    hops = ((2e9, 0.5), (5e8, 4.0))

    assert _hierarchical_s(8e9, 2, 4, hops) == pytest.approx(4.5 + 24.0 + 4.5)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("payload_bytes", (-1.0, 2, 1.0, 0.0)),
        ("payload_bytes", (float("nan"), 2, 1.0, 0.0)),
        ("num_ranks", (1.0, 0, 1.0, 0.0)),
        ("num_ranks", (1.0, 2.5, 1.0, 0.0)),
        ("bandwidth_bytes_per_s", (1.0, 2, 0.0, 0.0)),
        ("latency_s", (1.0, 2, 1.0, -1.0)),
    ],
)
@pytest.mark.parametrize("collective", [all_gather_s, reduce_scatter_s, ring_all_reduce_s])
def test_an_impossible_argument_is_named(collective, field, arguments):
    with pytest.raises(ValueError, match=f"collective: {field} must be"):
        collective(*arguments)
