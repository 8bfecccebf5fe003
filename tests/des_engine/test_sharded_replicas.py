"""Optimiser state shared by replicas: scatter, update and gather by hand, and what each holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import equal_world, model, replicas, sums

from des import (
    DiLoCo,
    GradientExchange,
    InfeasiblePlacementError,
    Parallelism,
    Plan,
    StreamingDiLoCo,
    Topology,
    Transfer,
    check_memory,
    domain_memory,
    simulate,
)

SHARDED = GradientExchange(sharded=True)
IN_TWO = ([0], [1])
TWO = equal_world(2, link=(10.0, 0.5))
"""Two domains, joined by 10 bytes a second and 0.5 s."""


def test_two_replicas_scatter_and_gather_half_of_everything_by_hand():
    """3 s of work; 10 of 20 bytes of gradients, 1.5 s, and then 10 of weights, 1.5 s."""
    result = simulate(TWO, model(1, 2, 10.0), replicas(*IN_TWO, exchange=SHARDED))

    assert sums(result) == [
        Transfer(0, 0, "G", 0, 3, 4, 4.5),
        Transfer(0, 0, "G", 1, 4.5, 5.5, 6),
        Transfer(1, 1, "G", 0, 3, 4, 4.5),
        Transfer(1, 1, "G", 1, 4.5, 5.5, 6),
    ]
    assert (result.makespan_s, result.exposed_exchange_s) == (6, 3)


def test_weights_of_all_buckets_wait_for_the_last_gradients_by_hand():
    """Gradients are made at 4 and 6, scattered at 5.5 and 7.5; weights follow at 9 and 10.

    The all-reduce is done half a second earlier: of layer 1 it has done all by 7.
    """
    buckets = GradientExchange(bucket_bytes=20.0, sharded=True)
    chosen = replicas([0, 0], [1, 1], exchange=buckets)
    result = simulate(TWO, model(2, 2, 10.0), chosen)

    assert [move[3:] for move in sums(result) if move.link == 0] == [
        (0, 4, 5, 5.5),
        (1, 6, 7, 7.5),
        (2, 7.5, 8.5, 9),
        (3, 8.5, 9.5, 10),
    ]
    assert result.makespan_s == 10
    whole = replace(chosen, exchange=replace(buckets, sharded=False))
    assert simulate(TWO, model(2, 2, 10.0), whole).makespan_s == 9.5


@given(
    num_replicas=st.integers(2, 8),
    num_parameters=st.floats(1.0, 1e3),
    precision=st.sampled_from(["bf16", "fp32"]),
)
def test_halves_of_equal_rings_add_up_to_the_closed_form(num_replicas, num_parameters, precision):
    """``R - 1`` rounds of ``1 / R`` of the gradients, as many of the weights, 2 bytes each."""
    topology = equal_world(num_replicas, link=(10.0, 0.5))
    job = replace(model(1, num_replicas, num_parameters), gradient_precision=precision)
    chosen = replicas(*([domain] for domain in range(num_replicas)), exchange=SHARDED)

    result = simulate(topology, job, chosen)
    rounds, num_bytes = num_replicas - 1, (job.gradient_bytes + 2) * num_parameters
    passed_s = rounds * (num_bytes / num_replicas / 10.0 + 2 * 0.5)
    assert result.makespan_s == pytest.approx(3 + passed_s)
    assert result.communication_cost_bytes == pytest.approx(rounds * num_bytes)
    if precision == "bf16":
        ring = simulate(topology, job, replace(chosen, exchange=GradientExchange()))
        assert result.communication_cost_bytes == pytest.approx(ring.communication_cost_bytes)
        assert result.makespan_s == pytest.approx(ring.makespan_s)


def test_copies_inside_scatter_before_and_gather_after_the_domains_by_hand():
    """1.5 s of work on two GPUs; inside and between domains half a sum takes 1.5 s each."""
    topology = equal_world(2, link=(10.0, 0.5), inner=(10.0, 0.5), num_gpus=2)
    chosen = replicas(*IN_TWO, exchange=SHARDED, parallelism=(Parallelism(data=2),) * 2)
    result = simulate(topology, model(1, 2, 10.0), chosen)

    assert [move[4:] for move in sums(result) if move.link == 0] == [(3, 4, 4.5), (4.5, 5.5, 6)]
    assert result.makespan_s == 7.5


def with_memory(num_domains: int, memory_bytes: float) -> Topology:
    """Equal domains of one GPU with this memory."""
    topology = equal_world(num_domains)
    domains = (replace(domain, gpu_memory_bytes=memory_bytes) for domain in topology.domains)
    return replace(topology, domains=tuple(domains))


@given(num_replicas=st.integers(2, 8), num_parameters=st.floats(1.0, 1e3))
def test_each_replica_holds_weights_gradients_and_its_part_of_the_optimiser(
    num_replicas, num_parameters
):
    """``4 + 12 / R`` bytes a parameter instead of 16."""
    topology = equal_world(num_replicas)
    chosen = replicas(*([domain] for domain in range(num_replicas)), exchange=SHARDED)

    for memory in domain_memory(topology, model(1, num_replicas, num_parameters), chosen):
        assert memory.model_state_bytes == pytest.approx((4 + 12 / num_replicas) * num_parameters)


def test_what_fits_sharded_need_not_fit_whole():
    """A layer of 10 parameters: 160 bytes whole, 100 bytes as one of two copies."""
    topology, job = with_memory(2, 159.0), model(1, 2, 10.0)
    chosen = replicas(*IN_TWO, exchange=SHARDED)

    check_memory(topology, job, chosen)
    with pytest.raises(InfeasiblePlacementError, match="must hold at most"):
        check_memory(topology, job, replace(chosen, exchange=GradientExchange()))
    with pytest.raises(InfeasiblePlacementError, match="must hold at most"):
        check_memory(with_memory(2, 99.0), job, chosen)


@pytest.mark.parametrize(
    ("sharding", "whole_bytes"),
    [("none", 24), ("optimiser", 12), ("gradients", 12), ("parameters", 12)],
)
def test_copies_inside_share_the_part_of_their_replica(sharding, whole_bytes):
    """Two GPUs with half an optimiser state, 6 bytes a parameter, between them."""
    topology, job = equal_world(2, num_gpus=2), model(1, 2, 10.0)
    shared = (Parallelism(data=2, sharding=sharding),) * 2
    held, whole = (
        domain_memory(topology, job, replicas(*IN_TWO, exchange=each, parallelism=shared))
        for each in (SHARDED, GradientExchange())
    )

    for one, other in zip(held, whole, strict=True):
        saved_bytes = other.model_state_bytes - one.model_state_bytes
        assert saved_bytes == pytest.approx((whole_bytes - 6) * 10.0)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (DiLoCo(steps_between=2), "steps_between=2 and overlap_steps=0"),
        (StreamingDiLoCo(steps_between=1), "steps_between=1 and overlap_steps=1"),
    ],
)
def test_only_replicas_that_agree_after_every_step_may_share_the_optimiser(mode, said):
    with pytest.raises(ValueError, match=f"must not be sharded unless .*{said}"):
        replicas(*IN_TWO, exchange=SHARDED, synchronisation=mode)


def test_one_copy_has_no_other_to_share_with():
    with pytest.raises(ValueError, match="must not be sharded where replicas are none"):
        Plan(placement=replicas([0]).placement, exchange=SHARDED)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sharded": True, "tree": (0,)}, r"tree must be empty where sharded, .* got \(0,\)"),
        ({"sharded": 1}, "sharded must be True or False, got 1"),
    ],
)
def test_a_sharded_exchange_is_a_ring(fields, message):
    with pytest.raises(ValueError, match=message):
        GradientExchange(**fields)
