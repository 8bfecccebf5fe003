"""Targets of bound plans: what a trainer runs against the best single domain and copies."""

from dataclasses import replace

import pytest

from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.trainers.table import TRAINERS
from des import Link, Topology
from scenarios.study.targets.bound import bound_figures
from scenarios.suites import suite

MEGATRON = TRAINERS["megatron"]


@pytest.fixture(scope="module")
def world():
    return suite("eval_calm").world(0, seed=5)


def test_figures_are_those_of_the_search(world):
    figures = bound_figures(MEGATRON, world)
    job = TrainingJob.of(world.workload)
    found = search_bound(PlanRequest(topology=world.topology.at_start(), job=job, trainer=MEGATRON))

    assert figures.best_s == found.best.bound.step_s
    assert figures.wan_bytes == found.best.figures.wan_bytes
    if figures.single_s is not None:
        assert figures.best_s <= figures.single_s


def test_copies_send_every_gradient_twice_round_the_ring(world):
    """R copies of n parameters: 2 (R - 1) n gradients of FP32 in all, directly."""
    copies = world.topology.num_domains
    parameters = world.workload.sums_before.num_parameters[-1]

    assert bound_figures(MEGATRON, world).replica_bytes == pytest.approx(
        2 * (copies - 1) * 4 * parameters
    )


def test_links_that_carry_nothing_leave_one_domain(world):
    """Where every link takes hours for a message, the best plan is the single domain's."""
    domains = [replace(one, gpu_memory_bytes=1e12) for one in world.topology.domains]
    links = [
        Link(source=one.source, target=one.target, bandwidth_bytes_per_s=1e3, latency_s=1.0)
        for one in world.topology.links
    ]
    slow = replace(world, topology=Topology.of(domains, links))
    figures = bound_figures(MEGATRON, slow)

    assert figures.best_s == figures.single_s
    assert figures.wan_bytes == 0.0


def test_a_job_that_fits_nowhere_has_no_figures(world):
    tiny = [replace(one, gpu_memory_bytes=1e8) for one in world.topology.domains]
    small = replace(world, topology=Topology.of(tiny, world.topology.links))

    assert bound_figures(MEGATRON, small).best_s is None
