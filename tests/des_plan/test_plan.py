"""Plans: what they refuse, and the stages and devices that they make of a placement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharing import parallel_cases, parallelisms
from strategies import free_world, placements, plan, unit_workload

from des import GradientExchange, Parallelism, Placement, Plan
from des.plan.placement import device_numbers
from des.plan.plan import replica_stages, split_evenly


def shares(*texts: str) -> tuple[Parallelism, ...]:
    """One parallelism a domain from texts such as ``"2x1x1"``."""
    return tuple(Parallelism.parse(text) for text in texts)


def layers_of(
    placement: Placement, parallelism: tuple[Parallelism, ...]
) -> list[tuple[int, int, list[int]]]:
    """Domain, device and layers of each stage."""
    layers = range(len(placement.domain_of_layer))
    return [
        (stage.domain, stage.device, list(layers[stage.layers]))
        for stage in replica_stages(placement, parallelism)
    ]


# Stages and devices.


def test_a_domain_of_two_devices_halves_its_layers_by_hand():
    """Layers 0 to 4 on domain 1, whose first device takes the odd one; 5 and 6 on domain 0."""
    placement = Placement(domain_of_layer=(1, 1, 1, 1, 1, 0, 0))

    assert layers_of(placement, shares("1x1x1", "1x1x2")) == [
        (1, 0, [0, 1, 2]),
        (1, 1, [3, 4]),
        (0, 0, [5, 6]),
    ]


def test_a_domain_that_comes_back_uses_its_devices_again_by_hand():
    placement = Placement(domain_of_layer=(0, 0, 1, 0, 0))
    stages = replica_stages(placement, shares("1x1x2", "1x1x1"))

    assert layers_of(placement, shares("1x1x2", "1x1x1")) == [
        (0, 0, [0]),
        (0, 1, [1]),
        (1, 0, [2]),
        (0, 0, [3]),
        (0, 1, [4]),
    ]
    assert [stage.index for stage in stages] == [0, 1, 2, 3, 4]
    assert device_numbers(stages) == (0, 1, 2, 0, 1)


def test_chunks_go_round_or_turn_by_hand():
    """Six layers on two devices of two chunks: two layers each for the first two chunks."""
    placement = Placement(domain_of_layer=(0,) * 6)
    parts = [[0, 1], [2, 3], [4], [5]]

    for text, devices in (("1x1x2v2", (0, 1, 0, 1)), ("1x1x2w2", (0, 1, 1, 0))):
        assert layers_of(placement, shares(text)) == [
            (0, device, part) for device, part in zip(devices, parts, strict=True)
        ]


def test_more_chunks_than_layers_in_a_row_are_refused():
    message = r"pipeline of domain 0 must be at most the 3 layers .*, got 2 devices of 2 chunks"
    with pytest.raises(ValueError, match=message):
        replica_stages(Placement(domain_of_layer=(0,) * 3), shares("1x1x2v2"))


def test_more_devices_than_layers_in_a_row_are_refused():
    placement = Placement(domain_of_layer=(0, 0, 1, 0))

    message = "pipeline of domain 0 must be at most the 1 layers in a row that it holds, got 2"
    with pytest.raises(ValueError, match=message):
        replica_stages(placement, shares("1x1x2", "1x1x1"))


@given(placement=placements(3, 6), draw=st.data())
def test_one_device_a_domain_leaves_the_stages_of_the_placement(placement, draw):
    """However many GPUs share its layers."""
    parallelism = tuple(draw.draw(parallelisms(16, max_devices=1)) for _ in range(3))

    assert replica_stages(placement, parallelism) == placement.stages
    assert Plan(placement=placement, parallelism=parallelism).stages == placement.stages


@given(case=parallel_cases())
def test_the_stages_of_every_replica_hold_each_layer_once_and_in_order(case):
    _, workload, chosen = case
    stages = chosen.stages

    assert [stage.index for stage in stages] == list(range(len(stages)))
    layers = [layer for stage in stages for layer in range(workload.num_layers)[stage.layers]]
    assert layers == list(range(workload.num_layers)) * len(chosen.placements)
    domains = [stage.domain for stage in stages for _ in range(stage.num_layers)]
    assert domains == [one for each in chosen.placements for one in each.domain_of_layer]


@given(case=parallel_cases())
def test_devices_are_as_many_as_the_domains_in_use_have_and_equally_loaded(case):
    """The devices of a domain differ by a layer at most for each time that it comes up."""
    _, _, chosen = case
    stages = chosen.stages
    numbers = device_numbers(stages)

    pairs = [(stage.domain, stage.device) for stage in stages]
    assert sorted(set(numbers)) == list(range(len(set(pairs))))
    assert len(set(zip(numbers, pairs, strict=True))) == len(set(pairs))
    for domain in {stage.domain for stage in stages}:
        sharing = chosen.parallelism_of(domain)
        own = [stage for stage in stages if stage.domain == domain]
        num_devices = 1 if sharing is None else sharing.pipeline
        assert {stage.device for stage in own} == set(range(num_devices))
        visits = sum(stage.device == 0 for stage in own)
        loads = [
            sum(stage.num_layers for stage in own if stage.device == device)
            for device in range(num_devices)
        ]
        assert max(loads) - min(loads) <= visits


@given(total=st.integers(0, 1000), parts=st.integers(1, 40))
def test_an_even_split_differs_by_one_at_most_and_starts_with_the_larger_parts(total, parts):
    found = split_evenly(total, parts)

    assert (sum(found), len(found)) == (total, parts)
    assert max(found) - min(found) <= 1
    assert list(found) == sorted(found, reverse=True)


def test_replicas_share_the_microbatches():
    two = Plan(placement=Placement(domain_of_layer=(0,)), replicas=(plan(1).placement,))

    assert two.microbatches_of_replicas(7) == (4, 3)
    assert plan(0).microbatches_of_replicas(7) == (7,)


# What is refused.


@pytest.mark.parametrize("field", ["tensor", "data", "pipeline", "chunks"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_a_parallelism_counts(field, value):
    with pytest.raises(ValueError, match=f"parallelism: {field} must be a whole number from 1"):
        Parallelism(**{field: value})


def test_a_parallelism_says_what_it_is():
    written = Parallelism.parse(" 2x3x4 ")

    assert written == Parallelism(tensor=2, data=3, pipeline=4)
    assert (written.gpus_per_device, written.num_gpus) == (6, 24)
    assert str(written) == "tensor 2 x data 3 x pipeline 4"
    sharded = Parallelism(sharding="optimiser")
    assert str(sharded) == "tensor 1 x data 1 x pipeline 1, sharded optimiser"


def test_chunks_are_written_behind_a_letter():
    written = Parallelism.parse("2x1x4v3")

    assert written == Parallelism(tensor=2, pipeline=4, chunks=3)
    assert written.num_gpus == 8
    assert str(written) == "tensor 2 x data 1 x pipeline 4 of 3 chunks in a loop"
    assert Parallelism.parse("1x1x2w2") == Parallelism(pipeline=2, chunks=2, chunk_order="wave")


def test_chunks_need_other_devices_and_a_known_order():
    with pytest.raises(ValueError, match=r"chunks must be 1 where pipeline is 1, .* got 2"):
        Parallelism.parse("4x1x1v2")
    with pytest.raises(ValueError, match="chunk_order must be one of loop, wave; got 'round'"):
        Parallelism(pipeline=2, chunks=2, chunk_order="round")


@pytest.mark.parametrize(
    "text", ["1x1x2v", "1x1x2z2", "", "2", "2x2", "2x2x2x2", "axbxc", "-1x1x1", "2*2*2", "1.5x1x1"]
)
def test_another_text_is_no_parallelism(text):
    with pytest.raises(ValueError, match=r"parallelism: must be TENSORxDATAxPIPELINE, .* got '"):
        Parallelism.parse(text)


def test_a_written_parallelism_counts_from_one():
    with pytest.raises(
        ValueError, match=r"parallelism: data must be a whole number from 1 .* got 0"
    ):
        Parallelism.parse("2x0x1")


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bucket_has_a_size(value):
    with pytest.raises(ValueError, match="gradient exchange: bucket_bytes must be positive"):
        GradientExchange(bucket_bytes=value)


@pytest.mark.parametrize("value", [0.0, 0.99, float("nan"), float("inf")])
def test_compression_makes_nothing_larger(value):
    with pytest.raises(ValueError, match="plan: activation_compression must be at least 1 and fin"):
        Plan(placement=Placement(domain_of_layer=(0,)), activation_compression=value)


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match=r"schedule: must be one of .*; got 'zero'"):
        plan(0, schedule="zero")


def test_a_domain_serves_one_replica():
    first, second, third = plan(0, 1).placement, plan(2, 2).placement, plan(3, 1).placement

    assert Plan(placement=first, replicas=(second,)).placements == (first, second)
    with pytest.raises(ValueError, match="a domain must serve one replica, got domain 1 in two"):
        Plan(placement=first, replicas=(second, third))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (
            Plan(placement=Placement(domain_of_layer=(0, 0)), replicas=(plan(1).placement,)),
            "each of the 2 layers of unit, got 1",
        ),
        (
            Plan(placement=Placement(domain_of_layer=(0, 0)), replicas=(plan(3, 3).placement,)),
            "layer 0 must be on one of the domains A 0, B 1, C 2; got 3",
        ),
        (
            Plan(
                placement=Placement(domain_of_layer=(0, 0)),
                replicas=(plan(1, 1).placement, plan(2, 2).placement),
            ),
            "at most one replica per microbatch, 2; got 3",
        ),
        (
            Plan(placement=Placement(domain_of_layer=(0, 0)), parallelism=shares("1x1x1")),
            "parallelism must hold one entry for each of 3 domains, got 1",
        ),
        (
            Plan(
                placement=Placement(domain_of_layer=(0, 1)),
                parallelism=shares("1x1x1", "1x2x1", "1x1x1"),
            ),
            "parallelism of domain B must use at most its 1 GPUs, got tensor 1 x data 2 x pipeli"
            "ne 1, which is 2",
        ),
    ],
)
def test_a_plan_that_does_not_match_is_refused(chosen, message):
    with pytest.raises(ValueError, match=message):
        chosen.check_against(free_world(3), unit_workload([(1, 1)] * 2, num_microbatches=2))


def test_the_parallelism_of_a_domain_without_layers_is_not_checked():
    """One for all domains may be too wide for one that the plan does not use."""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 0)),
        parallelism=shares("1x1x1", "1x2x1", "1x1x1"),
    )

    chosen.check_against(free_world(3), unit_workload([(1, 1)] * 2, num_microbatches=2))


@given(case=parallel_cases())
def test_a_plan_that_matches_is_not_refused(case):
    topology, workload, chosen = case

    chosen.check_against(topology, workload)
    assert sum(chosen.microbatches_of_replicas(workload.num_microbatches)) == (
        workload.num_microbatches
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parallelism": Parallelism()}, "parallelism must be a tuple of Parallelism, got"),
        ({"replicas": [Placement.even(1, 1)]}, "replicas must be a tuple of Placement, got"),
        ({"activation_compression": "x"}, "activation_compression must be at least 1 .*, got 'x'"),
    ],
)
def test_a_plan_refuses_what_is_of_another_kind(fields, message):
    with pytest.raises(ValueError, match=f"plan: {message}"):
        Plan(placement=Placement.even(1, 2), **fields)


def test_sharding_is_a_yes_or_no():
    with pytest.raises(
        ValueError, match="sharding must be one of none, optimiser, gradients, parameters; got 'no'"
    ):
        Parallelism(sharding="no")
