"""Calibration of the simulator under the flat training: its steps and its environments."""

from dataclasses import dataclass

from agents.flat.policy_plans import placements_of
from agents.flat.recalibration import recalibrate
from agents.flat.task import PlacementTask
from agents.ppo.trainer import PPOTrainer
from calibration.loop import Choices, LoggedSubject, Subject, Timetable, default_interval_steps
from des import Corrections
from scenarios.train.calibration_subject import subject_of
from scenarios.train.training_config import Config

MOST_CHOICES = 256
"""Last decisions that represent the policy to a calibration."""


@dataclass(frozen=True, kw_only=True)
class FlatTraining:
    """A flat training, as its calibration follows it."""

    task: PlacementTask
    trainer: PPOTrainer

    @property
    def step_count(self) -> int:
        """Decisions made."""
        return self.trainer.step_count

    def choices(self) -> Choices:
        """Placements of the last decisions."""
        return placements_of(self.task, self.trainer.recent_actions(MOST_CHOICES))

    def recalibrate(self, corrections: Corrections) -> None:
        """Let all environments simulate with other factors."""
        recalibrate(self.trainer.rollouts, corrections)


def flat_timetable(config: Config) -> Timetable:
    """Return the steps at which a flat training is calibrated."""
    return Timetable(
        total_steps=config.steps,
        interval_steps=config.calibration_interval_steps or default_interval_steps(config.steps),
        steps_per_update=config.num_envs * config.steps_per_rollout,
    )


def flat_subject(config: Config, task: PlacementTask) -> Subject | LoggedSubject | str:
    """Say what is calibrated of a task, or why nothing is; errors are those of `subject_of`."""
    if task.backend is not None:
        return f"as {config.backend} measures the iterations"
    world = task.world.world(0)
    if config.calibration == "ns3" and world.transport.packets.connections == "fresh":
        raise ValueError(
            "calibration ns3 of --policy flat: connections of transport.packets must be reused, as "
            "environments know no law of the transport; got fresh"
        )
    return subject_of(config, topology=world, workload=task.workload, schedule=task.schedule)
