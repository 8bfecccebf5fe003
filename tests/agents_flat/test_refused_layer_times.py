"""Layer times and limits that parts made for a fraction of the peak and plain links refuse."""

from dataclasses import replace

import pytest
from profiled import profile_of_shapes

from agents.decision.training_job import TrainingJob
from agents.flat.batch_arrays import batch_work_of
from agents.flat.task import PlacementTask
from agents.flat.worlds import GivenWorld
from agents.hi_ppo.local.case import DomainCase
from des import Topology, build_workload, read_topology
from des.world.access import Access
from des.world.kernel_figures import FITTED_KERNELS


@pytest.fixture(scope="module", params=["shapes", "profile"])
def source_and_world(request) -> tuple[str, Topology]:
    """The shipped world whose first domain has another source of layer times."""
    world = read_topology("east_central_west")
    domain = replace(world.domains[0], kernels=FITTED_KERNELS)
    if request.param == "profile":
        shape = build_workload("llama2_7b").shape
        profile = profile_of_shapes(shape, domain, sizes=(1,), sequences=(4096,))
        domain = replace(domain, profile=profile)
    return request.param, replace(world, domains=(domain, *world.domains[1:]))


def test_the_compiled_environment_refuses_other_sources(source_and_world):
    source, world = source_and_world
    task = PlacementTask(world=GivenWorld(topology=world), workload=build_workload("llama2_7b"))

    message = f"layer_times of domain East must be fraction in the .* environment, got {source}$"
    with pytest.raises(ValueError, match=message):
        batch_work_of(task, world)


def test_the_compiled_environment_refuses_limits_of_sites():
    world = read_topology("east_central_west")
    access = Access(uplink_bytes_per_s=1e9)
    first = replace(world.domains[0], access=access)
    world = replace(world, domains=(first, *world.domains[1:]))
    task = PlacementTask(world=GivenWorld(topology=world), workload=build_workload("llama2_7b"))

    with pytest.raises(ValueError, match=r"environment, compiled: .*; got uplink of East$"):
        batch_work_of(task, world)


def test_local_plans_refuse_other_sources(source_and_world):
    source, world = source_and_world
    with pytest.raises(
        ValueError, match=f"^local case of domain East: layer_times must be .*; got {source}$"
    ):
        DomainCase(
            domain=world.domains[0],
            job=TrainingJob(model="llama2_7b", num_sequences=4),
            first_layer=0,
            num_layers=32,
        )
