"""Stages of a training of Hi-PPO on a world: the placement policy, then the move policy."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from agents.decision.frozen_network import freeze_topology
from agents.decision.run_epochs import epoch_situation
from agents.decision.situation import TIME_ONLY
from agents.hi_ppo.coordinator import QUICK
from agents.hi_ppo.moves.move_env import MoveGame
from agents.hi_ppo.moves.move_policy import MovePolicy, move_network_payload
from agents.hi_ppo.moves.move_training import MoveTrainer, MoveUpdate
from agents.hi_ppo.placement.config import PlacementConfig
from agents.hi_ppo.placement.placement_checkpoint import PlacementNet, placement_payload
from agents.hi_ppo.placement.placement_policy import PlacementPolicy
from agents.hi_ppo.placement.placement_training import PlacementReport, PlacementTrainer
from agents.hi_ppo.placement.proposals import Proposer
from calibration.loop import Choices
from des import NO_CORRECTIONS, Corrections, Placement
from des.base.parallel_map import ParallelMap
from scenarios.suites import SuiteWorld
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.east_west.worlds import WorldsAround
from scenarios.train.hi_ppo_files import MOVES_CSV, MOVES_PT, PLACEMENT_CSV, PLACEMENT_PT, TABLES
from scenarios.train.hi_ppo_moves import MoveStage, move_games, move_tables
from scenarios.train.hi_ppo_networks import training_networks

_FINE_RATE, _FINEST_RATE = 2e-4, 2e-5
"""Learning rates from shipped weights, at the start and at the end: a fifth of those from new ones
for placements."""

_CHOICES = 32  # situations whose placements represent the policy to a calibration

TrainerT = TypeVar("TrainerT", bound=PlacementTrainer | MoveTrainer)


@dataclass(frozen=True, kw_only=True)
class StageKind(Generic[TrainerT]):
    """Kind of a stage.

    Attributes
    ----------
    name, log, checkpoint, columns
        Its name, its files, and the columns of its log that a repeated run reproduces.
    tell
        Figures of a row of the log, for people.
    payload
        Content of a checkpoint of the policy alone.
    """

    name: str
    log: str
    checkpoint: str
    columns: tuple[str, ...]
    tell: Callable[[Mapping[str, float]], str]
    payload: Callable[[TrainerT], Mapping[str, object]]


PLACEMENT = StageKind[PlacementTrainer](
    name="placement",
    log=PLACEMENT_CSV,
    checkpoint=PLACEMENT_PT,
    columns=tuple(one.name for one in fields(PlacementReport) if one.name != "update"),
    tell=lambda row: f"cost {row['mean_cost']:.3f}, best found {row['found_cost']:.3f}",
    payload=lambda trainer: placement_payload(trainer.policy),
)
MOVES = StageKind[MoveTrainer](
    name="moves",
    log=MOVES_CSV,
    checkpoint=MOVES_PT,
    columns=tuple(one.name for one in fields(MoveUpdate) if one.name != "update_index"),
    tell=lambda row: f"{row['cost']:.4f} times the time of the clairvoyant",
    payload=lambda trainer: {"move_policy": move_network_payload(trainer.network)},
)


@dataclass(kw_only=True)
class TrainingStage(Generic[TrainerT]):
    """A stage of a training, as its loop and its calibration see it.

    Attributes
    ----------
    first_step
        Updates of earlier stages.
    make
        Makes the trainer, which judges by the factors in force, when it is first needed.
    adapt
        Lets a trainer judge by other factors.
    policy
        Policy whose placements represent the stage to a calibration.
    """

    kind: StageKind[TrainerT]
    worlds: tuple[SuiteWorld, ...]
    first_step: int
    make: Callable[[Corrections], TrainerT]
    adapt: Callable[[TrainerT, Corrections], None]
    policy: Callable[[TrainerT], PlacementPolicy]
    corrections: Corrections = NO_CORRECTIONS

    @cached_property
    def trainer(self) -> TrainerT:
        """The trainer."""
        return self.make(self.corrections)

    @property
    def step_count(self) -> int:
        """Updates made, those of earlier stages too."""
        return self.first_step + self.trainer.update

    def step(self) -> dict[str, float]:
        """Make an update; returns its figures, the columns of the kind."""
        report: Any = self.trainer.step()
        return {name: getattr(report, name) for name in self.kind.columns}

    def choices(self) -> Choices:
        """Placements that the policy proposes for epochs of the worlds, most frequent first."""
        proposer = Proposer(self.policy(self.trainer), look_ahead=QUICK)
        counts = Counter[Placement]()
        for index in range(_CHOICES):
            world = self.worlds[index % len(self.worlds)]
            topology = freeze_topology(world, index, index % world.num_epochs)
            situation = epoch_situation(world, topology, 0, None, corrections=self.corrections)
            counts[proposer.propose(situation, num_plans=1).plans[0].placement] += 1
        return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0].domain_of_layer)))

    def recalibrate(self, corrections: Corrections) -> None:
        """Judge by other factors from now on."""
        if corrections == self.corrections:
            return
        self.corrections = corrections
        if "trainer" in self.__dict__:
            self.adapt(self.trainer, corrections)


def placement_stage(
    config: HiPpoConfig,
    around: WorldsAround,
    start: PlacementNet | None,
    at_work: ParallelMap,
) -> TrainingStage[PlacementTrainer]:
    """Training of the placement policy on networks of the worlds."""
    settings = PlacementConfig(
        num_updates=config.updates,
        worlds_per_update=config.worlds,
        samples_per_world=config.samples,
        curriculum=((around.named[0].num_domains, 0.0),),
    )
    if start is not None:
        settings = replace(settings, learning_rate=_FINE_RATE, final_learning_rate=_FINEST_RATE)

    def make(corrections: Corrections) -> PlacementTrainer:
        trainer = PlacementTrainer(
            training_networks(config.seed, around),
            seed=config.seed,
            config=settings,
            start=start,
            preference=None if config.preference == TIME_ONLY else config.preference,
            at_work=at_work,
        )
        trainer.recalibrate(corrections)
        return trainer

    return TrainingStage(
        kind=PLACEMENT,
        worlds=around.named,
        first_step=0,
        make=make,
        adapt=PlacementTrainer.recalibrate,
        policy=lambda trainer: trainer.policy,
    )


def moves_stage(
    config: HiPpoConfig,
    around: WorldsAround,
    *,
    placement: PlacementPolicy,
    start: MovePolicy | None,
    folder: Path,
    at_work: ParallelMap,
) -> TrainingStage[MoveTrainer]:
    """Training of the move policy on episodes of the worlds; new factors make new ones.

    Episodes are kept in the folder by what they are made of.
    """
    first = MoveStage(
        seed=config.seed,
        num_worlds=config.move_worlds,
        num_draws=config.move_draws,
        world_of=around,
        preference=config.preference,
    )
    training = replace(first.training, num_updates=config.move_updates)

    def games(corrections: Corrections) -> list[MoveGame]:
        stage = replace(first, corrections=corrections)
        digest = hashlib.sha256(stage.made_of.encode()).hexdigest()[:12]
        name = TABLES if corrections == NO_CORRECTIONS else f"{TABLES}-{digest}"
        return move_games(stage, move_tables(stage, folder / name, at_work), at_work)

    return TrainingStage(
        kind=MOVES,
        worlds=around.named,
        first_step=config.updates,
        make=lambda corrections: MoveTrainer(
            games(corrections),
            config=training,
            seed=config.seed,
            start=None if start is None else start.network,
        ),
        adapt=lambda trainer, corrections: trainer.play_on(games(corrections)),
        policy=lambda _: placement,
    )
