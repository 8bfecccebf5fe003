"""Train PPO to order queues of jobs; compare it with every rule on unseen queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.document import DOCUMENT
from des.base.flags import option, parse
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import OutputFlags
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    import pandas as pd

    from agents.cluster import queue_batch
    from agents.ppo import ppo_config, trainer
    from scenarios.frame import outputs, rows_report
    from scenarios.frame.report import Report
    from scenarios.job_queue import rl_comparison
    from scenarios.train import ppo_training

PROG = f"{TRAIN} queue"
_EPILOG = f"""\
examples:
  {PROG} --seed 0 --out runs/queue
  {PROG} --seed 0 --out runs/queue --resume
  {PROG} --evaluate runs/queue/queue-0.safetensors,runs/queue/queue-1.safetensors

files written to --out: queue-SEED.safetensors (policy, and what --resume needs), curve-SEED.csv,
queues.csv (a row for each unseen queue and policy; --parquet: also as Parquet), and of the last
comparison report.html, its picture and result.json, with the settings

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the training."""

    seed: int = option(0, "seed of weights, queues and actions")
    steps: int = option(40_000, "decisions to train on")
    envs: int = option(8, "queues side by side")
    queues: int = option(40, "unseen queues to compare on")
    resume: bool = option(False, "continue the training in --out")
    evaluate: tuple[str, ...] = option(
        (), "policies to compare, without training", default_text="none"
    )
    out: Path = option(Path("runs/queue"), "folder for the files")


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    config = parse(Config, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG)
    require_seed("--seed", "value", config.seed)
    for name in ("steps", "envs", "queues"):
        require_count(f"--{name}", "value", getattr(config, name))
    config.choice()
    outputs.require_no_run(config.out)  # refused before minutes of work
    paths = [Path(each) for each in config.evaluate]
    if not paths:
        paths = [config.out / f"queue-{config.seed}.safetensors"]
        config.out.mkdir(parents=True, exist_ok=True)
        if not _train(config, paths[0]):
            return INTERRUPTED
    frame = rl_comparison.times_on_queues(paths, config.queues)
    lines = rl_comparison.comparison_lines(frame)
    report = _report(config, frame)
    paths = ppo_training.show_and_write(config, config.out, lines, {"queues": frame}, report)
    DOCUMENT.add(rows=frame, lines=lines, files=paths)
    return 0


def _report(config: Config, frame: pd.DataFrame) -> Report:
    by_queue = frame.groupby(["policy", "queue"], sort=False)["jct_mean_s"].mean()
    means_s = by_queue.groupby("policy").mean().sort_values()
    return rows_report.groups_report(
        config,
        PROG,
        rows_report.group_values(by_queue.groupby("policy")),
        name="queue_times",
        title="A trained ordering on unseen queues",
        question="Under which ordering do jobs of unseen queues end soonest?",
        answer=f"Least mean time: {means_s.index[0]}, {means_s.iloc[0]:.0f} s; the trained "
        f"ordering: {means_s['ppo']:.0f} s, over {config.queues} queues.",
        label="mean time from arrival to end [s]",
        points="each queue",
    )


def _train(config: Config, path: Path) -> bool:
    """Train to the end or until Ctrl-C; returns whether the training is complete."""
    settings = ppo_config.PPOConfig(
        num_steps=64, discount=0.97, learning_rate=1e-3, entropy_coefficient=0.005
    )
    batch = queue_batch.QueueBatch(config.envs, config.seed)
    learner = trainer.PPOTrainer.local(batch, settings, config.seed, config.steps)
    curve = config.out / f"curve-{config.seed}.csv"
    return ppo_training.train_to_the_end(learner, path, curve, resume=config.resume)
