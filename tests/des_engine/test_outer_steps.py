"""Outer steps of DiLoCo: exchanges that nothing hides, and the memory of the outer optimiser."""

from dataclasses import replace

import pytest
from sharing import equal_world, model, replicas
from sparse_jobs import small, small_job

from des import (
    DiLoCo,
    Parallelism,
    Placement,
    Plan,
    StreamingDiLoCo,
    domain_memory,
    lower,
    memory_timeline,
    simulate,
)
from des.compiled.simulate import simulate_compiled
from des.plan.synchronisation import ReplicatedModel, exposed_s_per_step
from des.world.kernel_figures import KernelFigures

HIDDEN = DiLoCo(steps_between=2)
AFTER = DiLoCo(steps_between=2, behind_backward=False)


def makespans(world, workload, plan):
    """Times of the first two steps, in both engines."""
    found = [simulate(world, workload, plan, step=step) for step in (0, 1)]
    assert found == [simulate_compiled(world, workload, plan, step=step) for step in (0, 1)]
    return [one.makespan_s for one in found]


def test_an_outer_step_starts_when_the_last_inner_step_is_over():
    """Two layers of 3 s; 8 bytes of each between two domains at 4 bytes/s take 2 x 4 / 4 s.

    In one bucket nothing is hidden anyway. In two the last layer's is, by 2 s of backward pass.
    """
    world, workload = equal_world(2, link=(4.0, 0.0)), model(2, 2, 4.0)

    def plan(mode):
        return replicas([0, 0], [1, 1], synchronisation=mode)

    assert makespans(world, workload, plan(HIDDEN)) == [6.0, 6.0 + 4.0]
    assert makespans(world, workload, plan(AFTER)) == [6.0, 6.0 + 4.0]
    layered = replace(plan(HIDDEN), exchange=replace(plan(HIDDEN).exchange, bucket_bytes=8.0))
    assert makespans(world, workload, layered) == [6.0, 6.0 + 4.0 - 2.0]
    late = replace(layered, synchronisation=AFTER)
    assert makespans(world, workload, late) == [6.0, 6.0 + 4.0]


def test_inner_sums_of_the_step_come_before_it_and_a_gather_after_it():
    """8 bytes on 2 GPUs at 4 bytes/s: 1 s each half inside; 2 x 4 / 8 s between the domains."""
    world = equal_world(2, link=(8.0, 0.0), inner=(4.0, 0.0), num_gpus=2)
    workload = model(1, 2, 4.0)
    shared = (Parallelism(data=2),) * 2

    plain = replicas([0], [1], parallelism=shared, synchronisation=AFTER)
    assert makespans(world, workload, plain) == [1.5 + 2.0, 1.5 + 2.0 + 1.0 + 1.0]
    sharded = replace(
        plain, parallelism=tuple(replace(one, sharding="parameters") for one in shared)
    )
    first_s, second_s = makespans(world, workload, sharded)
    assert second_s == first_s + 1.0  # parts alone, which passes gather


def test_the_update_comes_before_the_outer_step():
    """An overhead of 5 s of an iteration separates both; it is counted once."""
    kernels = KernelFigures(
        matmul_efficiency=1.0, memory_efficiency=1.0, layer_launch_s=0.0, iteration_overhead_s=5.0
    )

    world = equal_world(2, link=(4.0, 0.0))
    domains = [replace(one, kernels=kernels) for one in world.domains]
    world = replace(world, domains=tuple(domains))
    workload = small_job(small(1))
    num_bytes = 2.0 * sum(workload.num_parameters)

    found = simulate(world, workload, replicas([0], [1], synchronisation=AFTER), step=1)
    first = min(move.start_s for move in found.transfers)
    assert first >= max(span.end_s for span in found.spans) + 5.0
    assert found.makespan_s == pytest.approx(first + 2 * num_bytes / 2 / 4.0)
    assert makespans(world, workload, replicas([0], [1], synchronisation=AFTER))[1] == (
        found.makespan_s
    )


def test_the_formula_hides_nothing_either():
    job = ReplicatedModel(num_parameters=1e9, num_layers=10, step_time_s=3.0)

    assert exposed_s_per_step(AFTER, job, 1e9) == pytest.approx(2.0 / 2)
    assert exposed_s_per_step(HIDDEN, job, 1e9) == pytest.approx(0.2 / 2)


@pytest.mark.parametrize(
    ("mode", "shared", "state_bytes"),
    [
        (DiLoCo(steps_between=1), Parallelism(), 16),
        (HIDDEN, Parallelism(), 16 + 8),
        (StreamingDiLoCo(steps_between=4), Parallelism(), 16 + 8),
        (DiLoCo(steps_between=2, outer_state="cpu"), Parallelism(), 16),
        (HIDDEN, Parallelism(data=2), 2 * (16 + 8)),
        (HIDDEN, Parallelism(data=2, sharding="optimiser"), 2 * 4 + 12 + 8),
        (HIDDEN, Parallelism(tensor=2), 16 + 8),
    ],
)
def test_momentum_and_the_last_common_parameters_need_memory(mode, shared, state_bytes):
    """8 bytes a parameter of each copy, or once where the optimiser is sharded; 30 parameters."""
    world, workload = equal_world(2, num_gpus=shared.num_gpus), model(3, 2, 10.0)
    plan = replicas([0] * 3, [1] * 3, parallelism=(shared,) * 2, synchronisation=mode)

    memories = domain_memory(world, workload, plan)
    assert [one.model_state_bytes for one in memories] == [state_bytes * 30.0] * 2
    timeline = memory_timeline(lower(world, workload, plan), simulate(world, workload, plan))
    assert [one.model_state_bytes for one in timeline.devices] == [
        pytest.approx(state_bytes * 30.0 / shared.num_gpus)
    ] * 2


def test_a_single_replica_has_no_outer_optimiser():
    world, workload = equal_world(1), model(3, 2, 10.0)
    plan = Plan(placement=Placement(domain_of_layer=(0,) * 3), synchronisation=HIDDEN)

    assert domain_memory(world, workload, plan)[0].model_state_bytes == 16 * 30.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"outer_state": "disk"}, "DiLoCo: outer_state must be one of gpu, cpu; got 'disk'"),
        ({"behind_backward": 0}, "DiLoCo: behind_backward must be True or False, got 0"),
        (
            {"steps_between": 1, "behind_backward": False},
            "DiLoCo: behind_backward must be True where steps_between is 1, .*; got False",
        ),
    ],
)
def test_wrong_modes_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        DiLoCo(**fields)
