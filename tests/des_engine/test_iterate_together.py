"""Iterations of several jobs on shared links, one after the other."""

from dataclasses import replace

import numpy as np
import pytest

from des import ConcurrentJob, Placement, Plan, PlaneWorlds, build_workload, simulate
from des.simulation.shared_links import iterate_together, simulate_together
from des.world.transport import Transport


@pytest.fixture(scope="module")
def job():
    """A world of two domains and a job over both."""
    topology = PlaneWorlds(num_domains=2).draw(np.random.default_rng(0))
    workload = build_workload("llama3_2_1b", num_layers=4, num_microbatches=4)
    return topology, ConcurrentJob(workload=workload, plan=Plan(placement=Placement.even(2, 4)))


def test_iterations_of_a_job_alone_all_take_its_time(job):
    topology, one = job
    alone_s = simulate(topology, one.workload, one.plan).makespan_s

    (ends_s,) = iterate_together(topology, [replace(one, start_s=5.0)], [4])
    assert np.diff([5.0, *ends_s]) == pytest.approx(alone_s)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_first_iterations_are_those_of_simulate_together(job, sharing):
    topology, one = job
    topology = replace(topology, transport=Transport(sharing=sharing))
    jobs = [one, replace(one, start_s=0.01)]
    results = simulate_together(topology, jobs)

    ends_s = iterate_together(topology, jobs, [1, 1])
    assert [each.makespan_s for each in results] == pytest.approx(
        [end_s - job.start_s for (end_s,), job in zip(ends_s, jobs, strict=True)]
    )


def test_a_job_without_iterations_is_refused(job):
    topology, one = job
    with pytest.raises(ValueError, match="num_iterations must be a whole number from 1 to"):
        iterate_together(topology, [one], [0])
    with pytest.raises(ValueError, match="must be one for each of the 2 jobs, got 1"):
        iterate_together(topology, [one, one], [1])
