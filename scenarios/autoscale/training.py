"""Train PPO to scale an inference fleet; compare it with every rule on unseen days."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES, UsageError
from des.base.document import DOCUMENT
from des.base.flags import option, parse
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import OutputFlags
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    import pandas as pd

    from agents.ppo import checkpoint, trainer
    from agents.serving import autoscale_task, learnt_policy, rl_state, table
    from des.serving.fleet_world import World
    from scenarios.autoscale import comparison, fleet_config, fleet_outputs, seeds_summary
    from scenarios.frame import outputs, rows_report
    from scenarios.frame.report import Report
    from scenarios.train import ppo_training

PROG = f"{TRAIN} autoscale"
_EXAMPLES = f"""\
examples:
  {PROG} --seed 0
  {PROG} --seed 0 --out runs/autoscaler --resume
  {PROG} --trace requests.csv --steps 50000 --out runs/autoscaler-trace
  {PROG} --summary --out runs/autoscaler
  {PROG} --evaluate runs/autoscaler/autoscale-0.safetensors
  {PROG} --equal-cost shipped --days 24

files written to --out: autoscale-SEED.safetensors (policy, and what --resume needs),
policy-SEED.safetensors (the policy alone), curve-SEED.csv, days-SEED.csv (a row for each unseen day
and policy; --parquet: also as Parquet), and of the last comparison report.html, its picture and
result.json, with the settings;
with --equal-cost equal_cost.csv and result.json alone

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the training."""

    seed: int = option(0, "seed of weights, days and actions")
    steps: int = option(150_000, "decisions to train on")
    envs: int = option(16, "days side by side")
    days: int = option(5, "unseen days to compare on")
    residual: bool = option(
        True, "whether actions change what the forecast wants, or the present counts"
    )
    adaptive_step: bool = option(False, "whether an action changes a pool by at most half of it")
    predictive_drain: bool = option(
        False, "whether to drain the instances expected to be empty first"
    )
    wide: bool = option(
        False, "whether half of the days to train on have other loads, engines and objectives"
    )
    trace: str | None = option(
        None,
        "trace whose days to train on, those of its last quarter to compare on (default: drawn)",
    )
    columns: tuple[str, ...] = option(
        (), "columns of a CSV file, as of python -m scenarios.autoscale"
    )
    resume: bool = option(False, "continue the training in --out")
    summary: bool = option(False, "picture and table of all seeds in --out, without training")
    evaluate: Path | None = option(None, "policy to compare, without training")
    equal_cost: tuple[str, ...] = option(
        (),
        "policies to compare with rules tuned on other days to their attainment, without training; "
        "shipped: those of the three seeds",
        default_text="none",
    )
    out: Path = option(Path("runs/autoscaler"), "folder for the files")


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    config = parse(Config, arguments, prog=prog, description=__doc__ or "", epilog=_EXAMPLES)
    require_seed("--seed", "value", config.seed)
    for name in ("steps", "envs", "days"):
        require_count(f"--{name}", "value", getattr(config, name))
    if config.columns and config.trace is None:
        raise UsageError("--columns must be of a trace, got no --trace")
    if config.wide and config.trace is not None:
        raise UsageError("--wide must be without --trace, whose days are not drawn")
    choice = config.choice()
    outputs.require_no_run(config.out)  # refused before minutes of work
    if config.summary:
        lines, picture = seeds_summary.summarised(config.out)
        sys.stdout.write("\n".join(lines) + "\n")
        paths = outputs.write_files(config.out, choice.figure_files([picture]))
        DOCUMENT.add(lines=lines, files=paths)
        return 0
    if config.equal_cost:
        return _compare_at_equal_attainment(config)
    path = config.evaluate
    if path is None:
        config.out.mkdir(parents=True, exist_ok=True)
        path = config.out / f"autoscale-{config.seed}.safetensors"
        if not _train(config, path):
            return INTERRUPTED
    rows = comparison.rows_on_days(
        path,
        config.days,
        config.seed,
        learnt_policy.AUTOSCALER_PPO,
        make_world=_days(config, is_unseen=True),
    )
    lines = [*comparison.summary_lines(rows), *comparison.cost_at_equal_attainment(rows)]
    frame = fleet_outputs.rows_frame(rows)
    frames = {f"days-{config.seed}": frame}
    paths = ppo_training.show_and_write(config, config.out, lines, frames, _report(config, frame))
    DOCUMENT.add(rows=rows, files=paths)
    return 0


def _compare_at_equal_attainment(config: Config) -> int:
    names = config.equal_cost
    paths = table.SHIPPED_SEEDS if names == ("shipped",) else tuple(map(Path, names))
    lines, rows = comparison.equal_cost_lines(paths, config.days, learnt_policy.AUTOSCALER_PPO)
    frames = {"equal_cost": fleet_outputs.rows_frame(rows)}
    written = ppo_training.show_and_write(config, config.out, lines, frames)
    DOCUMENT.add(rows=rows, files=written)
    return 0


def _report(config: Config, days: pd.DataFrame) -> Report:
    rewards = days.astype({"reward": float}).groupby("policy", sort=False)["reward"]
    means = rewards.mean().sort_values(ascending=False)
    return rows_report.groups_report(
        config,
        PROG,
        rows_report.group_values(rewards),
        name="rewards",
        title="A trained autoscaler on unseen days",
        question="Which policy has the highest reward on days that the training has not seen?",
        answer=f"Highest mean reward: {means.index[0]}, {means.iloc[0]:.3f}; the trained policy: "
        f"{means['rl']:.3f}, over {config.days} days.",
        label="mean reward of a decision",
        points="each day",
    )


def _days(config: Config, *, is_unseen: bool) -> Callable[[int], World]:
    """Source of days: those to train on, or those to compare on."""
    drains_soonest = config.predictive_drain
    if config.trace is not None:
        requests = fleet_config.requests_named(config.trace, config.seed, config.columns)
        return autoscale_task.TraceDays(
            requests=requests, drains_soonest=drains_soonest, is_unseen=is_unseen
        )
    is_wide = config.wide and not is_unseen
    make_day = autoscale_task.training_day if is_wide else autoscale_task.draw_day
    return partial(make_day, drains_soonest=drains_soonest)


def _train(config: Config, path: Path) -> bool:
    """Train to the end or until Ctrl-C; returns whether the training is complete."""
    settings, is_residual = learnt_policy.AUTOSCALER_PPO, config.residual
    executor = rl_state.RLActionExecutor(is_adaptive=config.adaptive_step, is_residual=is_residual)
    actions = {name: getattr(executor, name) for name in learnt_policy.ACTION_FLAGS}
    days = _days(config, is_unseen=False)
    batch = autoscale_task.AutoscaleBatch(config.envs, config.seed, days, executor)
    learner = trainer.PPOTrainer.local(batch, settings, config.seed, config.steps)
    curve = config.out / f"curve-{config.seed}.csv"
    extra = {learnt_policy.ACTIONS: actions}
    if not ppo_training.train_to_the_end(learner, path, curve, resume=config.resume, extra=extra):
        return False
    policy = {"policy": learner.state()["policy"], **extra}
    checkpoint.save_checkpoint(config.out / f"policy-{config.seed}.safetensors", policy)
    return True
