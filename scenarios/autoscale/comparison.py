"""A learnt policy and every rule on the same unseen days."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.serving.autoscale_task import TraceRLSimulator, drawn_day
from agents.serving.learnt_policy import LearntPolicy
from agents.serving.rl_state import RLRewardCalculator
from agents.serving.table import LEARNT, RULES, scaling_policy
from des.serving.fleet_engine import run
from des.serving.fleet_figures import run_figures
from des.serving.fleet_world import History, ScalingPolicy, World
from scenarios.frame.statistics import mean_and_interval

FIRST_DAY = 1000
"""Seed of the first unseen day; days to train on have seeds from 2**20."""
_SHOWN = ("reward", "attainment", "usd", "num_flaps")


def rows_on_days(checkpoint: Path, num_days: int) -> list[dict[str, object]]:
    """Figures of all policies on unseen days, a row for each day and policy."""
    policies: dict[str, ScalingPolicy] = {name: scaling_policy(name) for name in RULES}
    policies[LEARNT] = LearntPolicy(checkpoint)
    rows = []
    for day in range(FIRST_DAY, FIRST_DAY + num_days):
        world = drawn_day(day)
        rows += [_row(day, name, world, policy) for name, policy in policies.items()]
    return rows


def _row(day: int, name: str, world: World, policy: ScalingPolicy) -> dict[str, object]:
    history = run(world, policy, day)
    reward = mean_reward(history)
    return {"day": day, "policy": name, "reward": reward, **run_figures(history)}


def mean_reward(history: History) -> float:
    """Mean reward of the decisions of a run but the last, as the task gives it."""
    calculator: RLRewardCalculator = TraceRLSimulator().calculator
    rewards = [
        calculator.reward(after, decision)
        for (_, decision), (after, _) in zip(history.decisions, history.decisions[1:], strict=False)
    ]
    return sum(rewards) / max(len(rewards), 1)


def summary_lines(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Mean and 95 % interval over days of each policy, the best reward first."""
    values = {
        name: {
            field: [float(str(row[field])) for row in rows if row["policy"] == name]
            for field in _SHOWN
        }
        for name in dict.fromkeys(str(row["policy"]) for row in rows)
    }
    lines = ["policy        " + "".join(f"{field:>22}" for field in _SHOWN)]
    for name in sorted(values, key=lambda each: -sum(values[each]["reward"])):
        cells = []
        for field in _SHOWN:
            found = mean_and_interval(values[name][field])
            cells.append(f"{found.mean:.3f} ± {found.half_width:.3f}".rjust(22))
        lines.append(f"{name:14}" + "".join(cells))
    return lines
