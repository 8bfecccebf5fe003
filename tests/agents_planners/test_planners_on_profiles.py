"""Planners on worlds with layer times from a profile: plans of shapes, or a refusal by name."""

from dataclasses import replace

import numpy as np
import pytest
from profiled import profile_of_shapes

from agents.decision.problem import PlanningProblem
from agents.planners.table import PLANNERS
from des import build_workload, read_topology
from des.world.kernel_figures import FITTED_KERNELS

JOB = build_workload("llama2_7b", num_microbatches=4)


@pytest.fixture(scope="module")
def problems() -> tuple[PlanningProblem, PlanningProblem]:
    """The shipped world with times from shapes, and with a profile of these times."""
    world = read_topology("east_central_west")
    shaped = [replace(one, kernels=FITTED_KERNELS) for one in world.domains]
    profile = profile_of_shapes(JOB.shape, shaped[0], sizes=(1, 2), sequences=(4096,))
    measured = [replace(one, profile=profile) for one in shaped]
    one, other = (
        PlanningProblem(
            topology=replace(world, domains=tuple(domains)), workload=JOB, schedule="1f1b"
        )
        for domains in (shaped, measured)
    )
    return one, other


@pytest.mark.parametrize("name", ["exact", "formula", "sailor", "dtfm", "cp_sat", "search"])
def test_equal_times_give_equal_plans(problems, name):
    shaped, measured = (PLANNERS[name](one, np.random.default_rng(0)) for one in problems)

    assert shaped == measured


@pytest.mark.parametrize("name", ["atlas", "sailor_with_parallelism"])
def test_planners_that_divide_gpus_name_what_was_not_measured(problems, name):
    message = r"^domain \w+: profile shapes.csv: tensor \d, microbatch_size .* must lie between"
    with pytest.raises(ValueError, match=message):
        PLANNERS[name](problems[1], np.random.default_rng(0))
