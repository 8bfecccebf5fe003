"""Planners compared on networks that stand still, with the proven bound of each case."""

import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd

from agents.decision.families import SYNCHRONOUS, Family, family_of
from agents.decision.frozen_network import freeze_topology
from agents.decision.plan_space import SPACE_MICROBATCH_SIZES, PlanSpace
from agents.decision.problem import PlanningProblem
from agents.decision.trained_workload import trained_workload
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.step_times import step_times_s, step_wan_bytes
from agents.planners.bounds.step_bound import StepBound, step_lower_bound_s
from agents.planners.choice.depth import with_best_schedule
from agents.planners.choice.microbatches import best_grouping
from agents.planners.names import POLICY
from agents.planners.search.search import MOST_DOMAINS_FOR_ALL_ORDERS, search
from agents.planners.table import PLANNERS, PlannerRow
from agents.replanning.bound_schedulers import complete_plan
from agents.search.trainer_search import TrainerSearch
from agents.trainers.table import trainer_named
from des import EVERY_STEP, Plan, Topology, Workload
from des.base.extras import needed_extra
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from scenarios.study.compare.cases import BEST_SCHEDULE, ComparedDraw
from scenarios.study.trained_plans import depth_problem, search_plans, trained_world

with lazy_imports(__name__):
    from scenarios.study.compare import head_to_head


def whole_problem(
    topology: Topology, workload: Workload, families: Sequence[Family]
) -> WholeProblem:
    """Return the whole decision of a workload, in microbatches of all sizes and of its own.

    Its gradients are of two bytes, so that bounds hold for longer ones too.

    Raises
    ------
    ValueError
        If `des.build_workload` did not make the workload, or the topology moves.
    """
    own = 1 if workload.shape is None else int(workload.shape.batch_size)
    sizes = tuple(sorted({*SPACE_MICROBATCH_SIZES, own}))
    return WholeProblem(
        topology=topology,
        job=TrainingJob.of(replace(workload, gradient_precision="bf16"), microbatch_size=own),
        space=PlanSpace(families=tuple(families), microbatch_sizes=sizes),
    )


def bound_of(
    topology: Topology, workload: Workload, families: Sequence[Family]
) -> StepBound | None:
    """Bound the steps of all plans of these families; None where the proof does not cover them.

    A workload without the shape of a layer is not covered.
    """
    if workload.shape is None:
        return None
    try:
        return step_lower_bound_s(whole_problem(topology, workload, families))
    except ValueError:  # refused: the page of the bound says what it covers
        return None


_DECIDE = "decide"
"""The answer of ``python -m agents.decide``: one search over all sizes of microbatches."""


def static_planners() -> Mapping[str, PlannerRow]:
    """All planners by name; each may choose the depth that suits it best.

    Each is there a second time, with the best of all schedules for its plan.
    """
    scheduled = {
        name + BEST_SCHEDULE: replace(
            row, planner=with_best_schedule(row.over_depths), cost="seconds"
        )
        for name, row in PLANNERS.items()
    }
    return {**PLANNERS, **scheduled}


def rivals() -> tuple[str, ...]:
    """Names of the planners compared by default: `exact` is the reference of the others.

    A planner whose extra is not installed is left out, with a note.
    """
    others = tuple(name for name in PLANNERS if name != "exact")
    if find_spec("ortools") is not None:
        return others
    SPEAKER.note([f"cp_sat is left out: it {needed_extra('exact')}"])
    return tuple(name for name in others if name != "cp_sat")


def static_rows(case: ComparedDraw) -> pd.DataFrame:
    """Let planners plan on a world, and judge their plans.

    Returns
    -------
    pandas.DataFrame
        One row per planner. ``family`` is that of the plan. ``bound_s``, on real sites and
        examples, is a proven lower bound on the steps of all plans of the families of the case
        with one stage per domain, or NaN where the proof does not cover the world; ``ideal_s`` is
        a step with all GPUs at work and nothing sent, with the same layer times, and ``binds`` what
        keeps the bound from it. ``best_s`` is the proven optimum over plans with one stage per
        domain, or NaN where there is no proof in the budget; on real sites and examples it is the
        least time of all rows that fit into memory, only of the same training where the families
        are, and ``best_family`` the family of that row. A trainer's plans are compared with the
        least time of all rows, and with no bound. ``error`` says why a planner has no plan or
        is left out; its figures are NaN then. ``is_same_training`` is false of plans whose replicas
        do not exchange after every step, which is another optimisation; ``time_s`` is the mean from
        one exchange to the next. ``decision_time_s`` is a timing.

    Notes
    -----
    Planners draw from generators of their own, seeded by the case and their names, so that it does
    not matter who else is compared.
    """
    trainer = trainer_named(case.trainer)
    world = trained_world(case.world(), trainer)
    topology = freeze_topology(world, case.draw, 0)
    has_least = case.has_sites or not trainer.is_ideal
    best_s = float("nan") if has_least else _best_s(case)
    rows = []
    for name in case.methods:
        problem = depth_problem(topology, world.workload, world.schedule)
        drawn_by = zlib.crc32(name.removesuffix(BEST_SCHEDULE).encode())
        rng = np.random.default_rng([case.seed, case.index, case.draw, drawn_by])
        rows.append(
            {
                **case.about(world),
                "method": name,
                "best_s": best_s,
                **_outcome(case, name, problem, rng),
            }
        )
    frame = pd.DataFrame(rows)
    if has_least:
        counts = frame["fits_memory"]
        if case.families == SYNCHRONOUS:
            counts = counts & frame["is_same_training"]
        counted = frame[counts]
        frame["best_s"] = counted["time_s"].min()
        order = counted.sort_values("time_s", kind="stable")["family"].tolist()
        frame["best_family"] = order[0] if order else ""
    is_bounded = case.has_sites and trainer.is_ideal
    bound = bound_of(topology, world.workload, case.families) if is_bounded else None
    frame["bound_s"] = np.nan if bound is None else bound.step_s
    frame["ideal_s"] = np.nan if bound is None else bound.work_s
    frame["binds"] = "" if bound is None else bound.binds
    return frame


def _outcome(
    case: ComparedDraw, name: str, problem: PlanningProblem, rng: np.random.Generator
) -> dict[str, object]:
    row, count = static_planners().get(name), problem.topology.num_domains
    if row is not None and row.most_domains is not None and count > row.most_domains:
        most = row.most_domains
        return _without_plan(f"left out: needs more than half a minute above {most} domains", 0.0)
    begin_s = time.perf_counter()
    try:
        plan, workload = _complete(case, name, problem, rng)
        took_s = time.perf_counter() - begin_s
        figures = _figures(replace(problem, workload=workload), plan)
    except ValueError as error:  # what a planner refuses is a result, see the column
        return _without_plan(" ".join(str(error).split()), time.perf_counter() - begin_s)
    placements = " | ".join(map(str, plan.placements))
    return {
        **figures,
        "family": family_of(plan),
        "plan": f"{placements} {plan.schedule}",
        "error": "",
        "decision_time_s": took_s,
    }


def _complete(
    case: ComparedDraw, name: str, problem: PlanningProblem, rng: np.random.Generator
) -> tuple[Plan, Workload]:
    """Plan of a method as the trainer runs it, and its microbatches."""
    trainer = trainer_named(case.trainer)
    if POLICY in case.methods and name != _DECIDE:
        return head_to_head.equal_planner(name, trainer)(problem, rng), problem.workload
    if name == _DECIDE:
        families = case.families if trainer.is_ideal else None
        found = search_plans(problem.topology, problem.workload, trainer, families)
        return found.best.bound.plan, found.best.bound.workload
    plan, workload = _plan(name, problem, rng)
    if trainer.is_ideal:
        return plan, workload
    workload = trained_workload(workload, trainer)
    search = TrainerSearch(trainer=trainer)
    return complete_plan(replace(problem, workload=workload), plan, search), workload


def _plan(name: str, problem: PlanningProblem, rng: np.random.Generator) -> tuple[Plan, Workload]:
    """Plan of a method, and the job in microbatches of the size that the method has for it."""
    row = static_planners()[name]
    if not row.groups_microbatches:
        return row.over_depths(problem, rng), problem.workload
    judged = best_grouping(row.over_depths, problem, rng)
    return judged.plan, judged.workload


def _without_plan(error: str, took_s: float) -> dict[str, object]:
    return {
        "time_s": np.nan,
        "utilisation": np.nan,
        "cost_bytes": np.nan,
        "fits_memory": False,
        "is_same_training": True,
        "family": "",
        "plan": "",
        "error": error,
        "decision_time_s": took_s,
    }


def _figures(problem: PlanningProblem, plan: Plan) -> dict[str, float | bool]:
    """Figures of an iteration; where replicas seldom exchange, means over the time between."""
    result, mode = problem.judge(plan), plan.synchronisation
    if mode == EVERY_STEP:
        time_s, cost_bytes = result.makespan_s, result.communication_cost_bytes
    else:
        time_s = float(
            step_times_s(
                problem.topology,
                problem.workload,
                [plan],
                problem.corrections,
                simulator=problem.simulator,
            )[0]
        )
        cost_bytes = float(step_wan_bytes(problem.workload, [plan])[0])
    return {
        "time_s": time_s,
        "utilisation": result.utilisation * result.makespan_s / time_s,
        "cost_bytes": cost_bytes,
        "fits_memory": result.fits_memory,
        "is_same_training": mode == EVERY_STEP,
    }


def _best_s(case: ComparedDraw) -> float:
    """Proven best iteration time; NaN of too many domains or where the budget is too small. [s]"""
    world = case.world()
    if world.num_domains > MOST_DOMAINS_FOR_ALL_ORDERS:
        return float("nan")
    found = search(
        freeze_topology(world, case.draw, 0),
        world.workload,
        is_exact=True,
        max_judged=case.max_judged,
    )
    return found.makespan_s if found.is_proven else float("nan")
