"""Workers and trainings whose factors change, as if these had been there from the start."""

import dataclasses
from pathlib import Path

import pytest
import torch
from recalibrating import (
    DRAWN,
    FACTORS,
    GIVEN,
    NUM_BEFORE,
    NUM_ENVS,
    SEED,
    TASKS,
    corrected,
    limited_simulator,
)

from agents.flat.batched_env import BatchedPlacementEnv
from agents.flat.recalibration import corrections_of, recalibrate
from agents.flat.task import PlacementTask
from agents.ppo.checkpoint import load_checkpoint, save_checkpoint
from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.ppo_config import PPOConfig
from agents.ppo.rollout import RolloutSource
from agents.ppo.rollout_source import LocalRollouts, environment_seed
from agents.ppo.trainer import PPOTrainer
from des import NO_CORRECTIONS


def source(*tasks: PlacementTask) -> LocalRollouts:
    environments = [
        BatchedPlacementEnv(task, num_envs=NUM_ENVS, seed=environment_seed(SEED, worker))
        for worker, task in enumerate(tasks)
    ]
    return LocalRollouts(environments, seed=SEED)


def network_for(rollouts: RolloutSource) -> ActorCritic:
    architecture = NetworkArchitecture(
        observation_size=rollouts.observation_size,
        action_sizes=rollouts.action_sizes,
        ordinal_starts=rollouts.ordinal_starts,
        hidden_sizes=(8,),
    )
    return ActorCritic(architecture, torch.Generator().manual_seed(0))


def collected(rollouts: RolloutSource, num_steps: int = NUM_BEFORE) -> list[list[object]]:
    """The next rollouts of a policy that never changes, to the last bit."""
    return [
        [
            value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value)
            for value in (getattr(one, field.name) for field in dataclasses.fields(one))
        ]
        for one in rollouts.collect(network_for(rollouts), num_steps)
    ]


@pytest.mark.parametrize("name", TASKS)
def test_recalibrated_workers_are_those_that_have_always_had_the_factors(name):
    """The policy acts on observations and random numbers, and neither depends on the factors."""
    task = TASKS[name]
    rollouts, always = source(task, task), source(corrected(task), corrected(task))
    assert collected(rollouts) != collected(always)

    recalibrate(rollouts, FACTORS)

    assert collected(rollouts) == collected(always)
    assert str(rollouts.state()) == str(always.state())


@pytest.mark.parametrize("name", TASKS)
def test_recalibration_with_the_factors_in_force_changes_nothing(name):
    """Nor does one there and back."""
    task = corrected(TASKS[name])
    rollouts, others, alone = source(task, task), source(task, task), source(task, task)
    for one in (rollouts, others, alone):
        collected(one)

    recalibrate(rollouts, FACTORS)
    recalibrate(others, NO_CORRECTIONS)
    recalibrate(others, FACTORS)

    assert str(rollouts.state()) == str(others.state()) == str(alone.state())
    assert collected(rollouts) == collected(others) == collected(alone)


def test_recalibration_moves_nothing_that_others_hold():
    """A state that was taken before leads back to the factors of then."""
    rollouts = source(DRAWN, DRAWN)
    state = rollouts.state()
    expected = collected(rollouts)

    recalibrate(rollouts, FACTORS)
    assert corrections_of(rollouts) == FACTORS
    rollouts.load_state(state)

    assert corrections_of(rollouts) == NO_CORRECTIONS
    assert collected(rollouts) == expected


def test_workers_that_disagree_have_no_common_factors():
    rollouts = source(DRAWN, DRAWN, corrected(DRAWN))

    with pytest.raises(
        ValueError, match=r"of worker 2 must have the corrections of worker 0, .*1\.3"
    ):
        corrections_of(rollouts)

    recalibrate(rollouts, FACTORS)
    assert corrections_of(rollouts) == FACTORS


def test_one_worker_that_cannot_go_on_leaves_all_where_they_were():
    """The first worker has changed when the second refuses."""
    limited = dataclasses.replace(GIVEN, simulator=limited_simulator)
    rollouts, twin = source(GIVEN, limited), source(GIVEN, limited)
    for one in (rollouts, twin):
        collected(one)

    with pytest.raises(ArithmeticError, match="out of its depth"):
        recalibrate(rollouts, FACTORS)

    assert corrections_of(rollouts) == NO_CORRECTIONS
    assert collected(rollouts) == collected(twin)


class Uncorrected(BatchedPlacementEnv):
    """One whose state is its seats alone."""

    def state(self) -> dict[str, object]:
        return {"seats": super().state()["seats"]}


def test_environments_without_factors_are_refused():
    rollouts = LocalRollouts([Uncorrected(DRAWN, num_envs=NUM_ENVS, seed=SEED)], seed=SEED)

    message = "environment of worker 0 must have corrections in its state, got seats"
    with pytest.raises(ValueError, match=message):
        recalibrate(rollouts, FACTORS)
    with pytest.raises(ValueError, match=message):
        corrections_of(rollouts)


def trainer_of(task: PlacementTask) -> PPOTrainer:
    config = PPOConfig(num_steps=4, num_minibatches=2, num_epochs=2, hidden_sizes=(8,))
    return PPOTrainer(source(task, task), config, SEED, total_steps=6 * 2 * NUM_ENVS * 4)


def saved(trainer: PPOTrainer, path: Path) -> bytes:
    save_checkpoint(path, trainer.state())
    return path.read_bytes()


@pytest.mark.parametrize("name", ["drawn", "greedy"])
@pytest.mark.parametrize("num_after", [0, 2])
def test_interrupted_training_goes_on_under_the_factors_in_force(name, num_after, tmp_path):
    """The new trainer is one of the task as built, which its fingerprint stays that of."""
    task = TASKS[name]
    fingerprint = task.fingerprint()
    trainer, never = trainer_of(task), trainer_of(task)
    for one in (trainer, never):
        one.update()
        one.update()
    recalibrate(trainer.rollouts, FACTORS)
    for _ in range(num_after):
        trainer.update()
    saved(trainer, tmp_path / "middle.safetensors")
    resumed = trainer_of(task)
    resumed.load_state(load_checkpoint(tmp_path / "middle.safetensors"))
    assert corrections_of(resumed.rollouts) == FACTORS
    for one in (trainer, never, resumed):
        while not one.finished:
            one.update()

    expected = saved(trainer, tmp_path / "straight.safetensors")
    assert saved(resumed, tmp_path / "resumed.safetensors") == expected
    assert not torch.equal(trainer.network.parameter, never.network.parameter)
    assert task.fingerprint() == fingerprint
