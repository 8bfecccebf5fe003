"""Gradients in BF16 and in FP32: state, messages and the optimiser's step, by hand."""

from dataclasses import replace

import pytest
from strategies import free_world, plan

from des import (
    EVERY_STEP,
    DiLoCo,
    GradientExchange,
    Parallelism,
    Placement,
    Plan,
    build_workload,
    domain_memory,
)
from des.compiled.simulate import simulate_compiled
from des.costs.memory import bytes_per_parameter
from des.plan.buckets import bits_on_wire, buckets_of
from des.program.moves import moved_bytes
from des.simulation.iteration import simulate

JOB = build_workload("llama2_7b", num_layers=4, num_microbatches=4)
WIDE = replace(JOB, gradient_precision="fp32")


def test_bf16_is_the_default_and_fp32_makes_18_bytes():
    assert (JOB.gradient_precision, JOB.state_bytes, WIDE.state_bytes) == ("bf16", 16, 18)
    assert (
        build_workload("llama2_7b", num_layers=4, num_microbatches=4, gradient_precision="fp32")
        == WIDE
    )
    shared = Parallelism(data=4, sharding="optimiser")
    assert tuple(bytes_per_parameter(shared, WIDE.gradient_bytes)) == (8, 16, 12)


def test_memory_and_moves_follow():
    world, here, there = free_world(2), plan(0, 0, 0, 0), plan(1, 1, 1, 1)
    (found, _), (base, _) = (domain_memory(world, job, here) for job in (WIDE, JOB))
    assert found.model_state_bytes == 18 * JOB.sums_before.num_parameters[-1]
    assert found.activation_bytes == base.activation_bytes
    for domain, num_bytes in moved_bytes(WIDE, here, there).items():
        assert num_bytes == pytest.approx(moved_bytes(JOB, here, there)[domain] * 18 / 16)


@pytest.mark.parametrize("kind", ["inside", "between"])
def test_gradients_on_the_wire_are_twice_as_long(kind):
    if kind == "inside":
        shared = replace(plan(0, 0, 0, 0), parallelism=(Parallelism(data=4),) * 2)
    else:
        shared = Plan(
            placement=Placement(domain_of_layer=(0,) * 4),
            replicas=(Placement(domain_of_layer=(1,) * 4),),
            exchange=GradientExchange(overlapped=False),
        )
    for found, base in zip(buckets_of(WIDE, shared, 1), buckets_of(JOB, shared, 1), strict=True):
        assert found.num_bytes == 2 * base.num_bytes


def test_changes_of_parameters_keep_the_bits_of_their_mode():
    assert bits_on_wire(WIDE, EVERY_STEP) == 32
    assert bits_on_wire(WIDE, DiLoCo(steps_between=10, bits_per_value=4.0)) == 4


def test_compiled_iterations_are_equal():
    domains = [replace(domain, num_gpus=4) for domain in free_world(2).domains]
    world = replace(free_world(2), domains=tuple(domains))
    shared = replace(plan(0, 0, 1, 1), parallelism=(Parallelism(data=2, pipeline=2),) * 2)
    assert simulate_compiled(world, WIDE, shared) == simulate(world, WIDE, shared)


def test_other_precisions_are_refused():
    with pytest.raises(ValueError, match="gradient_precision must be one of bf16, fp32; got 'fp8'"):
        build_workload("llama2_7b", gradient_precision="fp8")
