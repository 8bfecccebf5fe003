"""Tables of re-planning: rules, which choose among given plans, and schedulers, which make them."""

import zlib
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.problem import PlanningProblem
from agents.decision.situation import MakeScheduler
from agents.planners.table import PLANNERS, PlannerRow
from agents.replanning.forecast import on_ar1_forecast, on_mean, on_worst_case
from agents.replanning.mast_scheduler import MastScheduler
from agents.replanning.rules import (
    FollowTheLeader,
    Horizon,
    Rule,
    clairvoyant,
    greedy,
    hold,
    value_iteration,
)
from agents.replanning.search_schedulers import HoldPlan, PlanEveryEpoch, SearchScheduler
from des import Plan, Topology, Workload
from des.compiled.simulate import simulate_compiled

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "static": hold,
        "greedy": greedy,
        "H1": Horizon(1.0),
        "H4": Horizon(4.0),
        "H8": Horizon(8.0),
        "H16": Horizon(16.0),
        "H32": Horizon(32.0),
        "H64": Horizon(64.0),
        "FTL": FollowTheLeader(),
        "VI": value_iteration,
        "clairvoyant": clairvoyant,
    }
)
"""Rules by the name that tables have for them; the clairvoyant is the bound of the others."""

HORIZON_EPOCHS = 8.0
"""Horizon of repeated planners. [epochs]"""


def _repeat(name: str) -> MakeScheduler:
    """Repeat a planner in every epoch; its plan is taken where that pays within the horizon."""
    return partial(
        SearchScheduler,
        planner=PLANNERS[name].over_depths,
        horizon_epochs=HORIZON_EPOCHS,
        name=f"{name}_h{HORIZON_EPOCHS:g}",
    )


SCHEDULERS: Mapping[str, MakeScheduler] = MappingProxyType(
    {
        "search_once": HoldPlan,
        "search_h1": lambda: PlanEveryEpoch(1.0),
        "search_h4": lambda: PlanEveryEpoch(4.0),
        "search_h8": lambda: PlanEveryEpoch(8.0),
        "search_greedy": lambda: PlanEveryEpoch(float("inf")),
        "atlas_h8": _repeat("atlas"),
        "formula_h8": _repeat("formula"),
        "search_mean": lambda: on_mean(PLANNERS["search"], schedules=DEPTHS),
        "search_worst_case": lambda: on_worst_case(PLANNERS["search"], schedules=DEPTHS),
        "search_ar1": lambda: on_ar1_forecast(PLANNERS["search"], schedules=DEPTHS),
        "mast_epochs": lambda: MastScheduler(schedules=DEPTHS),
    }
)
"""Schedulers that are not trained, by the name that users write: one strong search, held or
repeated; planners on mean, worst-case and forecast bandwidths; and MAST's slow and fast path."""


def held_scheduler(row: PlannerRow) -> MakeScheduler:
    """Return what makes the scheduler that plans once, at base figures, and holds that plan."""

    def find_plan(topology: Topology, workload: Workload) -> Plan:
        problem = PlanningProblem(
            topology=topology,
            workload=workload,
            schedules=DEPTHS,
            simulator=simulate_compiled,
        )
        rng = np.random.default_rng(zlib.crc32(row.name.encode()))
        return row.over_depths(problem, rng)

    return partial(HoldPlan, find_plan)


def scheduler_makers() -> dict[str, MakeScheduler]:
    """Return the schedulers of `SCHEDULERS`, and each planner with its plan held, by name."""
    held = {name: held_scheduler(row) for name, row in PLANNERS.items()}
    return {**SCHEDULERS, **held}
