"""Sums of gradients over replicas against laws that hold for any world, workload and plan."""

import dataclasses

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from sending import transports
from sharing import (
    FEW,
    parallel_cases,
    sums,
)
from strategies import corrections, topologies, workloads

from des import (
    EVERY_STEP,
    GradientExchange,
    Placement,
    Plan,
    simulate,
)
from des.costs.message_times import quickest_message_s
from des.plan.buckets import buckets_of
from des.plan.synchronisation import all_reduce_bytes

AT_THE_END = GradientExchange(overlapped=False)
ALONE = {"replicas": (), "shares": (), "exchange": GradientExchange()}


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(min_domains=2, fully=True), found=corrections(), step=st.integers(0, 2))
def test_replicas_on_links_of_their_own_compute_as_if_alone(case, found, step):
    """The very same passes as each placement with its share of the microbatches."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, found, step=step)

    first_stage = 0
    shares = chosen.microbatches_of_replicas(workload.num_microbatches)
    for placement, num_microbatches in zip(chosen.placements, shares, strict=True):
        single = dataclasses.replace(chosen, placement=placement, **ALONE)
        share = dataclasses.replace(workload, num_microbatches=num_microbatches)
        alone = simulate(topology, share, single, found, step=step)
        last_stage = first_stage + len(alone.stages)
        own = [span for span in result.spans if first_stage <= span.stage < last_stage]
        assert [(span.stage - first_stage, *span[1:]) for span in own] == list(alone.spans)
        first_stage = last_stage
    assert first_stage == len(result.stages)


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases(min_domains=2, fully=True), step=st.integers(0, 1))
def test_replicas_send_the_least_that_an_all_reduce_can_do_with(case, step):
    """``2 (R - 1) / R`` of what is due on the mean, on top of the messages of its pipeline."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, step=step)

    num_replicas = len(chosen.placements)
    due = step == 1 or chosen.synchronisation == EVERY_STEP
    num_values = sum(workload.num_parameters) if due else 0.0
    shares = chosen.microbatches_of_replicas(workload.num_microbatches)
    messages = sum(
        2 * placement.num_borders * share
        for placement, share in zip(chosen.placements, shares, strict=True)
    )
    message_bytes = workload.message_bytes / chosen.activation_compression
    summed_bytes = num_replicas * all_reduce_bytes(num_values, 16.0, num_replicas)
    assert result.communication_cost_bytes == pytest.approx(messages * message_bytes + summed_bytes)
    num_sums = sum(one.between_domains for one in buckets_of(workload, chosen, step))
    per_round = 1 if chosen.exchange.tree else num_replicas
    num_rounds = (1 if chosen.exchange.sharded else 2) * (num_replicas - 1)
    assert len(sums(result)) == num_sums * per_round * num_rounds


@settings(max_examples=examples(FEW), deadline=None)
@given(
    case=parallel_cases(min_domains=2),
    transport=transports(),
    movement=st.none() | movements(),
    found=corrections(),
)
def test_what_is_sent_does_not_depend_on_how_links_share_or_move(case, transport, movement, found):
    """Every sum ends, and each link carries the same messages and bytes."""
    topology, workload, chosen = case
    moving = dataclasses.replace(topology, transport=transport, movement=movement)

    plain = simulate(topology, workload, chosen)
    result = simulate(moving, workload, chosen, found)
    for carried, expected in zip(result.links, plain.links, strict=True):
        assert carried.num_messages == expected.num_messages
        assert carried.num_bytes == pytest.approx(expected.num_bytes)
    done, expected = (sorted(one[:3] for one in each.spans) for each in (result, plain))
    assert done == expected


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases(min_domains=2), found=corrections())
def test_no_sum_starts_before_its_gradients_or_ends_before_its_steps(case, found):
    """From the last pass of any replica on, all steps of the ring have still to be done.

    The bucket of a stage's first layers is ready when its last pass ends, not before. Weights of a
    sharded optimiser are gathered when all gradients have been scattered.
    """
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, found)
    stages = chosen.stages
    last_end_s = {span.stage: span.end_s for span in result.spans if span.kind in "BW"}

    for number, bucket in enumerate(buckets_of(workload, chosen, 0)):
        domains = [stages[index].domain for index in bucket.stages]
        if not bucket.between_domains or chosen.exchange.tree:
            continue
        hops_s = [
            quickest_message_s(topology, *ends, bucket.num_bytes / len(domains), found)[0]
            for ends in zip(domains, [*domains[1:], domains[0]], strict=True)
        ]
        for member, index in enumerate(bucket.stages):
            if bucket.first_layer != stages[index].first_layer:
                continue
            ready_s = last_end_s[index]
            own = [
                move for move in sums(result) if (move.stage, move.microbatch) == (index, number)
            ]
            assert min(move.start_s for move in own) >= ready_s
            num_rounds = (2 if bucket.half is None else 1) * (len(domains) - 1)
            steps = range(member, member + num_rounds)
            way_s = sum(hops_s[step % len(domains)] for step in steps)
            assert result.makespan_s >= (ready_s + way_s) * (1 - 1e-9)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(min_domains=2, fully=True))
def test_without_overlap_every_sum_starts_after_the_passes_of_its_replica(case):
    topology, workload, chosen = case
    chosen = dataclasses.replace(chosen, exchange=AT_THE_END, synchronisation=EVERY_STEP)
    result = simulate(topology, workload, chosen)

    replica_of = [
        replica
        for replica, placement in enumerate(chosen.placements)
        for _ in dataclasses.replace(chosen, placement=placement, **ALONE).stages
    ]
    for move in sums(result):
        mates = [s for s in result.spans if replica_of[s.stage] == replica_of[move.stage]]
        assert move.start_s >= max(span.end_s for span in mates)


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(
    topology=topologies(min_domains=4, fully=True),
    workload=workloads(),
    schedule=st.sampled_from(["gpipe", "1f1b", "zb_h1"]),
    draw=st.data(),
)
def test_overlap_never_hurts_where_every_sum_has_links_of_its_own(
    topology, workload, schedule, draw
):
    """Two replicas that part the layers at the same place, and one bucket per stage."""
    cut = draw.draw(st.integers(1, workload.num_layers - 1))
    workload = dataclasses.replace(workload, num_microbatches=workload.num_microbatches + 1)
    counts = cut, workload.num_layers - cut
    early_s, late_s = (
        simulate(
            topology,
            workload,
            Plan(
                placement=Placement.contiguous((0, 1), counts),
                replicas=(Placement.contiguous((2, 3), counts),),
                schedule=schedule,
                exchange=GradientExchange(overlapped=overlapped),
            ),
        ).makespan_s
        for overlapped in (True, False)
    )
    assert early_s <= late_s
