"""A learnt policy and every rule on the same unseen days, and over the best rule at equal cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agents.ppo.ppo_config import PPOConfig
from agents.serving.autoscale_task import draw_day
from agents.serving.forecast_policies import PeakHold, Predictive, SlaPlanner
from agents.serving.learnt_policy import (
    LearntPolicy,
    RandomActions,
    learnt_policy,
    untrained_policy,
)
from agents.serving.load_policies import HpaPolicy
from agents.serving.rl_state import RLRewardCalculator
from agents.serving.table import LEARNT, RULES, scaling_policy
from des.compiled.fleet import run_compiled
from des.serving.fleet_figures import run_figures
from des.serving.fleet_world import History, ScalingPolicy, World
from scenarios.frame.statistics import mean_and_interval

TUNING_DAY = 4000
"""Seed of the first day on which rules are tuned."""
NUM_TUNING_DAYS = 16
TUNED_MARGINS = (0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0)
FAMILIES: Mapping[str, Callable[[float], ScalingPolicy]] = {
    "predictive": lambda margin: Predictive(margin=margin),
    "predictive, quick": lambda margin: Predictive(margin=margin, level_weight=0.8),
    "peak": lambda margin: PeakHold(margin=margin),
    "sla": lambda margin: SlaPlanner(margin=margin),
    "sla, every 10 s": lambda margin: SlaPlanner(margin=margin, adjustment_s=10.0),
    "hpa": lambda margin: HpaPolicy(share=0.5 / margin),
}
"""Rules by a margin: a larger one keeps more instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Means over days of a rule with a margin."""

    margin: float
    attainment: float
    usd: float


def tune_margin(
    points: Mapping[str, Sequence[Point]], attainment: float
) -> tuple[str, float, float]:
    """Family, margin and cost of the cheapest rule that has an attainment.

    Margins are interpolated in the attainment. If every rule is below it, the best one is taken.

    Parameters
    ----------
    points
        Of each family, by growing margin.

    Examples
    --------
    >>> rows = ((1.0, 0.5, 10.0), (2.0, 0.9, 20.0))
    >>> one = [Point(margin=m, attainment=share, usd=usd) for m, share, usd in rows]
    >>> tune_margin({"a": one, "b": [Point(margin=1.0, attainment=0.95, usd=40.0)]}, 0.7)
    ('a', 1.5, 15.0)
    """
    found: list[tuple[str, float, float]] = []
    for name, of_family in points.items():
        before: Point | None = None
        for point in of_family:
            if point.attainment >= attainment:
                share = 1.0
                if before is not None and point.attainment > before.attainment:
                    share = (attainment - before.attainment) / (
                        point.attainment - before.attainment
                    )
                start = before or point
                margin = start.margin + share * (point.margin - start.margin)
                found.append((name, margin, start.usd + share * (point.usd - start.usd)))
                break
            before = point
    if found:
        return min(found, key=lambda each: each[2])
    name, most = max(
        ((name, point) for name, of_family in points.items() for point in of_family),
        key=lambda each: each[1].attainment,
    )
    return name, most.margin, most.usd


def equal_cost_lines(
    checkpoints: Sequence[Path],
    num_days: int,
    settings: PPOConfig,
    *,
    families: Mapping[str, Callable[[float], ScalingPolicy]] = FAMILIES,
    num_tuning_days: int = NUM_TUNING_DAYS,
) -> tuple[list[str], list[dict[str, object]]]:
    """Table of all policies on unseen days, then each learnt one against the rule tuned to it.

    Returns the lines, and a row for each day and policy.
    """
    unseen = range(FIRST_DAY, FIRST_DAY + num_days)
    worlds = {day: draw_day(day) for day in unseen}
    learnt = {f"{LEARNT} {path.stem}": learnt_policy(path) for path in checkpoints}
    rows = _unseen_rows(learnt, worlds, settings)
    tuning = [draw_day(TUNING_DAY + number) for number in range(num_tuning_days)]
    points = {
        name: [_point(make(margin), margin, tuning) for margin in TUNED_MARGINS]
        for name, make in families.items()
    }
    lines, ratios = summary_lines(rows), []
    for name, policy in learnt.items():
        family, margin, _ = tune_margin(points, _point(policy, 0.0, tuning).attainment)
        rule = families[family](margin)
        tuned = [day_row(day, f"tuned to {name}", world, rule) for day, world in worlds.items()]
        own = [row for row in rows if row["policy"] == name]
        rows += tuned
        line, of_days = _against(own, tuned)
        ratios.append(of_days)
        lines.append(
            f"{name} and {family} with a margin of {margin:.2f}, tuned on {num_tuning_days} other "
            f"days: {line}"
        )
    means = [sum(of_day) / len(of_day) for of_day in zip(*ratios, strict=True)]
    every = mean_and_interval(means)
    lines.append(
        f"cost over that of the tuned rule, mean of {len(learnt)} policies: {every.mean:.3f} ± "
        f"{every.half_width:.3f} over {num_days} unseen days"
    )
    return lines, rows


def _unseen_rows(
    learnt: Mapping[str, LearntPolicy], worlds: Mapping[int, World], settings: PPOConfig
) -> list[dict[str, object]]:
    """Figures of rules, of learnt policies, of one before its training, and of random actions."""
    policies: dict[str, ScalingPolicy] = {name: scaling_policy(name) for name in RULES}
    policies |= {"random": RandomActions(seed=0), **learnt}
    executor = next(iter(learnt.values())).executor
    policies["untrained"] = untrained_policy(0, settings, executor)
    return [
        day_row(day, name, world, policy)
        for day, world in worlds.items()
        for name, policy in policies.items()
    ]


def _point(policy: ScalingPolicy, margin: float, worlds: Sequence[World]) -> Point:
    figures = [run_figures(run_compiled(world, policy, 0)) for world in worlds]
    return Point(
        margin=margin,
        attainment=sum(float(each["attainment"] or 0.0) for each in figures) / len(figures),
        usd=sum(float(each["usd"] or 0.0) for each in figures) / len(figures),
    )


def _against(
    own: Sequence[Mapping[str, object]], tuned: Sequence[Mapping[str, object]]
) -> tuple[str, list[float]]:
    """Attainments and paired cost ratios of a policy and a rule on the same days."""
    pairs = list(zip(own, tuned, strict=True))
    gains = [_number(mine["attainment"]) - _number(rule["attainment"]) for mine, rule in pairs]
    ratios = [_number(mine["usd"]) / _number(rule["usd"]) for mine, rule in pairs]
    attained = sum(_number(row["attainment"]) for row in own) / len(own)
    gain, ratio = mean_and_interval(gains), mean_and_interval(ratios)
    line = (
        f"attainment {attained:.3f}, {gain.mean:+.3f} ± {gain.half_width:.3f} over the rule's; "
        f"cost {ratio.mean:.3f} ± {ratio.half_width:.3f} of the rule's"
    )
    return line, ratios


def _number(value: object) -> float:
    return float(str(value))


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
    make_world: Callable[[int], World] = draw_day,
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
