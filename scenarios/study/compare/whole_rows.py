"""Searches over all families as compared: as a planner, as the answer of a decision, at length."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from agents.decision.families import Family
from agents.decision.plan_space import SPACE_MICROBATCH_SIZES, PlanSpace
from agents.decision.problem import PlanningProblem
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import JudgedPlan, ProposeGroups, WholeProblem
from agents.planners.bounds.step_bound import StepBound, step_lower_bound_s
from agents.planners.choice.microbatches import best_grouping
from agents.planners.whole.family_search import FamilySearch, default_budget
from agents.planners.whole.search_whole import search_whole
from des import Corrections, Plan, Topology, Workload
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from agents.hi_ppo.plans import plan_checkpoint, plan_proposals

SEARCH_ALONE = "decide_search"
"""The answer of ``--deciders search``, without the plan policy."""

TENFOLD = "whole_10x"
"""`agents.planners.table.PLANNERS` has ``whole``; this one judges ten times as many plans."""

ANSWERS = MappingProxyType({"decide": 1, "decide_10x": 10, SEARCH_ALONE: 1})
"""Answers as ``python -m agents.decide`` finds them, one search over all sizes of microbatches from
what the shipped plan policy of seed 0 proposes too, by name: factor on the default budget."""

_TENFOLD = 10


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


def answer_of_families(
    name: str, problem: PlanningProblem, families: Sequence[Family]
) -> JudgedPlan:
    """Return the quickest plan of a method of `ANSWERS`, whatever the tokens it needs.

    Raises
    ------
    InfeasiblePlacementError
        See `agents.planners.whole.search_whole.search_whole`.
    """
    asked = whole_problem(problem.topology, problem.workload, families)
    budget = ANSWERS[name] * default_budget(problem.topology.num_domains)
    propose = None if name == SEARCH_ALONE else _shipped_proposals(problem.corrections)
    return search_whole(asked, max_judged=budget, propose=propose).best


def _shipped_proposals(corrections: Corrections) -> ProposeGroups:
    policy = plan_checkpoint.load_plan_policy(plan_proposals.shipped_plan_file())
    return plan_proposals.proposing_plans(policy, corrections)


def tenfold(problem: PlanningProblem, rng: np.random.Generator) -> JudgedPlan:
    """Return what ``whole`` finds with ten times its budget for each size of microbatches."""

    def planner(asked: PlanningProblem, rng: np.random.Generator) -> Plan:
        budget = _TENFOLD * default_budget(asked.topology.num_domains)
        search = FamilySearch(
            asked.topology,
            (asked.workload,),
            PlanSpace(),
            asked.corrections,
            max_judged=budget,
        )
        return search.run().best.plan

    return best_grouping(planner, problem, rng)
