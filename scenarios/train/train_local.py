"""Train the local agent on random domains, and compare it with all local plans and with rules."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, parse, to_dict
from des.base.lazy import lazy
from scenarios.frame.files import write_csv, write_json
from scenarios.frame.outputs import OutputChoice, figures_option, parquet_option, write_outputs
from scenarios.frame.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from agents.hi_ppo.local import bound_plans, decide, draws, policy, rules
    from agents.hi_ppo.local import training as local_training
    from agents.hi_ppo.local.bound_plans import LocalPlan
    from agents.hi_ppo.local.case import LocalCase
    from agents.hi_ppo.local.decide import LocalAgent
    from agents.hi_ppo.local.training import LocalTraining
    from agents.ppo import devices
    from scenarios.frame import rows_report
    from scenarios.frame.report import Report
else:
    bound_plans = lazy("agents.hi_ppo.local.bound_plans")
    decide = lazy("agents.hi_ppo.local.decide")
    draws = lazy("agents.hi_ppo.local.draws")
    policy = lazy("agents.hi_ppo.local.policy")
    rules = lazy("agents.hi_ppo.local.rules")
    local_training = lazy("agents.hi_ppo.local.training")
    devices = lazy("agents.ppo.devices")
    pd = lazy("pandas")
    rows_report = lazy("scenarios.frame.rows_report")


PROG = "python -m scenarios.train_local"
_EPILOG = f"""\
examples:
  {PROG} --seed 0 --out runs/local-0
  {PROG} --quick --out runs/try

files in the folder: config.json; metrics.csv, one row per update; policy.pt; evaluation.csv, one
  row per held-out case and method; timings.csv, one row per decision (--parquet: both also as
  Parquet); summary.json; report.html and its picture (--figures)

exit codes: 0 the mean gap is at most --largest-gap; 1 it is not; 2 a flag is wrong;
  {EXIT_CODES}
"""
_WARM_UP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of training and judging the local agent; the fields are the flags."""

    seed: int = option(0, "seed of cases, weights and tries")
    out: Path = option(Path("runs/local"), "folder to make")
    num_updates: int = option(150, "updates of the policy")
    num_cases: int = option(2048, "random cases to train on")
    num_evaluated: int = option(1000, "held-out cases, the same for all seeds")
    num_proposals: int = option(16, "options that the agent binds, by policy and estimate in turn")
    sees_estimate: bool = option(True, "whether the policy sees an estimate of every option")
    largest_gap: float = option(0.01, "mean gap to the best plan; above it the exit code is 1")
    quick: bool = option(False, "a run of seconds that shows all steps and learns little")
    figures: tuple[str, ...] = figures_option()
    parquet: bool = parquet_option()

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
            sees_estimate=self.sees_estimate,
        )
        if self.quick:
            return replace(training, num_cases=64, num_updates=8, cases_per_update=32)
        return training


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG)
    training = config.training
    choice = OutputChoice(figures=config.figures, parquet=config.parquet)
    devices.use_torch_threads(1)
    with RunFolder.created(config.out) as folder:
        folder.write_config(to_dict(config))
        summary = _train(config, training, folder, choice)
    DOCUMENT.add(**summary, out=config.out)
    return _show(config, summary)


def _train(
    config: Config, training: LocalTraining, folder: RunFolder, choice: OutputChoice
) -> dict[str, object]:
    """Train, judge and write all files; returns what `summarise` does."""
    trainer = local_training.LocalTrainer(training)
    write_csv(folder.metrics_csv, pd.DataFrame(list(trainer.updates())))
    policy.save_policy(folder.path / "policy.pt", trainer.policy, asdict(training))
    agent = decide.LocalAgent(policy=trainer.policy, num_proposals=config.num_proposals)
    num_evaluated = 32 if config.quick else config.num_evaluated
    timings = time_decisions(agent, num_evaluated)
    evaluation = evaluate_local(agent, num_evaluated)
    summary = summarise_local(evaluation, timings)
    write_json(folder.path / "summary.json", summary)
    frames = {"timings": timings, "evaluation": evaluation}
    write_outputs(folder.path, choice, _report(config, evaluation), frames)
    return summary


def _report(config: Config, evaluation: pd.DataFrame) -> Report:
    gaps = evaluation.assign(gap=100.0 * evaluation["gap"]).groupby("method", sort=False)["gap"]
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
        answer=f"Mean gap {means['agent']:.3f} %, with one proposal "
        f"{means['agent, one proposal']:.3f} %; of the least estimate "
        f"{means['least estimate']:.3f} %.",
    )


def held_out_cases(count: int) -> list[LocalCase]:
    """Cases held out from training: of a random stream of their own, the same for all seeds."""
    rng = np.random.default_rng([2**40, 1])
    return [draws.draw_case(rng) for _ in range(count)]


def time_decisions(agent: LocalAgent, count: int) -> pd.DataFrame:
    """One row per decision: ``case``, ``response_s``, its wall time, and ``cpu_s``, without waits.

    The first few warm the process up and do not count. No case has been looked at before.
    """
    for case in held_out_cases(_WARM_UP):
        agent.decide(case)
    rows = []
    for number, case in enumerate(held_out_cases(count)):
        start_s = time.process_time()
        response_s = agent.decide(case).response_s
        cpu_s = time.process_time() - start_s
        rows.append({"case": number, "response_s": response_s, "cpu_s": cpu_s})
    return pd.DataFrame(rows)


def evaluate_local(agent: LocalAgent, count: int) -> pd.DataFrame:
    """One row per held-out case and method.

    ``gap`` is what the plan takes more than the best one, as a part of that.
    """
    methods: dict[str, Callable[[LocalCase], LocalPlan]] = {
        "agent": partial(_plan_of, agent),
        "agent, one proposal": partial(_plan_of, replace(agent, num_proposals=1)),
        "least estimate": partial(rules.least_estimate, num_proposals=agent.num_proposals),
        "least estimate, half": partial(
            rules.least_estimate, num_proposals=-(-agent.num_proposals // 2)
        ),
        "least estimate, one proposal": rules.least_estimate,
        "largest tensor": rules.largest_tensor,
        "largest tensor, bound": rules.largest_tensor_bound,
        "smallest tensor, bound": rules.smallest_tensor_bound,
    }
    rows = []
    for number, case in enumerate(held_out_cases(count)):
        best = bound_plans.exhaustive(case)
        plans = {"exhaustive": best} | {name: method(case) for name, method in methods.items()}
        for name, plan in plans.items():
            rows.append(
                {
                    "case": number,
                    "method": name,
                    "seconds_per_sequence": plan.seconds_per_sequence,
                    "gap": plan.seconds_per_sequence / best.seconds_per_sequence - 1.0,
                    "plan": str(plan.option),
                    "binding": " ".join(map(str, plan.binding)),
                }
            )
    return pd.DataFrame(rows)


def summarise_local(evaluation: pd.DataFrame, timings: pd.DataFrame) -> dict[str, object]:
    """Mean, 95th percentile and worst of the gaps by method, and of the response times. [s]"""
    gaps = {
        str(method): {
            "mean_gap": float(rows["gap"].mean()),
            "p95_gap": float(rows["gap"].quantile(0.95)),
            "worst_gap": float(rows["gap"].max()),
        }
        for method, rows in evaluation.groupby("method", sort=False)
    }
    figures = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        "num_cases": len(timings),
        "gaps": gaps,
        **{
            f"{kind}_{name}_s": float(timings[f"{kind}_s"].quantile(share))
            for kind in ("response", "cpu")
            for name, share in figures.items()
        },
    }


def _plan_of(agent: LocalAgent, case: LocalCase) -> LocalPlan:
    return agent.decide(case).plan


def _show(config: Config, summary: dict[str, object]) -> int:
    gaps = summary["gaps"]
    assert isinstance(gaps, dict)
    for method, figures in gaps.items():
        sys.stdout.write(
            f"{method:30} gap mean {100 * figures['mean_gap']:8.3f} %  "
            f"p95 {100 * figures['p95_gap']:8.3f} %  worst {100 * figures['worst_gap']:8.3f} %\n"
        )
    for kind, name in (("response", "wall time"), ("cpu", "CPU time")):
        times = (summary[f"{kind}_{each}_s"] for each in ("p50", "p99", "max"))
        median, late, latest = (1e3 * float(str(value)) for value in times)
        sys.stdout.write(
            f"decision over {summary['num_cases']} cases, {name}: p50 {median:.2f} ms, "
            f"p99 {late:.2f} ms, max {latest:.2f} ms\n"
        )
    sys.stdout.write(f"written: {config.out}\n")
    return 0 if gaps["agent"]["mean_gap"] <= config.largest_gap else 1
