"""Answering of a question: search over the families, policies and plan in force, and reasons."""

from collections.abc import Callable
from dataclasses import replace

from agents.answer.answer import Answer
from agents.answer.change import PlanChange, change_to
from agents.answer.inside_domains import bind_inside
from agents.answer.judging import judged_plan
from agents.answer.question import Question
from agents.answer.rows import FamilyRow, at_par, quickest, row_of
from agents.answer.searching import SearchedRows, has_borders, searched_rows
from agents.answer.takeovers import takeovers
from agents.decision.depths import DEPTHS
from agents.decision.whole_plan import JudgedPlan
from agents.hi_ppo.coordinator import NoValidPlanError
from agents.hi_ppo.decision_report import coordinator_of
from agents.hi_ppo.explanation import explain
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.placement.features import MOST_DOMAINS
from agents.hi_ppo.plans.plan_policy import PlanPolicy
from agents.hi_ppo.policies import Policies
from agents.planners.bounds.step_bound import StepBound, step_lower_bound_s
from des import InfeasiblePlacementError, UnreachableError, check_memory

_NONE_BY_POLICIES = "answer: the policies found no plan that fits"

_CUT_OFF = (
    "answer: links must lead from the layers of the plan in force to a plan that fits, got none "
    "that do; where every domain can load the model state, a change costs a restart only"
)


def answer(
    question: Question,
    policies: Policies | None = None,
    local: LocalAgent | None = None,
    *,
    plans: PlanPolicy | None = None,
    searches: bool = True,
    explains: bool = False,
    before_policies: Callable[[], None] | None = None,
) -> Answer:
    """Decide over all families allowed, and say what people ask about the plan.

    Parameters
    ----------
    policies
        Their pipeline is judged with the plans of the search, so it never makes the answer worse.
        None, or more domains than they take: the search decides alone.
    local
        Binds the GPUs inside the domains of a pipeline; None leaves that open.
    plans
        Proposes plans that the search begins from too, where there are too many domains for the
        search to look at all orders; None: nothing learnt does.
    searches
        Whether to search; without it the policies and the plan in force are all there is.
    explains
        Whether to reckon the neighbours of a pipeline, see `agents.hi_ppo.explanation.explain`.
    before_policies
        Called between the search and the policies.

    Raises
    ------
    InfeasiblePlacementError
        If no family fits, naming what the one lacks that lacks least.
    ValueError
        If a plan that is left has no price in tokens, or the plan in force is of another job.
    """
    searched = searched_rows(question, plans) if searches else SearchedRows()
    rows = searched.rows
    bound, why_no_bound = _bound(question)
    if before_policies is not None:
        before_policies()
    if policies is not None:
        rows = _with_policies(question, rows, policies)
    rows = tuple(
        row if bound is None else replace(row, bound_s=bound.family_s[row.judged.family])
        for row in rows
    )
    present, misfit = _present(question)
    candidates = _within_reach(question, rows)
    if present is not None and misfit is None:
        candidates = (present, *candidates)
    if not candidates:
        raise InfeasiblePlacementError(
            _CUT_OFF if rows else "; ".join(searched.misfits.values()) or _NONE_BY_POLICIES
        )
    best = quickest(candidates, question.most_slowdown)
    at_one = quickest(tuple(at_par(row) for row in candidates), question.most_slowdown)
    change: PlanChange | None = None
    if question.in_force is not None:
        change = change_to(
            question.problem,
            question.in_force,
            best,
            question.replacement,
            present=present,
            misfit=misfit,
        )
    inside, why_not_inside = (None, "")
    if local is not None:
        inside, why_not_inside = bind_inside(question, best.judged, local)
    return Answer(
        question=question,
        best=best,
        best_at_par=at_one,
        rows=rows,
        misfits=searched.misfits,
        bound=bound,
        why_no_bound=why_no_bound,
        change=change,
        takeovers=takeovers(question.problem, candidates, question.most_slowdown),
        candidates=candidates,
        inside=inside,
        why_not_inside=why_not_inside,
        explanation=explain(
            question.problem.topology,
            best.judged.workload,
            best.judged.plan,
            question.problem.corrections,
            schedules=DEPTHS,
        )
        if explains and not best.judged.plan.replicas
        else None,
        num_judged=searched.num_judged,
    )


def _bound(question: Question) -> tuple[StepBound | None, str]:
    """Lower bound of a step over the space, or the reason why the proof does not cover it."""
    try:
        return step_lower_bound_s(question.problem), ""
    except ValueError as error:
        return None, str(error)


def _with_policies(
    question: Question, rows: tuple[FamilyRow, ...], policies: Policies
) -> tuple[FamilyRow, ...]:
    """Put the policies' pipeline in the place of its family's row where it is quicker."""
    found = policy_plan(question, policies)
    space = question.problem.space
    if found is None or found.family not in space.families:
        return rows
    if has_borders(found.plan) and 1.0 not in space.compressions:
        return rows
    own = row_of(question.problem, found, question.token_factor, decided_by="hi_ppo")
    titles = [row.title for row in rows]
    if own.title not in titles:
        return (*rows, own)
    place = titles.index(own.title)
    if rows[place].step_s <= own.step_s:
        return rows
    return (*rows[:place], own, *rows[place + 1 :])


def policy_plan(question: Question, policies: Policies) -> JudgedPlan | None:
    """Plan of the trained policies, judged in the microbatches that suit it best."""
    problem = question.problem
    if problem.topology.num_domains > MOST_DOMAINS:
        return None
    workload = min(problem.workloads, key=lambda one: abs(one.num_microbatches - _TRAINED_FOR))
    coordinator = coordinator_of(policies, question.most_slowdown)
    try:
        plan = coordinator.decide(question.situation(workload)).plan
    except (InfeasiblePlacementError, UnreachableError, NoValidPlanError):
        return None
    judged = []
    for each in problem.workloads:
        try:
            check_memory(problem.topology, each, plan)
        except InfeasiblePlacementError:
            continue
        judged.append(judged_plan(problem, each, plan))
    return min(judged, key=lambda one: one.step_s, default=None)


_TRAINED_FOR = 32
"""Microbatches in the middle of what the policies were trained on."""


def _within_reach(question: Question, rows: tuple[FamilyRow, ...]) -> tuple[FamilyRow, ...]:
    """Rows to whose domains links lead from the layers of the plan in force."""
    if question.in_force is None:
        return rows
    found = []
    for row in rows:
        try:
            change_to(question.problem, question.in_force, row, question.replacement)
        except UnreachableError:
            continue
        found.append(row)
    return tuple(found)


def _present(question: Question) -> tuple[FamilyRow | None, str | None]:
    """Row of the plan in force, None where it cannot run, and what it lacks of memory or links."""
    in_force = question.in_force
    if in_force is None:
        return None, None
    try:
        judged = judged_plan(question.problem, in_force.workload, in_force.plan)
    except UnreachableError as error:
        return None, str(error)
    row = row_of(question.problem, judged, question.token_factor, decided_by="in force")
    try:
        check_memory(question.problem.topology, in_force.workload, in_force.plan)
    except InfeasiblePlacementError as error:
        return row, str(error)
    return row, None
