"""A trained network in the place of a planner."""

from pathlib import Path

import numpy as np
import pytest
import torch
from strategies import unit_workload

from agents.decision.problem import PlanningProblem
from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.policy_planner import PolicyPlanner
from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld
from agents.ppo.checkpoint import CheckpointError, save_checkpoint
from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.normaliser import ObservationMoments
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.trained_policy import network_payload
from agents.ppo.trainer import PPOTrainer
from des import Placement, Topology, UniformLaw


def task(num_domains: int = 3, num_layers: int = 6, actions: str = "order_split") -> PlacementTask:
    return PlacementTask(
        world=DrawnWorld(
            num_domains=num_domains,
            dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2),
        ),
        workload=unit_workload([(1e14, 2e14)] * num_layers, num_microbatches=2, message_bytes=1e8),
        actions=actions,
    )


def network(given: PlacementTask) -> ActorCritic:
    """Weights large enough that the greedy action depends on what is seen."""
    generator = torch.Generator().manual_seed(0)
    sizes = NetworkArchitecture(
        observation_size=given.observation_size,
        action_sizes=given.codec.sizes,
        ordinal_starts=given.codec.ordinal_starts,
    )
    result = ActorCritic(sizes, generator)
    num_domains, num_layers = given.world.num_domains, given.workload.num_layers
    turns = [
        Placement(domain_of_layer=(turn % num_domains,) * num_layers) for turn in range(len(WORLDS))
    ]
    seen = torch.tensor(
        np.array([given.observe(*pair) for pair in zip(WORLDS, turns, strict=True)])
    )
    result.normaliser.merge(ObservationMoments.of(seen))
    with torch.no_grad():
        for parameter in result.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return result


WORLDS: list[Topology] = [task().world.draw(np.random.default_rng(seed)) for seed in range(12)]


def saved(given: PlacementTask, folder: Path) -> Path:
    path = folder / "policy.safetensors"
    save_checkpoint(path, {"policy": network_payload(network(given))})
    return path


@pytest.mark.parametrize("actions", ["order_split", "per_layer"])
def test_decisions_are_the_greedy_actions_of_the_network(actions, tmp_path: Path):
    """It sees the links and the last placement; where there is none, the uniform one."""
    given = task(actions=actions)
    planner = PolicyPlanner.from_checkpoint(saved(given, tmp_path), given)
    original, last = network(given), given.uniform_placement

    decided = set()
    for number, topology in enumerate(WORLDS):
        problem = PlanningProblem(
            topology=topology,
            workload=given.workload,
            last_plan=given.plan(last) if number else None,
        )
        observation = torch.from_numpy(given.observe(topology, last))
        (action,) = original.greedy(observation.unsqueeze(0)).tolist()
        last = given.codec.decode(action)
        assert planner(problem, np.random.default_rng(0)) == given.plan(last)
        decided.add(last)
    assert len(decided) > 3


def test_decisions_do_not_depend_on_the_generator(tmp_path: Path):
    given = task()
    path = saved(given, tmp_path)
    problem = PlanningProblem(topology=WORLDS[0], workload=given.workload)
    decisions = [
        PolicyPlanner.from_checkpoint(path, given)(problem, np.random.default_rng(seed))
        for seed in (0, 1)
    ]
    assert decisions[0] == decisions[1]


@pytest.mark.parametrize(
    "other",
    [task(num_domains=2), task(num_layers=7), task(actions="per_layer")],
    ids=["domains", "layers", "actions"],
)
def test_checkpoint_of_another_task_is_refused(other, tmp_path: Path):
    path = saved(task(), tmp_path)

    with pytest.raises(
        CheckpointError, match=r"policy\.safetensors: policy must have observation_size"
    ):
        PolicyPlanner.from_checkpoint(path, other)


def test_missing_checkpoint_is_refused(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"missing\.safetensors"):
        PolicyPlanner.from_checkpoint(tmp_path / "missing.safetensors", task())


def test_checkpoint_of_a_trainer_on_the_batch_can_be_used(tmp_path: Path):
    """From the batched environment over the trainer and its file to a placement."""
    given = task()
    config = PPOConfig(num_steps=4, num_epochs=1, num_minibatches=1, hidden_sizes=(8,))
    with BatchedPlacementEnv(given, num_envs=2, seed=0) as environment:
        trainer = PPOTrainer.local(environment, config, seed=0, total_steps=16)
        while not trainer.finished:
            trainer.update()
        save_checkpoint(tmp_path / "run.safetensors", trainer.state())

    planner = PolicyPlanner.from_checkpoint(tmp_path / "run.safetensors", given)
    plan = planner(
        PlanningProblem(topology=WORLDS[0], workload=given.workload), np.random.default_rng(0)
    )
    plan.check_against(WORLDS[0], given.workload)
