"""Settings of the training of Hi-PPO on a named world: its flags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.decision.situation import Preference
from agents.search.objective import preference_of
from agents.trainers.table import DEFAULT_TRAINER, TRAINERS, trainer_named
from des.base.checks import (
    MOST_ITEMS,
    require_count,
    require_positive,
    require_seed,
)
from des.base.command import UsageError
from des.base.flags import option
from des.dynamics import DYNAMICS
from des.plan.replacement import RESTART_S
from des.world.domain_load import LOADS_HELP
from scenarios.train.training_config import CALIBRATIONS, PROG, TrainingFlags, list_recorded_flags

POLICIES = ("hi_ppo", "flat")
STARTS = ("shipped", "scratch")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiPpoConfig(TrainingFlags):
    """Flags of a training."""

    policy: str = option(
        "hi_ppo", "what is trained: hi_ppo or flat; --policy flat --help shows the flags of flat"
    )
    dynamics: str | None = option(
        None, f"law of the links: one of {', '.join(DYNAMICS)}; none: as the world says"
    )
    loads: str | None = option(None, LOADS_HELP, is_file=True)
    epoch_s: float | None = option(
        None, "seconds from one decision to the next; none: 1200, or 10 iterations if that is more"
    )
    restart_s: float = option(RESTART_S, "seconds that any change of plan takes")
    pays_bytes: bool = option(True, "whether a change of plan has to move the model state")
    objective: str = option(
        "time",
        "what policies learn and decide for: time, or weights w1,w2,w3 as of eastwest decide; "
        "rules and tables of time stay by time",
    )
    trainer: str = option(
        DEFAULT_TRAINER,
        f"program that the plan is bound for at the end, one of {', '.join(TRAINERS)}; policies "
        "learn, and episodes are judged, among perfect devices whatever it is",
    )
    calibration_interval_updates: int | None = option(
        None, "updates from one calibration to the next; none: a third of all"
    )
    from_: str = option("shipped", "first weights: shipped (seed 0), or scratch for new ones")
    updates: int = option(120, "updates of the placement policy")
    worlds: int = option(24, "networks of an update")
    samples: int = option(16, "orders drawn for each network")
    move_worlds: int = option(24, "worlds that the move policy is trained on")
    move_draws: int = option(3, "episodes of each of them")
    move_updates: int = option(60, "updates of the move policy")
    num_epochs: int = option(64, "decisions of an episode")
    validation_draws: int = option(10, "episodes of each block by which weights are chosen")
    evaluation_draws: int = option(8, "held-out episodes of each block to judge on")
    evaluation_seed: int = option(1_000_000, "seed of the held-out episodes")
    workers: int = option(
        2, "processes that make and judge episodes; they change nothing but the time"
    )
    ray: str | None = option(
        None, "Ray for that work: local, auto or HOST:PORT; none: processes of this machine"
    )
    kpi: bool = option(True, "measure the targets of the documents on the world of the run too")

    def __post_init__(self) -> None:
        for name in (
            *("microbatches", "updates", "worlds", "move_worlds", "move_draws", "move_updates"),
            *("num_epochs", "validation_draws", "evaluation_draws", "calibration_placements"),
            "workers",
        ):
            require_count(PROG, name, getattr(self, name), MOST_ITEMS)
        if self.calibration_interval_updates is not None:
            interval = self.calibration_interval_updates
            require_count(PROG, "calibration_interval_updates", interval)
        for name in ("seed", "evaluation_seed"):
            require_seed(PROG, name, getattr(self, name))
        require_positive(PROG, "calibration_bound", self.calibration_bound)
        if self.epoch_s is not None:
            require_positive(PROG, "epoch_s", self.epoch_s)
        trainer_named(self.trainer)
        preference_of(PROG, self.objective)
        if self.samples < 2:
            raise UsageError(f"{PROG}: samples must be at least 2, got {self.samples}")
        allowed = {
            "policy": POLICIES[:1],
            "from": STARTS,
            "calibration": CALIBRATIONS,
            "dynamics": (*DYNAMICS, None),
        }
        for name, words in allowed.items():
            given = getattr(self, "from_" if name == "from" else name)
            if given not in words:
                known = ", ".join(word or "none" for word in words)
                raise UsageError(f"{PROG}: {name} must be one of {known}; got {given!r}")

    @property
    def preference(self) -> Preference:
        """Weights of the objective."""
        return preference_of(PROG, self.objective)

    @property
    def is_from_shipped(self) -> bool:
        """Whether the training begins from the shipped weights."""
        return self.from_ == "shipped"


QUICK_SIZES: dict[str, Any] = {
    "updates": 4,
    "worlds": 2,
    "samples": 2,
    "move_worlds": 1,
    "move_draws": 1,
    "move_updates": 4,
    "num_epochs": 6,
    "validation_draws": 2,
    "evaluation_draws": 2,
    "calibration_placements": 10,
    "workers": 1,
    "kpi": False,
}
"""Sizes of a run of seconds, where the user gives none."""


def list_recorded_settings(config: HiPpoConfig) -> dict[str, object]:
    """Return what a run folder keeps of its configuration: all that results depend on.

    Input files appear by the names of the copies that the folder keeps of them.
    """
    loads = None if config.loads is None else f"loads{Path(config.loads).suffix}"
    return list_recorded_flags(replace(config, loads=loads))
