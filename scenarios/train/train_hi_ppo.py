"""Train Hi-PPO on the training suite: the placement policy, then the move policy if asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, parse, to_dict
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import suite
from scenarios.train import update_loop
from scenarios.train.hi_ppo_files import (
    MOVES_CSV,
    MOVES_PT,
    PLACEMENT_CSV,
    PLACEMENT_PT,
    POLICIES_PT,
)
from scenarios.train.hi_ppo_networks import training_networks
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    from rich.console import Console

    from agents.hi_ppo import policies as hi_ppo_policies
    from agents.hi_ppo.placement import config as placement_settings
    from agents.hi_ppo.placement import placement_checkpoint, placement_training
    from agents.hi_ppo.placement.config import PlacementConfig
    from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
    from agents.hi_ppo.policies import TrainedRange
    from agents.ppo import checkpoint, devices, trained_policy
    from des.base import console as base_console
    from des.base.parallel_map import ParallelMap
    from scenarios.train import hi_ppo_moves, workplace
    from scenarios.train.hi_ppo_moves import MoveStage


_EVERY = update_loop.UPDATES_PER_CHECKPOINT
_EPILOG = f"""\
Networks are those of suite("train"): at random epochs of random draws for the placement policy,
whole draws for the move policy. The same seed gives the same weights to the last bit, whatever the
number of workers, on the same machine and versions.

examples:
  {TRAIN} moves --seed 0 --out runs/hi_ppo-0
  {TRAIN} placement --imitation 0 --out runs/pure-0
  {TRAIN} moves --seed 0 --out runs/hi_ppo-0 --resume

files written to --out:
  config.json    settings, versions and source revision
  {PLACEMENT_CSV}  one row per update of the placement policy
  {PLACEMENT_PT}   the placement policy and the state of its training, every {_EVERY} updates
  tables/        episodes that the move policy is trained on; may be deleted afterwards
  {MOVES_CSV}      one row per update of the move policy
  {MOVES_PT}       the move policy and the state of its training, every {_EVERY} updates
  {POLICIES_PT}      both, and the range of the worlds: for scenarios.kpi, agents.decide and others

--resume continues the run in --out from its checkpoints, to the same bytes as a run that was not
interrupted; rows of logs after a checkpoint are cut. Episodes that are there are not made again.

exit codes: 0 done; 2 a flag is wrong, or the folder holds files or cannot be written;
  {EXIT_CODES}
"""

_NUM_RANGED = 432  # a whole block of the suite
_WHERE_RUN = frozenset({"out", "workers", "ray", "resume"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings(JsonFlag):
    """Settings of a training of the placement policy."""

    prog: ClassVar[str] = f"{TRAIN} placement"

    out: Path = option(Path("runs/hi_ppo"), "new or empty folder of the run")
    seed: int = option(0, "seed of everything")
    updates: int = option(800, "updates of the placement policy")
    worlds: int = option(48, "networks of an update")
    samples: int = option(16, "orders drawn for each network")
    rounds: int = option(3, "rounds of messages between domains; 0: none")
    imitation: float = option(0.5, "weight of the best orders that a look-ahead finds; 0: none")
    sees_preference: bool = option(
        True, "give the policy the preference as an input (it is always part of the cost)"
    )
    workers: int = option(2, "processes that make episodes; they change nothing but the time")
    ray: str | None = option(
        None, "Ray that makes episodes: local, auto or HOST:PORT; none: processes of this machine"
    )
    resume: bool = option(False, "continue the run in --out with its original flags")

    def __post_init__(self) -> None:
        require_seed(self.prog, "seed", self.seed)
        for name in ("updates", "worlds", "samples", "workers"):
            require_count(self.prog, name, getattr(self, name))
        placement_config(self)  # refuses what it cannot train with


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PlacementSettings):
    """Settings of a training of both policies."""

    prog: ClassVar[str] = f"{TRAIN} moves"

    move_worlds: int = option(200, "worlds that the move policy is trained on; 0: no move policy")
    move_draws: int = option(3, "episodes of each of them")
    move_updates: int = option(150, "updates of the move policy")

    def __post_init__(self) -> None:
        PlacementSettings.__post_init__(self)
        for name in ("move_draws", "move_updates"):
            require_count(self.prog, name, getattr(self, name))
        if self.move_worlds:
            require_count(self.prog, "move_worlds", self.move_worlds)


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    kind = PlacementSettings if prog == PlacementSettings.prog else Config
    config = parse(kind, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG)
    if not isinstance(config, Config):  # no move policy
        given = {one.name: getattr(config, one.name) for one in fields(config)}
        config = Config(**given, move_worlds=0)
    devices.use_torch_threads(1)
    with (
        workplace.workplace(config.workers, config.ray) as at_work,
        RunFolder.begun_or_resumed(
            config.out,
            _recorded(config),
            prog,
            resume=config.resume,
            unrecorded=_recorded(Config()),
        ) as folder,
    ):
        return _train(config, folder, base_console.FittedConsole(), at_work)


def _train(config: Config, folder: RunFolder, console: Console, at_work: ParallelMap) -> int:
    """Train what is not trained yet, and put it together."""
    begin_s = time.perf_counter()
    placement, moves = _placement(config, folder, console, at_work), None
    if placement is None:
        return INTERRUPTED
    if config.move_worlds:
        moves = hi_ppo_moves.train_move_stage(move_stage(config), folder, console, at_work)
        if moves is None:
            return INTERRUPTED
    policies = hi_ppo_policies.Policies(
        placement=placement,
        moves=moves,
        trained_range=trained_range(config.seed),
        training=_told(config),
    )
    policies.save(folder.path / POLICIES_PT)
    digest = hi_ppo_policies.digest_of(folder.path / POLICIES_PT)
    DOCUMENT.add(policies=folder.path / POLICIES_PT, sha256=digest)
    sys.stdout.write(
        f"trained in {time.perf_counter() - begin_s:.0f} s\n"
        f"policies: {folder.path / POLICIES_PT}, SHA-256 {digest}\n"
    )
    return 0


def _recorded(config: Config) -> dict[str, object]:
    """Settings that determine the result; neither where it is written nor by how many."""
    plain = to_dict(config)
    return {name: plain[name] for name in plain if name not in _WHERE_RUN}


def _told(config: Config) -> dict[str, object]:
    """Training settings kept in the checkpoint; inputs of its policy are in the architecture."""
    record = _recorded(config)
    del record["sees_preference"]
    return record


def _placement(
    config: Config, folder: RunFolder, console: Console, at_work: ParallelMap
) -> PlacementNet | None:
    """Train the placement policy from where the folder has it; one that is finished is read.

    None if the training was stopped before its end.
    """
    path, log_path = folder.path / PLACEMENT_PT, folder.path / PLACEMENT_CSV
    report = placement_training.PlacementReport
    state = checkpoint.load_checkpoint(path) if path.exists() else None
    if state is not None and _update_of(state, config, path) == config.updates:
        with update_loop.opened_log(log_path, report, num_updates=config.updates) as log:
            if log.note:
                console.print(log.note, soft_wrap=True, markup=False)
        return placement_checkpoint.placement_from_payload(state, source=path)
    trainer = placement_training.PlacementTrainer(
        training_networks(config.seed),
        seed=config.seed,
        architecture=placement_settings.PlacementArchitecture(
            num_rounds=config.rounds, sees_preference=config.sees_preference
        ),
        config=placement_config(config),
        at_work=at_work,
    )
    outcome = update_loop.train_updates(
        trainer,
        path,
        log_path,
        report,
        name="placement",
        tell=lambda one: f"cost {one.mean_cost:.3f}, best found {one.found_cost:.3f}",
        console=console,
    )
    if not outcome.is_complete:
        return None
    if (last := outcome.last) is not None:
        console.print(
            f"placement: orders drawn cost {last.mean_cost - last.found_cost:.3f} more than the "
            "best found from them, in logarithms of time",
            soft_wrap=True,
        )
    return trainer.policy


def _update_of(state: Mapping[str, object], config: Config, path: Path) -> int:
    try:
        return trained_policy.update_of(state, most=config.updates)
    except checkpoint.CheckpointError as error:
        raise checkpoint.CheckpointError(f"checkpoint {path}: {error}") from error


def move_stage(config: Config) -> MoveStage:
    """Worlds and episodes for training the move policy."""
    stage = hi_ppo_moves.MoveStage(
        seed=config.seed, num_worlds=config.move_worlds, num_draws=config.move_draws
    )
    return replace(stage, training=replace(stage.training, num_updates=config.move_updates))


@cache
def trained_range(seed: int) -> TrainedRange:
    """Range of the first worlds of the training; later ones are drawn from the same."""
    worlds = suite("train").worlds(_NUM_RANGED, seed)
    return hi_ppo_policies.TrainedRange.of([(world.topology, world.workload) for world in worlds])


def placement_config(config: PlacementSettings) -> PlacementConfig:
    """Settings of the trainer."""
    settings = replace(
        placement_settings.PlacementConfig(),
        num_updates=config.updates,
        worlds_per_update=config.worlds,
        samples_per_world=config.samples,
        imitation=config.imitation,
    )
    return settings if config.imitation else replace(settings, look_ahead_budget=0)
