"""Buckets of gradients summed up after a step: every layer's, once, in the right size."""

import dataclasses

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, parallel_cases, with_parameters
from strategies import unit_workload

from des import (
    EVERY_STEP,
    DiLoCo,
    GradientExchange,
    Parallelism,
    Placement,
    Plan,
    StreamingDiLoCo,
)
from des.plan.buckets import Bucket, buckets_behind, buckets_of

SIX_LAYERS = with_parameters(unit_workload([(1, 1)] * 6, num_microbatches=2), 10.0)
"""20 bytes of gradients a layer."""

TWO_REPLICAS = Plan(
    placement=Placement(domain_of_layer=(0, 0, 1, 1, 1, 1)),
    replicas=(Placement(domain_of_layer=(2, 2, 2, 2, 3, 3)),),
)
"""Borders at layers 2 and 4: the replicas hold 0-1, 2-3 and 4-5 each in one stage."""


def pieces(buckets):
    """Layers, bytes and stages of each bucket."""
    return [
        (list(range(one.first_layer, one.first_layer + one.num_layers)), one.num_bytes, one.stages)
        for one in buckets
    ]


def changed(plan, **fields):
    return dataclasses.replace(plan, **fields)


def test_buckets_end_where_a_stage_of_any_replica_ends_by_hand():
    assert pieces(buckets_of(SIX_LAYERS, TWO_REPLICAS, 0)) == [
        ([4, 5], 40.0, (1, 3)),
        ([2, 3], 40.0, (1, 2)),
        ([0, 1], 40.0, (0, 2)),
    ]


@pytest.mark.parametrize(
    ("bucket_bytes", "layers"),
    [
        (1.0, [[5], [4], [3], [2], [1], [0]]),  # a layer is not divided
        (39.9, [[5], [4], [3], [2], [1], [0]]),
        (40.0, [[4, 5], [2, 3], [0, 1]]),
        (1e9, [[4, 5], [2, 3], [0, 1]]),
    ],
)
def test_buckets_hold_as_many_layers_as_fit_by_hand(bucket_bytes, layers):
    chosen = changed(TWO_REPLICAS, exchange=GradientExchange(bucket_bytes=bucket_bytes))

    assert [own for own, _, _ in pieces(buckets_of(SIX_LAYERS, chosen, 0))] == layers


def six_layers(*sizes):
    """Layers of these numbers of parameters."""
    layers = zip(SIX_LAYERS.layers, sizes, strict=True)
    return dataclasses.replace(
        SIX_LAYERS,
        layers=tuple(dataclasses.replace(layer, num_parameters=size) for layer, size in layers),
    )


def test_buckets_of_unequal_layers_are_filled_from_the_last_layer_by_hand():
    """Gradients of 20, 40, 20, 20, 60 and 20 bytes, 60 a bucket."""
    workload = six_layers(10.0, 20.0, 10.0, 10.0, 30.0, 10.0)
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * 6),
        replicas=(Placement(domain_of_layer=(1,) * 6),),
        exchange=GradientExchange(bucket_bytes=60.0),
    )

    assert pieces(buckets_of(workload, chosen, 0)) == [
        ([5], 20.0, (0, 1)),
        ([4], 60.0, (0, 1)),
        ([2, 3], 40.0, (0, 1)),
        ([0, 1], 60.0, (0, 1)),
    ]


def test_replicas_inside_a_device_sum_up_without_the_wan_by_hand():
    """Domain 0 has two replicas of a device, domain 1 none."""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 0, 0, 1, 1, 0)),
        parallelism=(Parallelism(data=2), Parallelism(tensor=2)),
    )
    buckets = buckets_of(SIX_LAYERS, chosen, 0)

    assert pieces(buckets) == [([0, 1, 2], 60.0, (0,)), ([5], 20.0, (2,))]
    assert not any(bucket.between_domains for bucket in buckets)
    assert buckets_of(SIX_LAYERS, changed(chosen, parallelism=()), 0) == ()


# What is due when.


def test_diloco_sums_up_between_domains_at_due_steps_only():
    """All of it after steps 2 and 5, of which it sends 4 bits a value instead of 16."""
    chosen = changed(TWO_REPLICAS, synchronisation=DiLoCo(steps_between=3, bits_per_value=4.0))

    found = [buckets_of(SIX_LAYERS, chosen, step) for step in range(6)]
    assert [bool(buckets) for buckets in found] == [False, False, True] * 2
    assert pieces(found[2]) == [
        ([4, 5], 10.0, (1, 3)),
        ([2, 3], 10.0, (1, 2)),
        ([0, 1], 10.0, (0, 2)),
    ]
    assert all(buckets_behind(SIX_LAYERS, chosen, step) == () for step in range(6))


def test_replicas_inside_a_device_sum_up_after_every_step():
    """What goes over the WAN includes what is inside, so there it is not done twice."""
    chosen = changed(
        TWO_REPLICAS,
        synchronisation=DiLoCo(steps_between=2),
        parallelism=(Parallelism(data=2), *(Parallelism(),) * 3),
    )

    before, due = (buckets_of(SIX_LAYERS, chosen, step) for step in range(2))
    assert pieces(before) == [([0, 1], 40.0, (0,))]
    assert [bucket.between_domains for bucket in due] == [True] * 3


def test_streaming_fragments_are_due_one_after_the_other_by_hand():
    """Six layers in fragments (0, 2, 4) and (1, 3, 5), each every four steps, the next step waits.

    Strided layers are no neighbours, so each is a bucket. Layers that are not due are summed up
    inside.
    """
    streaming = StreamingDiLoCo(steps_between=4, layers_per_fragment=3, overlap_steps=0)
    chosen = changed(
        TWO_REPLICAS,
        synchronisation=streaming,
        parallelism=(Parallelism(data=2), *(Parallelism(),) * 3),
    )

    found = [buckets_of(SIX_LAYERS, chosen, step) for step in range(4)]
    assert pieces(found[0]) == pieces(found[2]) == [([0, 1], 40.0, (0,))]
    assert pieces(found[1]) == [
        ([4], 20.0, (1, 3)), ([2], 20.0, (1, 2)), ([0], 20.0, (0, 2)), ([1], 20.0, (0,)),
    ]  # fmt: skip
    assert pieces(found[3]) == [
        ([5], 20.0, (1, 3)), ([3], 20.0, (1, 2)), ([1], 20.0, (0, 2)), ([0], 20.0, (0,)),
    ]  # fmt: skip


def test_what_goes_on_behind_the_next_steps_is_no_part_of_this_one():
    streaming = StreamingDiLoCo(steps_between=4, layers_per_fragment=3, overlap_steps=1)
    chosen = changed(TWO_REPLICAS, synchronisation=streaming)

    waiting = changed(chosen, synchronisation=dataclasses.replace(streaming, overlap_steps=0))
    for step in range(4):
        assert buckets_of(SIX_LAYERS, chosen, step) == ()
        behind = buckets_behind(SIX_LAYERS, chosen, step)
        assert {bucket.inside for bucket in behind} <= {"done"}
        assert behind == tuple(
            dataclasses.replace(bucket, inside="done")
            for bucket in buckets_of(SIX_LAYERS, waiting, step)
        )
        assert bool(buckets_behind(SIX_LAYERS, chosen, step)) == (step in {1, 3})


@pytest.mark.parametrize("step", [0, 5])
def test_one_replica_has_nothing_to_exchange(step):
    alone = changed(TWO_REPLICAS, replicas=(), synchronisation=StreamingDiLoCo(steps_between=1))

    assert buckets_of(SIX_LAYERS, changed(alone, synchronisation=EVERY_STEP), step) == ()
    assert buckets_behind(SIX_LAYERS, alone, step) == ()


def test_a_step_before_the_first_is_refused():
    with pytest.raises(ValueError, match="synchronisation: step must be at least 0, got -1"):
        buckets_of(SIX_LAYERS, TWO_REPLICAS, -1)


# Laws for any plan.


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases(), step=st.integers(0, 5), fragments=st.integers(1, 3))
def test_every_layer_is_summed_up_once_where_it_is_due(case, step, fragments):
    """Over the WAN in one bucket if it is due, else within each device that has replicas.

    Replicas that shard the weights scatter gradients within the passes instead. Where the optimiser
    is sharded, gradients are scattered over the WAN, and the weights of the same buckets gathered.
    """
    _, workload, chosen = case
    if fragments > 1 and not chosen.exchange.sharded:
        chosen = changed(
            chosen,
            synchronisation=StreamingDiLoCo(
                steps_between=3, layers_per_fragment=fragments, overlap_steps=0
            ),
        )
    stages = chosen.stages
    buckets = buckets_of(workload, chosen, step)
    gathered = [one for one in buckets if one.half == "gather"]
    scattered = [layers_of(one) for one in buckets if one.half == "scatter"]
    assert scattered == [layers_of(one) for one in gathered]
    assert bool(gathered) == chosen.exchange.sharded
    buckets = buckets[: len(buckets) - len(gathered)]
    over_wan = [layer for one in buckets if one.between_domains for layer in layers_of(one)]

    assert len(over_wan) == len(set(over_wan))
    if chosen.replicas and chosen.synchronisation == EVERY_STEP:
        assert sorted(over_wan) == list(range(workload.num_layers))
    inside = sorted(
        (one.stages[0], layer)
        for one in buckets
        if not one.between_domains
        for layer in layers_of(one)
    )
    assert inside == [
        (stage.index, layer)
        for stage in stages
        if (sharing := chosen.parallelism_of(stage.domain)) is not None and sharing.data > 1
        if not sharing.shards("parameters")
        for layer in range(workload.num_layers)[stage.layers]
        if layer not in over_wan
    ]


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases())
def test_a_bucket_belongs_to_one_stage_of_each_replica_and_is_no_larger_than_allowed(case):
    _, workload, chosen = case
    stages = chosen.stages
    limit = chosen.exchange.bucket_bytes

    for one in buckets_of(workload, chosen, 0):
        parameters = sum(workload.num_parameters[layer] for layer in layers_of(one))
        assert one.num_bytes == pytest.approx(2 * parameters)
        assert limit is None or one.num_layers == 1 or 2 * parameters <= limit * (1 + 1e-12)
        assert len(one.stages) == (len(chosen.placements) if one.between_domains else 1)
        for index in one.stages:
            own = range(workload.num_layers)[stages[index].layers]
            assert set(layers_of(one)) <= set(own)


def test_layers_next_to_large_ones_keep_their_parameters():
    """A difference of sums over the model would give 0.0177 as 0.01769996."""
    workload = six_layers(1e9, 0.0177, 1e9, 0.1, 0.2, 0.3)
    one_each = changed(TWO_REPLICAS, exchange=GradientExchange(bucket_bytes=1.0))

    found = pieces(buckets_of(workload, one_each, 0))
    assert [num_bytes for _, num_bytes, _ in found] == [1.0, 0.2, 2e9, 0.0354, 2e9]


def layers_of(bucket: Bucket) -> range:
    return range(bucket.first_layer, bucket.first_layer + bucket.num_layers)
