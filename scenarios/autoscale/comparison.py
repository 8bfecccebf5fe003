"""A learnt policy and every rule on the same unseen days."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from agents.ppo.ppo_config import PPOConfig
from agents.serving.autoscale_task import drawn_day
from agents.serving.forecast_policies import Predictive
from agents.serving.learnt_policy import RandomActions, learnt_policy, untrained_policy
from agents.serving.rl_state import RLRewardCalculator
from agents.serving.table import LEARNT, RULES, scaling_policy
from des.compiled.fleet import run_compiled
from des.serving.fleet_figures import run_figures
from des.serving.fleet_world import History, ScalingPolicy, World
from scenarios.frame.statistics import mean_and_interval

MARGINS = (0.7, 0.85, 1.0, 1.5, 2.0, 3.0)
"""Further margins of `predictive`, whose own is 1.2."""
FIRST_DAY = 1000
"""Seed of the first unseen day; days to train on have seeds from 2**20."""
_SHOWN = ("reward", "attainment", "usd", "num_flaps")


def rows_on_days(
    checkpoint: Path,
    num_days: int,
    seed: int,
    settings: PPOConfig,
    *,
    make_world: Callable[[int], World] = drawn_day,
) -> list[dict[str, object]]:
    """Figures of all policies on unseen days, a row for each day and policy.

    Compared as well: `predictive` with other margins, which gives attainments at other costs, the
    network before its training, and random actions.
    """
    policies: dict[str, ScalingPolicy] = {name: scaling_policy(name) for name in RULES}
    policies |= {f"predictive_{margin:g}": Predictive(margin=margin) for margin in MARGINS}
    policies["random"] = RandomActions(seed=seed)
    policies[LEARNT] = learnt = learnt_policy(checkpoint)
    policies["untrained"] = untrained_policy(seed, settings, learnt.executor)
    rows = []
    for day in range(FIRST_DAY, FIRST_DAY + num_days):
        world = make_world(day)
        rows += [day_row(day, name, world, policy) for name, policy in policies.items()]
    return rows


def day_row(day: int, name: str, world: World, policy: ScalingPolicy) -> dict[str, object]:
    """Figures of a policy on a day, with its mean reward."""
    history = run_compiled(world, policy, day)
    reward = mean_reward(history)
    return {"day": day, "policy": name, "reward": reward, **run_figures(history)}


def mean_reward(history: History) -> float:
    """Mean reward of the decisions of a run but the last, as the task gives it."""
    calculator = RLRewardCalculator()
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
    lines = ["policy          " + "".join(f"{field:>22}" for field in _SHOWN)]
    for name in sorted(values, key=lambda each: -sum(values[each]["reward"])):
        cells = []
        for field in _SHOWN:
            found = mean_and_interval(values[name][field])
            cells.append(f"{found.mean:.3f} ± {found.half_width:.3f}".rjust(22))
        lines.append(f"{name:16}" + "".join(cells))
    return lines


def cost_at_equal_attainment(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Cost of the learnt policy over that of `predictive` at the same attainment, each day.

    The cost of the rule is interpolated between its margins; where none of them reaches the
    attainment, it is that of the margin that comes closest.
    """
    ratios = []
    for day in dict.fromkeys(row["day"] for row in rows):
        of_day = [row for row in rows if row["day"] == day]
        (own,) = (_pair(row) for row in of_day if row["policy"] == LEARNT)
        points = sorted(_pair(row) for row in of_day if str(row["policy"]).startswith("predictive"))
        frontier = [points[-1]]
        for point in reversed(points[:-1]):
            if point[1] < frontier[0][1]:
                frontier.insert(0, point)
        shares, costs = zip(*frontier, strict=True)
        ratios.append(own[1] / float(np.interp(own[0], shares, costs)))
    found = mean_and_interval(ratios)
    return [
        f"cost over that of predictive at equal attainment: {found.mean:.3f} ± "
        f"{found.half_width:.3f} on {len(ratios)} days"
    ]


def _pair(row: Mapping[str, object]) -> tuple[float, float]:
    return float(str(row["attainment"])), float(str(row["usd"]))
