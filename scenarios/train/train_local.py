"""Train the local agent on random domains, and compare it with all local plans and with rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from des.base.command import EXIT_CODES, UsageError
from des.base.document import DOCUMENT
from des.base.flags import option, parse
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.files import write_json
from scenarios.frame.outputs import OutputChoice, OutputFlags, repeated_settings, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.train import update_loop
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    import pandas as pd

    from agents.hi_ppo.local import decide, policy
    from agents.hi_ppo.local import training as local_training
    from agents.hi_ppo.local.training import LocalTraining
    from agents.hi_ppo.local.training_policy import LocalPolicy
    from agents.ppo import devices
    from des.base import console as base_console
    from scenarios.frame import rows_report
    from scenarios.frame.report import Report
    from scenarios.train import local_evaluation


PROG = f"{TRAIN} local"
_EPILOG = f"""\
examples:
  {PROG} --seed 0 --out runs/local-0
  {PROG} --seed 0 --out runs/local-0 --resume
  {PROG} --quick --out runs/try

files in the folder: config.json; metrics.csv, one row per update; training.safetensors, what
  --resume needs; policy.safetensors; evaluation.csv, one row per held-out case and method;
  timings.csv, one row per decision (--parquet: both also as Parquet); summary.json; report.html
  and its picture (--figures)

exit codes: 0 the mean gap is at most --largest-gap; 1 it is not; 2 a flag is wrong;
  {EXIT_CODES}
"""

_CLOCKS = {
    "response": "wall time",
    "cpu": "CPU time",
    "all_bound_cpu": "CPU time of binding all options instead",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of training and judging the local agent."""

    seed: int = option(0, "seed of cases, weights and tries")
    out: Path = option(Path("runs/local"), "folder to make")
    num_updates: int = option(150, "updates of the policy")
    num_cases: int = option(2048, "random cases of one server to train on")
    num_server_cases: int = option(1024, "random cases of several servers to train on")
    num_evaluated: int = option(1000, "held-out cases of each kind, the same for all seeds")
    num_proposals: int = option(16, "options that the agent binds, by policy and estimate in turn")
    sees_estimate: bool = option(True, "whether the policy sees an estimate of every option")
    largest_gap: float = option(0.01, "mean gap of either kind; above it the exit code is 1")
    resume: bool = option(False, "continue the run in --out with its original flags")
    quick: bool = option(False, "a run of seconds that shows all steps and learns little")

    def __post_init__(self) -> None:
        if self.num_evaluated < 1:
            raise UsageError(f"{PROG}: num_evaluated must be at least 1, got {self.num_evaluated}")

    @property
    def training(self) -> LocalTraining:
        """Settings of the training."""
        training = local_training.LocalTraining(
            seed=self.seed,
            num_updates=self.num_updates,
            num_cases=self.num_cases,
            num_server_cases=self.num_server_cases,
            sees_estimate=self.sees_estimate,
        )
        if self.quick:
            return replace(
                training, num_cases=64, num_server_cases=16, num_updates=8, cases_per_update=32
            )
        return training


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    config = parse(Config, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG)
    training = config.training
    choice = config.choice()
    devices.use_torch_threads(1)
    with RunFolder.begun_or_resumed(
        config.out, repeated_settings(config), PROG, resume=config.resume
    ) as folder:
        trained = _train(training, folder)
        if trained is None:
            return INTERRUPTED
        summary = _judge(config, trained, folder, choice)
    DOCUMENT.add(**summary, out=config.out)
    return _show(config, summary)


def _train(training: LocalTraining, folder: RunFolder) -> LocalPolicy | None:
    """Train from where the folder has it, and write the policy; None if that was stopped."""
    trainer = local_training.LocalTrainer(training)
    outcome = update_loop.train_updates(
        trainer,
        folder.path / "training.safetensors",
        folder.metrics_csv,
        local_training.LocalReport,
        name="local",
        tell=lambda one: f"reward {one.mean_reward:.3f}, of the best {one.mean_best_reward:.3f}",
        console=base_console.FittedConsole(),
    )
    if not outcome.is_complete:
        return None
    policy.save_policy(folder.path / "policy.safetensors", trainer.policy, asdict(training))
    return trainer.policy


def _judge(
    config: Config, trained: LocalPolicy, folder: RunFolder, choice: OutputChoice
) -> dict[str, dict[str, object]]:
    """Judge the policy and write the rows; returns what `summarise_local` does."""
    agent = decide.LocalAgent(policy=trained, num_proposals=config.num_proposals)
    num_evaluated = min(32, config.num_evaluated) if config.quick else config.num_evaluated
    timings = local_evaluation.time_decisions(agent, num_evaluated)
    evaluation = local_evaluation.evaluate_local(agent, num_evaluated)
    summary = local_evaluation.summarise_local(evaluation, timings)
    write_json(folder.path / "summary.json", summary)
    frames = {"timings": timings, "evaluation": evaluation}
    write_outputs(folder.path, choice, _report(config, evaluation), frames)
    return summary


def _report(config: Config, evaluation: pd.DataFrame) -> Report:
    named = evaluation["method"] + evaluation["kind"].map(lambda kind: f" ({kind})")
    gaps = (100.0 * evaluation["gap"]).groupby(named, sort=False)
    means = gaps.mean()
    return rows_report.groups_report(
        config,
        PROG,
        rows_report.group_values(gaps),
        name="local_gaps",
        label="gap to the best plan [%]",
        points="each case",
        title="The local agent on held-out domains",
        question="How much longer do the plans of the local agent take than the best ones?",
        answer="; ".join(
            f"{kind}: mean gap {means[f'agent ({kind})']:.3f} %, of the least estimate "
            f"{means[f'least estimate ({kind})']:.3f} %"
            for kind in local_evaluation.KINDS
        ),
    )


def _show(config: Config, summary: dict[str, dict[str, object]]) -> int:
    largest = 0.0
    for kind, figures in summary.items():
        gaps = figures["gaps"]
        assert isinstance(gaps, dict)
        largest = max(largest, gaps["agent"]["mean_gap"])
        sys.stdout.write(f"domains of {kind.replace('_', ' ')}:\n")
        for method, own in gaps.items():
            sys.stdout.write(
                f"{method:34} gap mean {100 * own['mean_gap']:8.3f} %  "
                f"p95 {100 * own['p95_gap']:8.3f} %  worst {100 * own['worst_gap']:8.3f} %\n"
            )
        for clock, name in _CLOCKS.items():
            times = (figures[f"{clock}_{each}_s"] for each in ("p50", "p99", "max"))
            median, late, latest = (1e3 * float(str(value)) for value in times)
            sys.stdout.write(
                f"decision over {figures['num_cases']} cases, {name}: p50 {median:.2f} ms, "
                f"p99 {late:.2f} ms, max {latest:.2f} ms\n"
            )
    sys.stdout.write(f"written: {config.out}\n")
    return 0 if largest <= config.largest_gap else 1
