"""Settings of the flat training: its flags, and values derived from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from des.base.checks import (
    MOST_ITEMS,
    require_count,
    require_fraction,
    require_one_of,
    require_positive,
    require_seed,
)
from des.base.command import UsageError
from des.base.flags import JsonFlag, option, to_dict
from des.base.lazy import lazy_imports
from des.plan.replacement import RESTART_S, Replacement
from des.worlds.reading import topology_path
from des.worlds.world_flags import ModelFlags, NetworkFlag
from scenarios.frame.outputs import figures_option, parquet_option

with lazy_imports(__name__):
    from agents.flat import backends
    from agents.ppo import devices
    from agents.ppo import ppo_config as ppo_settings
    from agents.ppo.ppo_config import PPOConfig


Endpoints = Literal["overlapped", "one_in_flight", "blocking"]
"""Rules of senders, see `des.world.transport.Transport`."""

PROG = "python -m scenarios.east_west_train"
REPLACEMENTS = ("none", "restart", "full")
CALIBRATIONS = ("auto", "none", "pairwise", "aware", "unaware", "ns3", "runs")
DISCOUNT_OF_COSTLY_CHANGES = 0.9
"""Looks ahead about ten epochs, 1 / (1 - 0.9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlags(ModelFlags, NetworkFlag, JsonFlag):
    """Flags of both trainings on a world: its job, and how the simulator is calibrated."""

    microbatches: int = option(32, "microbatches per iteration")
    corrections: Path | None = option(
        None, "calibrated factors for the simulator, a JSON file", is_file=True
    )
    calibration: str = option(
        "auto",
        "reference that keeps the simulator faithful: pairwise, aware, unaware, ns3, runs (logs of "
        "training) or none; auto: pairwise, but none with --corrections or on worlds that "
        "ASTRA-sim cannot express",
    )
    calibration_logs: Path | None = option(
        None, "with --calibration runs: log or folder of logs, looked at after every update"
    )
    calibration_placements: int = option(32, "placements for each calibration")
    calibration_bound: float = option(
        0.02, "mean error of iteration times above which the simulator is recalibrated"
    )
    seed: int = option(0, "seed of the training")
    out: Path | None = option(None, "run folder; none: the next free runs/east_west-NNN")
    resume: bool = option(False, "continue the run in --out, or the newest one")
    quick: bool = option(False, "a run of seconds that shows all steps and learns little")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(TrainingFlags):
    """Flags of a training."""

    policy: str = option(
        "flat", "what is trained: flat; --help without this flag shows the flags of hi_ppo"
    )
    backend: str = option(
        "des",
        "what judges placements in the environment: des, astra-unaware, astra-aware, "
        "astra-pairwise or ns3; others than des, of which a step takes longer, train on fewer "
        "unless --steps is given, and are not calibrated",
    )
    schedule: str = option("1f1b", "pipeline schedule")
    endpoints: Endpoints | None = option(
        None,
        "overrule transport.endpoints of the network; --calibration aware or unaware by the "
        "original's programs needs one_in_flight",
        default_text="as the network has it",
    )
    actions: str = option("order_split", "action encoding: order_split or per_layer")
    calibration_interval_steps: int | None = option(
        None,
        "decisions from one calibration to the next; none: a third of --steps, from 5 million "
        "--steps on 5 million",
    )
    epochs_per_episode: int = option(8, "decisions from one even split to the next")
    iterations_per_epoch: int = option(1, "iterations for which a placement is kept")
    replacement: str = option(
        "none",
        "cost of a changed placement: none; restart, the time of one; full, also the model "
        "state over the links",
    )
    restart_s: float = option(RESTART_S, "seconds of a restart, where a change costs one")
    steps: int = option(1_000_000, "decisions to train on")
    num_envs: int = option(512, "environments stepped together")
    steps_per_rollout: int = option(16, "steps of each environment in a rollout")
    learning_rate: float = option(1e-3, "initial learning rate; falls to 0")
    entropy_coefficient: float = option(0.01, "initial weight of the entropy; falls to 0")
    discount: float | None = option(
        None,
        "discount of the next epoch's rewards; none: 0, or 0.9 where changing the placement costs "
        "something, as a placement then decides the later costs",
    )
    evaluation_draws: int = option(64, "held-out networks to judge on")
    evaluation_seed: int = option(1_000_000, "seed of the held-out networks")
    num_minibatches: int = option(4, "gradient steps of each pass over a rollout")
    hidden_sizes: tuple[int, ...] = option((64, 64), "widths of the network's layers")
    rollout_workers: int = option(
        1, "logical workers that share the environments; results depend on their number alone"
    )
    preempt_share: float | None = option(
        None,
        "with --ray: once this share of the workers is done, the others stop early; results then "
        "depend on timing",
    )
    device: str = option("cpu", "device of the training: cpu, cuda or auto")
    precision: str = option("float32", "precision of matrix products: float32 or bfloat16")
    torch_threads: int = option(1, "learning threads; more than 1 help on an idle machine only")
    workers: int = option(
        2, "threads that simulate, or processes with --ray local; results are the same for any"
    )
    ray: str | None = option(
        None,
        "simulate on Ray: local, or the address of a cluster (host:port or auto); with an actor "
        "for each of the rollout workers at most",
    )
    kpi: bool = option(
        True, "measure the targets on the world of the run afterwards; about half a minute"
    )

    def __post_init__(self) -> None:
        for name in (
            "microbatches",
            "epochs_per_episode",
            "iterations_per_epoch",
            "num_envs",
            "steps_per_rollout",
            "evaluation_draws",
            "workers",
            "rollout_workers",
            "torch_threads",
        ):
            require_count(PROG, name, getattr(self, name), MOST_ITEMS)
        require_count(PROG, "steps", self.steps)
        if self.policy != "flat":
            raise UsageError(f"{PROG}: policy must be flat here, got {self.policy!r}")
        self._check_calibration()
        self._check_backend()
        for name in ("seed", "evaluation_seed"):
            require_seed(PROG, name, getattr(self, name))
        require_one_of(PROG, "replacement", self.replacement, REPLACEMENTS)
        if not self.resume and self.replacement == "none" and self.restart_s != RESTART_S:
            raise UsageError(
                f"{PROG}: restart_s must be left out without replacement, got {self.restart_s!r}"
            )
        replacement_of(self)
        self._check_workers()
        ppo = ppo_config(self)
        if self.num_envs * self.steps_per_rollout < ppo.num_minibatches:
            raise UsageError(
                f"{PROG}: num_envs times steps_per_rollout must be at least {ppo.num_minibatches}, "
                f"got {self.num_envs} x {self.steps_per_rollout}"
            )

    def _check_calibration(self) -> None:
        require_one_of(PROG, "calibration", self.calibration, CALIBRATIONS)
        if self.calibration_interval_steps is not None:
            require_count(PROG, "calibration_interval_steps", self.calibration_interval_steps)
        require_count(PROG, "calibration_placements", self.calibration_placements, MOST_ITEMS)
        require_positive(PROG, "calibration_bound", self.calibration_bound)

    def _check_backend(self) -> None:
        known = backends.backend_names()
        require_one_of(PROG, "backend", self.backend, known)
        if self.backend != "des" and self.calibration not in ("auto", "none"):
            raise UsageError(
                f"{PROG}: calibration must be none with --backend {self.backend}, whose "
                f"iterations are measured, got {self.calibration!r}"
            )

    def _check_workers(self) -> None:
        if self.rollout_workers > self.num_envs:
            raise UsageError(
                f"{PROG}: rollout_workers must be at most num_envs, {self.num_envs}; "
                f"got {self.rollout_workers}"
            )
        if self.preempt_share is not None:
            require_fraction(PROG, "preempt_share", self.preempt_share)
            if self.ray is None:
                raise UsageError(
                    f"{PROG}: preempt_share must be left out without ray, "
                    f"got {self.preempt_share!r}"
                )


WHERE_RUN = frozenset({"out", "resume", "workers", "ray", "figures", "parquet"})
"""Fields on where a run is done: not recorded, as results do not depend on them."""


QUICK_STEPS: dict[str, Any] = {
    "steps": 1024,
    "calibration_placements": 10,
    "evaluation_draws": 4,
    "num_envs": 16,
    "steps_per_rollout": 8,
    "workers": 1,
    "kpi": False,
}
"""Sizes of a run of seconds, where the user gives none."""

MEASURED_STEPS: dict[str, Any] = {"steps": 32_768, "num_envs": 64, "evaluation_draws": 16}
"""Sizes of a run whose placements a reference simulator judges, where the user gives none."""


def replacement_of(config: Config) -> Replacement | None:
    """Return what a changed placement costs."""
    if config.replacement == "none":
        return None
    return Replacement(restart_s=config.restart_s, pays_bytes=config.replacement == "full")


def discount_of(config: Config) -> float:
    """Return the discount: the one given, or one that fits what a changed placement costs."""
    if config.discount is not None:
        return config.discount
    return 0.0 if config.replacement == "none" else DISCOUNT_OF_COSTLY_CHANGES


def ppo_config(config: Config) -> PPOConfig:
    """Return the training's hyperparameters."""
    return ppo_settings.PPOConfig(
        num_steps=config.steps_per_rollout,
        learning_rate=config.learning_rate,
        discount=discount_of(config),
        entropy_coefficient=config.entropy_coefficient,
        num_minibatches=config.num_minibatches,
        hidden_sizes=config.hidden_sizes,
        device=devices.resolve_device(config.device),
        precision=config.precision,
    )


def recorded(config: Config) -> dict[str, object]:
    """Return what a run folder keeps of its configuration: all that results depend on."""
    device = devices.resolve_device(config.device)
    return list_recorded_flags(replace(config, discount=discount_of(config), device=device))


def list_recorded_flags(config: TrainingFlags) -> dict[str, object]:
    """Flags of a training that results depend on; the folder keeps copies of its input files."""
    kept = replace(
        config,
        network=f"network{topology_path(config.network).suffix}",
        corrections=None if config.corrections is None else Path("corrections.json"),
    )
    return {name: value for name, value in to_dict(kept).items() if name not in WHERE_RUN}
