"""Planners and the trained policy on the job and world of a scene."""

from functools import cache

import numpy as np
import pandas as pd

from agents.decision.problem import PlanningProblem
from agents.decision.situation import TIME_ONLY
from agents.hi_ppo.coordinator import coordinator_of
from agents.hi_ppo.policies import Policies, shipped
from agents.hi_ppo.proposing import first_situation
from agents.planners.names import POLICY
from agents.planners.table import quick_planners
from des import Plan, check_memory
from des.compiled.simulate import simulate_compiled
from des.plan.plan_texts import pipelines_text
from scenarios.explore.scene import Scene

Row = tuple[str, str, str, str]
HEAD = ("planner", "s a step", "fits", "plan")


def rival_rows(scene: Scene) -> list[Row]:
    """Return name, seconds a step, whether it fits and the plan, the quickest that fits first.

    The plan of the scene is among them; what a planner refuses is said in the place of its plan.
    """
    problem = PlanningProblem(topology=scene.topology, workload=scene.workload)
    plans: dict[str, Plan | str] = {"this plan": scene.plan}
    for name, row in quick_planners().items():
        try:
            plans[name] = row.over_depths(problem, np.random.default_rng(0))
        except ValueError as error:  # what a planner refuses is a result
            plans[name] = str(error)
    plans[POLICY] = _by_policy(scene)
    return [row for _, _, row in sorted(_judge(scene, *item) for item in plans.items())]


def rival_table(scene: Scene) -> pd.DataFrame:
    """Return the same rows as a table."""
    return pd.DataFrame(rival_rows(scene), columns=list(HEAD))


def _by_policy(scene: Scene) -> Plan | str:
    situation = first_situation(scene.topology, scene.workload, TIME_ONLY, epoch_s=300.0)
    try:
        return coordinator_of(_policies()).decide(situation).plan
    except (ValueError, LookupError) as error:
        return str(error)


@cache
def _policies() -> Policies:
    return Policies.load(shipped())


def _judge(scene: Scene, name: str, plan: Plan | str) -> tuple[int, float, Row]:
    """Rank and time of a plan, for sorting, and its row."""
    if isinstance(plan, str):
        return 2, 0.0, (name, "-", "-", plan)
    time_s = simulate_compiled(scene.topology, scene.workload, plan).makespan_s
    try:
        check_memory(scene.topology, scene.workload, plan)
    except ValueError:
        fits = False
    else:
        fits = True
    text = f"{pipelines_text(plan, tuple(scene.topology.index_of))}; {plan.schedule}"
    return int(not fits), time_s, (name, f"{time_s:.4g}", "yes" if fits else "no", text)
