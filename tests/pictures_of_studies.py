"""Pictures of trainings and of studies from fixed data, by the function that makes each."""

import math

import numpy as np
import pandas as pd
from strategies import plan, unit_workload, world

from agents.planners.names import POLICY
from agents.planners.pareto.fronts import Front
from agents.planners.pareto.indicators import FrontMetrics
from agents.planners.pareto.plan_objectives import PlanFigures
from calibration.fit.plot import predicted_versus_reference
from scenarios.frame.plots import comparison_bars, learning_curve, seed_curves
from scenarios.study.compare.compare_charts import Bar, bars_of
from scenarios.study.fidelity.fidelity_page import levels_figure
from scenarios.study.pareto.fronts import PricedWorld
from scenarios.study.pareto.pareto_page import fronts_figure
from scenarios.study.pareto.study import MethodFront, WorldFronts
from scenarios.study.robustness.robustness_page import jitter_figure, robustness_figure
from scenarios.study.training_curves import training_curves
from scenarios.train.sweep_results import sweep_figure

METHODS = (POLICY, "search", "search_greedy", "uniform", "round_robin", "crosspipe", "dtfm_hold",
           "sailor_hold", "metis_hold")  # fmt: skip


def metrics(rewards, times_s):
    """A training log."""
    rows = zip(range(0, 1000 * len(rewards), 1000), rewards, times_s, strict=True)
    return pd.DataFrame(rows, columns=["step", "mean_reward", "mean_iteration_time_s"])


def learning_curves():
    """A long run, planners far apart; and a quick run of equal rewards to the last bit or so."""
    steps = np.linspace(0.0, 3.0, 40)
    long = metrics(-2.0 + np.exp(-steps), 40.0 + 100.0 * np.exp(-steps))
    quick = metrics([-0.7, -0.7 + 2e-16, -0.7], [51.1, 51.1 + 1e-14, 51.1])
    planners = {"hi_ppo": 40.0, "uniform": 41.0, "exact": 39.9, "random": 800.0}
    return [
        learning_curve(long, planners),
        learning_curve(quick, {"exact": 51.1}),
        learning_curve(metrics([-0.5], [51.0]), {}),
    ]


def curves_of_seeds():
    """Three seeds."""
    steps = np.linspace(0.0, 3.0, 40)
    logs = {
        f"seed {seed}": metrics(seed - np.exp(-steps), 50.0 + seed + np.exp(-steps))
        for seed in range(3)
    }
    return [seed_curves(logs, title="Rewards of three seeds")]


def comparisons():
    """Planners whose times are 1 and 100, and ten draws each."""
    rows = [
        {"planner": name, "iteration_time_s": (1.0 + place) * (1.0 + 0.1 * draw)}
        for place, name in enumerate((*METHODS, "planner_with_a_long_name_of_40_characters"))
        for draw in range(10)
    ]
    return [comparison_bars(pd.DataFrame(rows))]


def sweeps():
    """Forty settings of three seeds, one of which failed everywhere."""
    rows = [
        {"hidden_size": size, "rate": f"{rate:g}", "seed": seed, "error": None,
         "reward": -size * rate - 0.1 * seed}
        for size in (16, 32, 64, 128, 256) for rate in (1e-4, 3e-4, 1e-3, 3e-3) for seed in range(3)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    groups = table.groupby(["hidden_size", "rate"], sort=False)["reward"]
    settings = groups.mean().reset_index().assign(num_seeds=3, num_trials=3)
    settings["reward_half_width"] = 0.25
    return [sweep_figure(table, settings, ["hidden_size", "rate"])]


def bars():
    """Intervals far wider than bars, bars beyond 100 %, values below 0."""
    wide = [
        Bar(name=name, value=0.01 * place, half_width=0.05) for place, name in enumerate(METHODS)
    ]
    some = [
        Bar(name="hi_ppo", value=-0.02, half_width=math.nan),
        Bar(name="search", value=0.004, half_width=0.5),
        Bar(name="uniform", value=3.2, half_width=0.4),
    ]
    panels = [("a suite of four domains", wide), ("another suite", some)]
    return [bars_of(panels, "gap [%]", name="static", title="Planners on worlds that stand still")]


def robustness_means(num_worlds):
    """Means of methods by fluctuation and jitter; t-intervals of three worlds are very wide."""
    half = {3: 0.8, 20: 0.02}[num_worlds]
    return pd.DataFrame(
        [
            {"method": method, "fluctuation": fluctuation, "jitter": jitter,
             "mean": 0.02 * place * fluctuation, "half_width": half * fluctuation,
             "num_worlds": num_worlds}
            for place, method in enumerate(METHODS)
            for fluctuation in (0.0, 0.1, 0.2, 0.3)
            for jitter in (0.0, 0.1, 0.3)
        ]
    )  # fmt: skip


def robustness():
    """Three worlds and twenty."""
    return [robustness_figure(robustness_means(num)) for num in (3, 20)]


def jitters():
    """Three worlds."""
    return [jitter_figure(robustness_means(3))]


def fronts():
    """Two worlds with six methods."""
    priced = PricedWorld(
        name="priced 0",
        topology=world("ABC", {"AB": (1.0, 0.1), "BC": (1.0, 0.1)}),
        workload=unit_workload([(1.0, 2.0)] * 3, num_microbatches=2, message_bytes=1.0),
        ratio=0.5,
        schedule="1f1b",
    )
    figures = [
        PlanFigures(plan=plan(0, 0, 1), time_s_per_token=1e-6 * time, cost_per_token=1e-7 / time,
                    utilisation=0.5, used_utilisation=0.5, activation_bytes=1.0, fits_memory=True)
        for time in (1.0, 1.5, 2.0, 4.0)
    ]  # fmt: skip
    objectives = ("time_s_per_token", "cost_per_token", "utilisation")
    front = Front(figures=tuple(figures), objectives=objectives, num_judged=9)
    measured = FrontMetrics(
        coverage=0.5, hypervolume_ratio=0.9, igd_plus=0.1, num_points=4, num_reference=4
    )
    methods = tuple(
        MethodFront(method=name, front=front, metrics=measured, num_proposed=4, num_misfits=0,
                    timing_s=0.1, notes=())
        for name in METHODS[:6]
    )  # fmt: skip
    one = WorldFronts(world=priced, table="all_gpus", reference=front, methods=methods)
    return [fronts_figure([one, one]), fronts_figure([one] * 6)]


def levels():
    """Six levels of detail over twelve placements."""
    rows = [
        {"level": f"level {level}", "placement": place, "iteration_s": 10.0 + place * (1 + level)}
        for level in range(6)
        for place in range(12)
    ]
    return [levels_figure(pd.DataFrame(rows))]


def placement_trainings():
    """Two seeds of 60 updates."""
    updates = np.arange(60)
    logs = {
        str(seed): pd.DataFrame(
            {"update": updates, "excess": np.exp(-updates / 20) + 0.1 * seed,
             "depth_regret": 0.1 * np.exp(-updates / 9), "entropy": 1.0 - updates / 100}
        )
        for seed in range(2)
    }  # fmt: skip
    return [training_curves(logs)]


def predictions():
    """Forty cases over two decades, before and after."""
    times = np.geomspace(0.5, 60.0, 40)
    after = {"before": 1.2 * times, "corrected": times * (1.0 + 0.01 * np.sin(times))}
    return [predicted_versus_reference(times, after, title="Predicted against reference")]


PICTURES = {
    "scenarios.frame.plots:learning_curve": learning_curves,
    "scenarios.frame.plots:seed_curves": curves_of_seeds,
    "scenarios.frame.plots:interval_figure": comparisons,
    "scenarios.train.sweep_results:sweep_figure": sweeps,
    "scenarios.study.compare.compare_charts:bars_of": bars,
    "scenarios.study.robustness.robustness_page:robustness_figure": robustness,
    "scenarios.study.robustness.robustness_page:jitter_figure": jitters,
    "scenarios.study.pareto.pareto_page:fronts_figure": fronts,
    "scenarios.study.fidelity.fidelity_page:levels_figure": levels,
    "scenarios.study.training_curves:training_curves": placement_trainings,
    "calibration.fit.plot:predicted_versus_reference": predictions,
}
