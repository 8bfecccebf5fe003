"""Flat PPO on one world of a suite: one policy places all layers, without any of Hi-PPO's parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.decision.situation import Decision, Situation
from des import Link
from des.base.lazy import lazy_imports
from scenarios.suites import LoadLaw, SuiteWorld
from scenarios.suites.laws import uniform_law
from scenarios.train.training_config import DISCOUNT_OF_COSTLY_CHANGES

with lazy_imports(__name__):
    from agents.flat import batched_env, policy_planner, worlds
    from agents.flat import task as flat_task_settings
    from agents.ppo import ppo_config, trained_policy
    from agents.ppo import trainer as ppo_trainer
    from scenarios.study.targets import after_training


NUM_ENVS, STEPS_PER_ROLLOUT = 512, 16
LEARNING_RATE = 1e-3
"""As `scenarios.east_west_train` by default."""


def own_course(world: SuiteWorld) -> SuiteWorld:
    """Return the world as a flat policy is trained on it: its links and load move otherwise.

    Bandwidths are uniform within +-30 % of the base figures and latencies within +-20 %, redrawn
    once in as many epochs as the suite holds its load for; the domains keep their nominal speed.
    """
    dwell = world.load.dwell_epochs
    return replace(
        world,
        name=f"{world.name}-own",
        topology=replace(world.topology, dynamics=uniform_law(dwell * world.epoch_s)),
        law="uniform",
        load=LoadLaw(low_factor=1.0, high_factor=1.0, dwell_epochs=dwell),
    )


def flat_task(world: SuiteWorld, schedule: str) -> flat_task_settings.PlacementTask:
    """Make the task of `own_course`: a decision each time that the links have moved.

    Time alone is rewarded, changes are paid for, and an episode is as long as a draw of the world.
    """
    dwell = world.load.dwell_epochs
    law = replace(uniform_law(world.epoch_s), update_interval_s=None)  # held for the whole decision
    return flat_task_settings.PlacementTask(
        world=worlds.GivenWorld(topology=replace(world.topology, dynamics=law)),
        workload=world.workload,
        schedule=schedule,
        actions="order_split",
        weights=flat_task_settings.RewardWeights(time=1.0, utilisation=0.0, communication=0.0),
        epochs_per_episode=max(1, world.num_epochs // dwell),
        iterations_per_epoch=dwell * world.iterations_per_epoch,
        replacement=world.replacement,
    )


@dataclass(frozen=True, kw_only=True)
class Flat:
    """A flat policy, the task that it was trained on, and the last update of the training."""

    planner: policy_planner.PolicyPlanner
    task: flat_task_settings.PlacementTask
    last: ppo_trainer.UpdateReport


def train_flat(
    task: flat_task_settings.PlacementTask, *, seed: int, steps: int, num_envs: int = NUM_ENVS
) -> Flat:
    """Train by PPO; equal arguments give equal policies."""
    config = ppo_config.PPOConfig(
        num_steps=STEPS_PER_ROLLOUT,
        learning_rate=LEARNING_RATE,
        discount=DISCOUNT_OF_COSTLY_CHANGES,
    )
    environment = batched_env.BatchedPlacementEnv(task, num_envs=num_envs, seed=seed, num_workers=1)
    trainer = ppo_trainer.PPOTrainer.local(environment, config, seed, steps)
    while not trainer.finished:
        last = trainer.update()
    planner = policy_planner.PolicyPlanner(
        trained_policy.TrainedPolicy(network=trainer.network), task
    )
    return Flat(planner=planner, task=task, last=last)


class FlatScheduler:
    """Lets a flat policy decide again whenever links have moved, as in its training."""

    def __init__(self, flat: Flat, *, chooses_depth: bool = False) -> None:
        self._policy = after_training.FlatPolicy(
            flat.planner, flat.task, chooses_depth=chooses_depth
        )
        self._links: tuple[Link, ...] | None = None

    def begin(self) -> None:
        """Forget the links of the last draw."""
        self._links = None

    def decide(self, situation: Situation) -> Decision:
        """Return the plan for the epoch."""
        last, links = situation.last_plan, situation.topology.links
        if last is not None and links == self._links:
            return Decision(plan=last, level="nothing")
        self._links = links
        return self._policy.decide(situation)
