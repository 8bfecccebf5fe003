"""Rollouts of a scenario: the same environments here and on Ray."""

from dataclasses import fields
from importlib.util import find_spec

import pytest
import torch
from strategies import unit_workload

from agents.flat.task import PlacementTask
from agents.flat.worlds import DrawnWorld
from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.rollout import Rollout
from des import UniformLaw
from scenarios.train.rollouts import WorkerEnvironments, make_rollouts

SEED, NUM_STEPS = 3, 4


def task() -> PlacementTask:
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    return PlacementTask(
        world=DrawnWorld(num_domains=2, dynamics=law),
        workload=unit_workload([(1e14, 2e14)] * 4, num_microbatches=2, message_bytes=1e8),
        epochs_per_episode=3,
    )


def collected(**options) -> list[Rollout]:
    """The second rollout, of 5 environments of 2 logical workers."""
    options = {"num_envs": 5, "num_workers": 2, "seed": SEED, "num_processes": 2} | options
    with make_rollouts(task(), **options) as rollouts:
        assert (rollouts.num_workers, rollouts.num_envs) == (2, 5)
        architecture = NetworkArchitecture(
            observation_size=rollouts.observation_size,
            action_sizes=rollouts.action_sizes,
            ordinal_starts=rollouts.ordinal_starts,
        )
        network = ActorCritic(architecture, torch.Generator().manual_seed(0))
        for moments in rollouts.first_moments():
            network.normaliser.merge(moments)
        rollouts.collect(network, NUM_STEPS)
        return list(rollouts.collect(network, NUM_STEPS))


def assert_equal_rollouts(some: list[Rollout], others: list[Rollout]) -> None:
    for one, other in zip(some, others, strict=True):
        for field in fields(Rollout):
            ours, theirs = getattr(one, field.name), getattr(other, field.name)
            if isinstance(ours, torch.Tensor):
                assert torch.equal(ours, theirs), field.name
        assert one.metrics == other.metrics


def test_workers_share_the_environments_and_differ():
    first, second = collected()

    assert first.rewards.shape == (NUM_STEPS, 3)
    assert second.rewards.shape == (NUM_STEPS, 2)
    assert not torch.equal(first.inputs[:, :2], second.inputs)


def test_results_do_not_depend_on_threads():
    assert_equal_rollouts(collected(num_processes=1), collected())


@pytest.mark.soak
@pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
def test_results_do_not_depend_on_ray():
    assert_equal_rollouts(collected(ray="local"), collected())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"num_workers": 6}, "num_workers must be a whole number from 1 to 5"),
        ({"preempt_share": 0.6}, "preempt_share needs ray"),
    ],
)
def test_what_cannot_be_is_refused(options, complaint):
    with pytest.raises(ValueError, match=f"rollouts: {complaint}"):
        collected(**options)


def test_environments_of_a_worker_depend_on_seed_and_number_only():
    def first(seed: int, worker: int, num_threads: int = 1) -> bytes:
        environments = WorkerEnvironments(
            task=task(), num_envs=4, num_workers=2, seed=seed, num_threads=num_threads
        )
        environment = environments(worker)
        observations = environment.reset().tobytes()
        environment.close()
        return observations

    assert first(0, 0) == first(0, 0, num_threads=2)
    assert len({first(seed, worker) for seed in range(2) for worker in range(2)}) == 4
