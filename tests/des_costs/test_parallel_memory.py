"""Memory of plans whose GPUs share layers: by hand, and what every sharing conserves."""

import dataclasses
import operator
from itertools import pairwise
from typing import get_args

import pytest
from examples import examples
from hypothesis import given, settings
from sharing import FEW, gpus, parallel_cases
from strategies import free_world

from des import (
    NO_CORRECTIONS,
    InfeasiblePlacementError,
    Layer,
    Parallelism,
    Placement,
    Plan,
    Topology,
    Workload,
    check_memory,
    domain_memory,
    simulate,
)
from des.costs.bound_stages import bound_stages
from des.costs.memory import activation_room_bytes, model_state_bytes
from des.costs.stage_times import pipeline_of
from des.plan.parallelism import Sharding
from des.schedules import Operation, stage_orders


def kept(num_parameters: float, activation_bytes: float, halved_bytes: float) -> Layer:
    return Layer(
        forward_flops=1.0,
        input_gradient_flops=1.0,
        weight_gradient_flops=1.0,
        num_parameters=num_parameters,
        activation_bytes=activation_bytes,
        weight_input_bytes=halved_bytes,
    )


def workload(*layers: Layer, num_microbatches: int = 4) -> Workload:
    return Workload(
        name="kept",
        layers=layers,
        num_microbatches=num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=0.0,
    )


FOUR_LAYERS = workload(*(kept(size, 8.0, 4.0) for size in (10.0, 10.0, 30.0, 10.0)))
"""60 parameters; 8 bytes a layer and microbatch, half of them for the weight gradient."""


def one_domain(num_gpus: int, memory_bytes: float = 1e4) -> Topology:
    return Topology.of(
        [dataclasses.replace(gpus("A", num_gpus), gpu_memory_bytes=memory_bytes)], []
    )


def needed(num_gpus: int, schedule: str = "1f1b", **parallelism: object) -> tuple[float, float]:
    """Model state and activations of four layers on a number of GPUs. [bytes]"""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * 4),
        schedule=schedule,
        parallelism=(Parallelism(**parallelism),),
    )
    (memory,) = domain_memory(one_domain(num_gpus), FOUR_LAYERS, chosen)
    return memory.model_state_bytes, memory.activation_bytes


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [
        ({"tensor": 4}, (16 * 60, 32)),  # spread over the four
        ({"data": 4}, (4 * 16 * 60, 32)),  # a copy each; each has a quarter of the microbatch
        ({"tensor": 2, "data": 2}, (2 * 16 * 60, 32)),
        # 4 bytes a parameter on each of the four, 12 once for all of them
        ({"data": 4, "sharding": "optimiser"}, ((4 * 4 + 12) * 60, 32)),
        ({"tensor": 2, "data": 2, "sharding": "optimiser"}, ((2 * 4 + 12) * 60, 32)),
        ({"tensor": 4, "sharding": "optimiser"}, (16 * 60, 32)),  # no replica to spread it over
        # ZeRO-2: 2 + 14 / 4 bytes a parameter on each of the four; ZeRO-3: 16 / 4. Two layers in a
        # row, of 40 parameters, are whole on every replica: gradients, and with ZeRO-3 weights
        ({"data": 4, "sharding": "gradients"}, ((4 * 2 + 14) * 60 + 4 * 2 * 40, 32)),
        ({"data": 4, "sharding": "parameters"}, (16 * 60 + 4 * 4 * 40, 32)),
        ({"tensor": 2, "data": 2, "sharding": "parameters"}, (16 * 60 + 2 * 4 * 40, 32)),
        ({"tensor": 4, "sharding": "parameters"}, (16 * 60, 32)),
    ],
)
def test_four_gpus_by_hand(parallelism, expected):
    """1F1B of one stage holds one microbatch: 4 x 8 bytes."""
    assert needed(4, **parallelism) == expected


def test_gpus_that_stand_idle_are_counted_as_the_fullest():
    """A device of two GPUs needs 960 + 32 bytes, so three such GPUs would need half as much again.

    Exactly if one GPU fits, then so does the domain.
    """
    assert needed(3, tensor=2) == (1.5 * 960, 1.5 * 32)


def test_two_devices_in_a_row_by_hand():
    """Layers 0, 1 hold 20 parameters and two microbatches in flight, layers 2, 3 40 and one.

    352 and 656 bytes; the second is the fuller one, so twice that is what the domain must have.
    """
    assert needed(2, pipeline=2) == (2 * 16 * 40, 2 * 16)


def test_the_fullest_device_may_be_the_one_with_fewer_parameters():
    """GPipe holds 40 microbatches: of 108 bytes on the first device, of 16 on the second."""
    heavy = workload(kept(10.0, 100.0, 0.0), *FOUR_LAYERS.layers[1:], num_microbatches=40)
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * 4),
        schedule="gpipe",
        parallelism=(Parallelism(pipeline=2),),
    )

    (memory,) = domain_memory(one_domain(2), heavy, chosen)
    assert (memory.model_state_bytes, memory.activation_bytes) == (2 * 16 * 20, 2 * 40 * 108)


def test_halves_of_the_backward_pass_by_hand():
    """ZB-H1 of two devices, 8 bytes whole and 4 halved a layer.

    First: F0 F1 D0 W0 F2 ...: two whole. Second: F0 D0 F1 D1 W0 ...: one whole and one half.
    """
    assert needed(2, "zb_h1", pipeline=2) == (2 * 16 * 40, 2 * (16 + 8))


def test_the_halves_may_weigh_more_than_the_whole():
    """Full recomputation keeps little before D: D0 D1 with both W put off hold 2 x 32 bytes."""
    chosen = Plan(placement=Placement(domain_of_layer=(0,)), schedule="zb_h1")
    light = workload(kept(0.0, 2.0, 32.0), num_microbatches=2)
    orders = [tuple(Operation(kind, int(m), 0) for kind, m in ("F0", "F1", "D0", "D1", "W0", "W1"))]

    result = simulate(free_world(1), light, chosen, orders=orders)
    assert result.memory[0].activation_bytes == 64.0


def test_a_worker_with_nothing_to_do_holds_nothing():
    chosen = Plan(placement=Placement(domain_of_layer=(0,) * 4))

    orders = [*stage_orders("1f1b", 1, 4), ()]
    result = simulate(one_domain(1), FOUR_LAYERS, chosen, orders=orders)
    assert result.memory[0].activation_bytes == 32.0


def test_a_plan_fits_if_its_fullest_gpu_does():
    """Of two devices of a GPU the second needs 16 x 40 + 16 = 656 bytes."""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * 4), parallelism=(Parallelism(pipeline=2),)
    )

    check_memory(one_domain(2, 656.0), FOUR_LAYERS, chosen)
    with pytest.raises(InfeasiblePlacementError, match="plan: domain A must hold at most"):
        check_memory(one_domain(2, 655.9), FOUR_LAYERS, chosen)


def test_the_memory_of_a_plan_that_does_not_match_is_refused():
    chosen = Plan(placement=Placement(domain_of_layer=(0,) * 4), parallelism=(Parallelism(),) * 2)

    with pytest.raises(ValueError, match="parallelism must hold one entry for each of 1 domains"):
        domain_memory(one_domain(1), FOUR_LAYERS, chosen)


def rooms_bytes(topology, chosen):
    """Memory that a schedule may use of each device."""
    stages = bound_stages(topology, chosen)
    return pipeline_of(topology, FOUR_LAYERS, stages, NO_CORRECTIONS, 1).memory_bytes


def test_room_for_activations_by_hand():
    """1000 bytes a GPU; 20 and 40 parameters on devices of two GPUs, whose optimiser is shared."""
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,) * 4),
        parallelism=(Parallelism(data=2, pipeline=2, sharding="optimiser"),),
    )
    topology = one_domain(4, 1000.0)

    room = rooms_bytes(topology, chosen)
    assert room == (2000 - (2 * 4 + 12) * 20, 2000 - (2 * 4 + 12) * 40)
    stages = bound_stages(one_domain(4, 400.0), chosen)
    assert activation_room_bytes(FOUR_LAYERS, stages[1:]) == 0.0


def test_room_on_a_domain_that_is_one_device():
    """All layers but one, twice 1000 bytes of GPUs."""
    chosen = Plan(placement=Placement(domain_of_layer=(0, 0, 1, 0)))
    topology = Topology.of(
        [dataclasses.replace(gpus(name, 2), gpu_memory_bytes=1000.0) for name in "AB"],
        free_world(2).links,
    )

    room = rooms_bytes(topology, chosen)
    assert room == (2000 - 16 * 30, 2000 - 16 * 30)


# Laws for any plan.


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases())
def test_replicas_hold_a_copy_each(case):
    """Summed over devices: 2 + 2 + 12 bytes a parameter for each replica; once what they shard."""
    _, workload, chosen = case
    total = expected = 0.0
    for stage in chosen.stages:
        sharing = chosen.parallelism_of(stage.domain)
        parameters = sum(workload.num_parameters[stage.layers])
        copies = 1 if sharing is None else sharing.data
        level = 0 if sharing is None else get_args(Sharding).index(sharing.sharding)
        of_copies = [copies if level < least else 1 for least in (3, 2, 1)]
        expected += sum(map(operator.mul, (2, 2, 12), of_copies)) * parameters
        total += model_state_bytes(workload, parameters, sharing)
    assert total == pytest.approx(expected)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases())
def test_the_simulation_reports_the_memory_of_the_plan(case):
    topology, workload, chosen = case

    memory = domain_memory(topology, workload, chosen)
    assert simulate(topology, workload, chosen).memory == memory
    used = {stage.domain for stage in chosen.stages}
    for index, domain in enumerate(memory):
        assert index in used or domain.required_bytes == 0.0
        assert domain.capacity_bytes == topology.domains[index].memory_bytes


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases())
def test_a_level_of_sharding_never_needs_more_than_the_one_before(case):
    """Apart from layers that are whole for a while."""
    topology, workload, chosen = case
    plain, sharded = (
        domain_memory(
            topology,
            workload,
            dataclasses.replace(
                chosen,
                parallelism=tuple(
                    dataclasses.replace(each, sharding=level) for each in chosen.parallelism
                ),
            ),
        )
        for level in ("none", "optimiser")
    )
    for more, less in zip(plain, sharded, strict=True):
        assert less.required_bytes <= more.required_bytes
    for each in chosen.parallelism:
        levels = [dataclasses.replace(each, sharding=level) for level in get_args(Sharding)]
        for more, less in pairwise(levels):
            assert model_state_bytes(workload, 1.0, less) <= model_state_bytes(workload, 1.0, more)
