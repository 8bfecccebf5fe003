"""The scheduling task of a trainer: plans are bound, refusals stay in force, networks count."""

import numpy as np
import pytest
from bound_cases import bind_plan, job, sites

from agents.decision.load import LoadLaw
from agents.scheduling.env import SchedulingEnv
from agents.scheduling.make_task import make_scheduling_task
from agents.scheduling.task import DESCRIBED, FIRST_KNOWN, Described
from agents.trainers.table import trainer_named
from des import Placement, Plan, simulate

ARGUMENTS = {
    "network": sites(),
    "model": job(),
    "trainer": "megatron",
    "law": "ou",
    "load": LoadLaw(low_factor=1.0, high_factor=1.0),
    "num_epochs": 3,
    "num_known": 2,
}


@pytest.fixture(scope="module")
def task():
    """The task, which is not changed by environments that share it."""
    return make_scheduling_task(**ARGUMENTS)


def described(task, *groups):
    """Action of a plan with an even tilt under 1F1B."""
    schedule = task.setting.space.schedules.index("1f1b")
    plan = Described(groups=groups, tilts=(1.0,) * 3, schedule=schedule, mode=0)
    return task.action.encoded(plan)


def test_described_plans_are_bound_on_the_network_of_their_epoch(task):
    env = SchedulingEnv(task=task)
    env.reset(seed=3, options={"draw_seed": 5})
    topology = task.setting.world.epoch_topology(5, 0)

    *_, info = env.step(described(task, (0, 1)))

    layers = [stage.num_layers for stage in info["plan"].placement.stages]
    given = Plan(placement=Placement.contiguous([0, 1], layers))
    step_s = simulate(topology, job(), info["plan"]).makespan_s
    assert info["plan"] == bind_plan(topology, job(), given, trainer_named("megatron")).plan
    assert info["iteration_s"] == step_s
    assert info["num_iterations"] == task.setting.world.epoch_s / step_s
    assert (info["trainer"], info["fallback"]) == ("megatron", "")


def test_a_plan_that_the_trainer_does_not_run_leaves_the_one_in_force(task):
    """32 microbatches are no multiple of three replicas."""
    env = SchedulingEnv(task=task)
    _, at_reset = env.reset(seed=3)

    *_, info = env.step(described(task, (0,), (1,), (2,)))

    assert info["plan"] == at_reset["plan"]
    assert info["fallback"] == "trainer"


def test_known_plans_and_observations_are_those_of_the_trainer(task):
    env = SchedulingEnv(task=task)
    observation, _ = env.reset(seed=1)
    action = np.zeros(len(task.action.sizes), dtype=np.int64)
    assert DESCRIBED < FIRST_KNOWN
    action[0] = FIRST_KNOWN

    *_, info = env.step(action)

    assert np.isfinite(observation).all()
    assert info["plan"] == task.start.plan
    assert info["plan"].parallelism


def test_gradients_must_be_those_of_the_trainer(task):
    world = task.setting.world
    plain = type(world)(
        topology=world.topology,
        workload=job(gradient_precision="bf16"),
        epoch_s=world.epoch_s,
        iterations_per_epoch=2,
    )

    with pytest.raises(ValueError, match="gradients of fp32, as trainer megatron keeps them"):
        make_scheduling_task(world=plain, trainer="megatron")
