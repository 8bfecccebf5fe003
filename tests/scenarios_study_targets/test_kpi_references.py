"""References of the targets, and the physical bound: cases that can be worked out by hand."""

import pytest
from epoch_cases import FOUR_LAYERS, FREE_PAIR
from strategies import plan, unit_workload, world

from agents.decision.depths import DEPTHS
from des import NO_CORRECTIONS, simulate
from scenarios.study.targets.references import (
    chain_bound,
    communication_of,
    data_parallel_plan,
    iteration_bound_s,
    physical_bound_s,
)
from scenarios.study.targets.time_and_utilisation import DrawTimes, even_split_plan

LEFT, SPLIT = plan(0, 0, 0, 0), plan(0, 0, 1, 1)


def test_saving_and_gain_are_of_the_same_times():
    """10 s instead of 20 s: half the time, and twice the utilisation."""
    times = DrawTimes(
        own_s=10.0, single_s=20.0, uniform_s=12.0, physical_s=5.0, least_s=6.0, single_fits=True
    )

    assert (times.saving, times.gain) == (0.5, 1.0)


def test_physics_bounds_every_pipeline():
    """16 s of work on two domains take 8 s at least; 2 messages of 3 s make that 6 s no bound."""
    job = unit_workload([(1, 1)] * 4, num_microbatches=2, message_bytes=3.0)
    fast, slow = (world("AB", {"AB": (one, 0.0), "BA": (one, 0.0)}) for one in (1.0, 0.3))

    assert physical_bound_s(fast, job) == 8.0
    assert iteration_bound_s(fast, job) == 8.0
    assert iteration_bound_s(slow, job) == 16.0  # one domain, as messages alone take 20 s
    for placement in (LEFT, SPLIT):
        assert simulate(fast, job, placement, NO_CORRECTIONS).makespan_s >= 8.0


def test_the_chain_bound_is_that_of_the_quickest_domain_and_link():
    """4 parameters, messages of 2 bytes for one token, so h = 1; 1 FLOP/s, 8 and 0.1 bytes/s."""
    job = unit_workload([(1, 1)] * 4, num_microbatches=2, message_bytes=2.0)
    fast, slow = (world("AB", {"AB": (one, 0.0), "BA": (0.01, 0.0)}) for one in (8.0, 0.1))

    bound = chain_bound(fast, job)

    assert (bound.parameters_per_hidden, bound.needed) == (4.0, 1.0 / 18.0)
    assert bound.allows_a_quarter
    assert not chain_bound(slow, job).allows_a_quarter
    with pytest.raises(ValueError, match="must have links and messages"):
        chain_bound(world("A", {}), job)


def test_data_parallelism_sends_all_gradients_around_the_ring():
    """Two replicas of 4 parameters of 2 bytes: each sends half of them twice, 16 bytes in all."""
    found = communication_of(FREE_PAIR, FOUR_LAYERS, data_parallel_plan(FREE_PAIR, FOUR_LAYERS))

    assert found.cost_bytes == 16.0
    assert found.iteration_s - found.exposed_s == 8.0  # a microbatch each


def test_the_even_split_takes_the_depth_that_is_best_for_it():
    """Latencies of 1 s: with more forwards to begin with they are hidden."""
    job = unit_workload([(1, 1)] * 4, num_microbatches=8)
    topology = world("AB", {"AB": (1e9, 1.0), "BA": (1e9, 1.0)})

    best = even_split_plan(topology, job)

    times = {
        name: simulate(topology, job, plan(0, 0, 1, 1, schedule=name), NO_CORRECTIONS).makespan_s
        for name in DEPTHS
    }
    assert best.placement == SPLIT.placement
    assert times[best.schedule] == min(times.values()) < times["1f1b"]
