"""Train the plan policy of Hi-PPO, which proposes groups of domains for 2 to 64 sites."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, parse, to_dict
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.run_folder import RunFolder
from scenarios.train import update_loop
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    from rich.console import Console

    from agents.hi_ppo import policies as hi_ppo_policies
    from agents.hi_ppo.plans import plan_checkpoint, plan_config, plan_training
    from agents.hi_ppo.plans.plan_config import PlanConfig
    from agents.ppo import checkpoint, devices
    from des.base import console as base_console
    from scenarios.train import plan_networks


PROG = f"{TRAIN} plans"
TRAINING_PT, PLANS_PT, PLANS_CSV = "training.pt", "plans.pt", "plans.csv"

_EPILOG = f"""\
Networks are real sites as the suites sites_* draw them, 2 to 64 of them, none that an evaluation
suite could draw. The same seed gives the same weights to the last bit on the same machine and
versions. What the policy is worth: python -m scenarios.ablations.proposals --checkpoint PLANS.PT

examples:
  {PROG} --seed 0 --out runs/plans-0
  {PROG} --seed 0 --out runs/plans-0 --resume

files written to --out:
  config.json  settings, versions and source revision
  {PLANS_CSV}   one row per update: costs are logarithms of step times over even work
  {TRAINING_PT}  the state of the training, every {update_loop.UPDATES_PER_CHECKPOINT} updates
  {PLANS_PT}    the policy

exit codes: 0 done; 2 a flag is wrong, or the folder holds files or cannot be written;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of a training of the plan policy; the fields are the flags."""

    out: Path = option(Path("runs/plans"), "new or empty folder of the run")
    seed: int = option(0, "seed of everything")
    updates: int = option(400, "updates of the policy")
    samples: int = option(16, "plans drawn for each network")
    imitation: float = option(0.5, "weight of the best groups that a look-ahead finds; 0: none")
    resume: bool = option(False, "continue the run in --out with its original flags")

    def __post_init__(self) -> None:
        require_seed(PROG, "seed", self.seed)
        require_count(PROG, "updates", self.updates)
        require_count(PROG, "samples", self.samples)
        training_settings(self)  # refuses what it cannot train with


def training_settings(config: Config) -> PlanConfig:
    """Settings of the trainer."""
    settings = replace(
        plan_config.PlanConfig(),
        num_updates=config.updates,
        samples_per_network=config.samples,
        imitation=config.imitation,
    )
    return settings if config.imitation else replace(settings, look_ahead_budget=0)


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    config = parse(Config, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG)
    devices.use_torch_threads(1)
    with RunFolder.begun_or_resumed(
        config.out, _recorded(config), PROG, resume=config.resume
    ) as folder:
        return _train(config, folder, base_console.FittedConsole())


def _recorded(config: Config) -> dict[str, object]:
    plain = to_dict(config)
    return {name: plain[name] for name in plain if name not in ("out", "resume")}


def _train(config: Config, folder: RunFolder, console: Console) -> int:
    files = update_loop.UpdateFiles(
        log=folder.path / PLANS_CSV, checkpoint=folder.path / TRAINING_PT
    )
    trainer = plan_training.PlanTrainer(
        plan_networks.plan_networks(config.seed),
        seed=config.seed,
        config=training_settings(config),
    )
    outcome = update_loop.train_updates(
        trainer,
        files,
        plan_training.PlanReport,
        name="plans",
        tell=update_loop.told_costs,
        console=console,
    )
    if not outcome.is_complete:
        return INTERRUPTED
    if outcome.last is not None:
        excess = outcome.last.mean_cost - outcome.last.found_cost
        console.print(
            f"plans drawn cost {excess:.3f} more than the best found from them, in logarithms of "
            "time",
            soft_wrap=True,
        )
    found = folder.path / PLANS_PT
    told = {**plan_checkpoint.plan_policy_payload(trainer.policy), "training": _recorded(config)}
    checkpoint.save_checkpoint(found, told)
    digest = hi_ppo_policies.digest_of(found)
    DOCUMENT.add(policy=found, sha256=digest)
    sys.stdout.write(f"policy: {found}, SHA-256 {digest}\n")
    return 0
