"""Optimiser's step and overhead of an iteration: by hand, and in the simulator."""

from dataclasses import replace

import pytest
from shapes import UNIT_KERNELS, tiny_job, with_kernels
from sharing import equal_world, replicas
from strategies import free_world, plan

from des import Corrections, GradientExchange, Parallelism, simulate
from des.costs.bound_stages import bound_stages
from des.costs.update_times import optimiser_step_bytes, update_figures, update_s
from des.plan.corrections import NO_CORRECTIONS

OVERHEAD = replace(UNIT_KERNELS, iteration_overhead_s=3.0)
WORLD = with_kernels(free_world(2), OVERHEAD, 0, 1)


def test_traffic_of_adam():
    """Master weight, momentum and variance read and written, gradient read, weight written."""
    assert optimiser_step_bytes(2) == 2 * (4 + 4 + 4) + 2 + 2
    assert optimiser_step_bytes(4) == 2 * (4 + 4 + 4) + 4 + 2


def test_replicas_update_all_that_they_hold_and_shards_their_part():
    domain = WORLD.domains[0]
    bandwidth = domain.gpu_memory_bandwidth_bytes_per_s * 0.5
    parameter_s = optimiser_step_bytes(2) / bandwidth
    slower = Corrections(compute_time_factor=2.0)

    for shared, found, expected in (
        (None, NO_CORRECTIONS, parameter_s / domain.num_gpus),
        (Parallelism(tensor=2, data=4), NO_CORRECTIONS, parameter_s / 2),
        (Parallelism(tensor=2, data=4, sharding="optimiser"), NO_CORRECTIONS, parameter_s / 8),
        (Parallelism(tensor=2, data=4), slower, parameter_s),
    ):
        assert update_figures(2, domain, shared, found)[0] == pytest.approx(expected)
    assert update_figures(2, domain, None, slower)[1] == 6.0


def test_the_fullest_device_counts_and_the_iteration_ends_that_much_later():
    job, plans = tiny_job(), plan(0, 0, 0, 1)
    parameter_s, overhead_s = update_figures(2, WORLD.domains[0], None, NO_CORRECTIONS)
    fullest = max(sum(job.num_parameters[:3]), job.num_parameters[3])

    found_s = update_s(job, bound_stages(WORLD, plans), NO_CORRECTIONS)
    assert found_s == fullest * parameter_s + overhead_s
    result = simulate(WORLD, job, plans)
    assert result.makespan_s == max(span.end_s for span in result.spans) + found_s


def test_fractions_have_no_update():
    stages = bound_stages(free_world(2), plan(0, 0, 1, 1))
    assert update_s(tiny_job(), stages, NO_CORRECTIONS) == 0.0


@pytest.mark.parametrize("num_replicas", [2, 3, 6])
def test_each_replica_updates_its_part_before_weights_are_gathered(num_replicas):
    """Passes, scatter, an R-th of the update and the overhead, gather, one after the other."""
    slow = equal_world(num_replicas, link=(100.0, 0.5))
    topology = with_kernels(slow, OVERHEAD, *range(num_replicas))
    job = tiny_job()
    parameter_s, overhead_s = update_figures(2, topology.domains[0], None, NO_CORRECTIONS)
    exchange = GradientExchange(sharded=True)
    chosen = replicas(*([domain] * 4 for domain in range(num_replicas)), exchange=exchange)

    result = simulate(topology, job, chosen)
    total = sum(job.num_parameters)
    half_s = (num_replicas - 1) * (2 * total / num_replicas / 100.0 + 0.5)
    update_s = total / num_replicas * parameter_s + overhead_s
    last_s = max(span.end_s for span in result.spans)
    assert result.makespan_s == pytest.approx(last_s + half_s + update_s + half_s, rel=1e-12)
