"""Stages of a training of Hi-PPO on a world: the placement policy, then the move policy."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from agents.decision.held import held_topology
from agents.decision.run_epochs import epoch_situation
from agents.hi_ppo.coordinator import QUICK
from agents.hi_ppo.moves.move_policy import MovePolicy
from agents.hi_ppo.moves.move_training import MoveTrainer, MoveUpdate
from agents.hi_ppo.placement.config import PlacementConfig
from agents.hi_ppo.placement.placement_checkpoint import placement_payload
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


class TrainingStage(Protocol):
    """A training by updates, with what its loop, its calibration and its files need."""

    name: str
    columns: tuple[str, ...]
    log: str
    checkpoint: str
    first_step: int

    @property
    def num_updates(self) -> int:
        """Updates of the whole stage."""

    @property
    def update(self) -> int:
        """Updates made."""

    @property
    def step_count(self) -> int:
        """Updates made, those of earlier stages too."""

    def told(self, row: Mapping[str, float]) -> str:
        """Tell the figures of an update."""

    def payload(self) -> Mapping[str, object]:
        """Content of a checkpoint of the policy alone."""

    def advance(self) -> dict[str, float]:
        """Make an update; returns its figures, ``columns``."""

    def state(self) -> dict[str, object]:
        """Snapshot for a checkpoint."""

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Continue a snapshot of an equal stage; `CheckpointError` if it is none."""

    def choices(self) -> Choices:
        """Placements that the policy proposes now, with how often it does."""

    def recalibrate(self, corrections: Corrections) -> None:
        """Judge plans with other factors from now on."""


def proposed_now(
    policy: PlacementPolicy, worlds: tuple[SuiteWorld, ...], corrections: Corrections
) -> Choices:
    """Placements that a policy proposes for epochs of worlds, most frequent first."""
    proposer, counts = Proposer(policy, look_ahead=QUICK), Counter[Placement]()
    for index in range(_CHOICES):
        world = worlds[index % len(worlds)]
        topology = held_topology(world, index, index % world.num_epochs)
        situation = epoch_situation(world, topology, 0, None, corrections=corrections)
        counts[proposer.propose(situation, num_plans=1).plans[0].placement] += 1
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0].domain_of_layer)))


class PlacementStage:
    """Training of the placement policy on networks of the worlds."""

    name, log, checkpoint, first_step = "placement", PLACEMENT_CSV, PLACEMENT_PT, 0
    columns = tuple(one.name for one in fields(PlacementReport) if one.name != "update")

    def __init__(
        self,
        config: HiPpoConfig,
        around: WorldsAround,
        start: PlacementPolicy | None,
        at_work: ParallelMap,
    ) -> None:
        self._worlds = around.named
        self._corrections = NO_CORRECTIONS
        settings = PlacementConfig(
            num_updates=config.updates,
            worlds_per_update=config.worlds,
            samples_per_world=config.samples,
            curriculum=((around.named[0].num_domains, 0.0),),
        )
        if start is not None:
            settings = replace(settings, learning_rate=_FINE_RATE, final_learning_rate=_FINEST_RATE)
        self.trainer = PlacementTrainer(
            training_networks(config.seed, around),
            seed=config.seed,
            config=settings,
            start=start,
            at_work=at_work,
        )

    @property
    def num_updates(self) -> int:
        """Updates of the whole stage."""
        return self.trainer.config.num_updates

    @property
    def update(self) -> int:
        """Updates made."""
        return self.trainer.update

    @property
    def step_count(self) -> int:
        """Updates made."""
        return self.trainer.update

    def told(self, row: Mapping[str, float]) -> str:
        """Tell what orders cost, in logarithms."""
        return f"cost {row['mean_cost']:.3f}, best found {row['found_cost']:.3f}"

    def payload(self) -> Mapping[str, object]:
        """Content of a checkpoint of the policy alone."""
        return placement_payload(self.trainer.policy)

    def advance(self) -> dict[str, float]:
        """Make an update."""
        report = asdict(self.trainer.step())
        del report["update"]
        return report

    def state(self) -> dict[str, object]:
        """Snapshot for a checkpoint."""
        return self.trainer.state()

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Continue a snapshot."""
        self.trainer.load_state(state, source=source)

    def choices(self) -> Choices:
        """Placements that the policy proposes now."""
        return proposed_now(self.trainer.policy, self._worlds, self._corrections)

    def recalibrate(self, corrections: Corrections) -> None:
        """Judge plans with other factors from now on."""
        self._corrections = corrections
        self.trainer.recalibrate(corrections)


@dataclass(frozen=True, kw_only=True)
class MoveWorkplace:
    """Workers and folder for the episodes of the move policy."""

    folder: Path
    at_work: ParallelMap

    def trainer(self, stage: MoveStage, start: MovePolicy | None) -> MoveTrainer:
        """Make the trainer of a stage; its episodes are kept by what they are made of."""
        calibrated = "" if stage.corrections == NO_CORRECTIONS else f"-{_short(stage)}"
        paths = move_tables(stage, self.folder / f"{TABLES}{calibrated}", self.at_work)
        games = move_games(stage, paths, self.at_work)
        network = None if start is None else start.network
        return MoveTrainer(games, config=stage.training, seed=stage.seed, start=network)


class MoveTraining:
    """Training of the move policy on episodes of the worlds; new factors make new ones."""

    name, log, checkpoint = "moves", MOVES_CSV, MOVES_PT
    columns = tuple(one.name for one in fields(MoveUpdate) if one.name != "update_index")

    def __init__(
        self,
        config: HiPpoConfig,
        around: WorldsAround,
        *,
        placement: PlacementPolicy,
        start: MovePolicy | None,
        place: MoveWorkplace,
    ) -> None:
        self.first_step = config.updates
        self._placement, self._start, self._place = placement, start, place
        self._worlds = around.named
        stage = MoveStage(
            seed=config.seed,
            num_worlds=config.move_worlds,
            num_draws=config.move_draws,
            world_of=around,
        )
        training = replace(stage.training, num_updates=config.move_updates)
        self._stage = replace(stage, training=training)

    @cached_property
    def trainer(self) -> MoveTrainer:
        """The trainer, whose episodes are made when it is first needed."""
        return self._place.trainer(self._stage, self._start)

    @property
    def num_updates(self) -> int:
        """Updates of the whole stage."""
        return self._stage.training.num_updates

    @property
    def update(self) -> int:
        """Updates made."""
        return self.trainer.update

    @property
    def step_count(self) -> int:
        """Updates made, those of the placement policy too."""
        return self.first_step + self.trainer.update

    def told(self, row: Mapping[str, float]) -> str:
        """Tell what episodes cost."""
        return f"{row['cost']:.4f} times the time of the clairvoyant"

    def payload(self) -> Mapping[str, object]:
        """Content of a checkpoint of the policy alone."""
        return {"move_policy": MovePolicy(network=self.trainer.network).payload()}

    def advance(self) -> dict[str, float]:
        """Make an update."""
        report = asdict(next(self.trainer.run()))
        del report["update_index"]
        return report

    def state(self) -> dict[str, object]:
        """Snapshot for a checkpoint."""
        return self.trainer.state()

    def load_state(self, state: Mapping[str, Any], *, source: Path) -> None:
        """Continue a snapshot."""
        self.trainer.load_state(state, source=source)

    def choices(self) -> Choices:
        """Placements that the trained placement policy proposes."""
        return proposed_now(self._placement, self._worlds, self._stage.corrections)

    def recalibrate(self, corrections: Corrections) -> None:
        """Make the episodes with other factors, and continue on them."""
        if corrections == self._stage.corrections:
            return
        self._stage = replace(self._stage, corrections=corrections)
        before = self.__dict__.pop("trainer", None)
        if before is not None:
            self.trainer.load_state(before.state(), source=Path(MOVES_PT))


def _short(stage: MoveStage) -> str:
    """A word that tells factors apart."""
    return hashlib.sha256(stage.made_of.encode()).hexdigest()[:12]
