"""Answering of a question: search over the families, policies and plan in force, and reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents.answer.answer import Answer
from agents.answer.change import PlanChange, change_to
from agents.answer.inside_domains import bind_inside
from agents.answer.judging import judged_plan
from agents.answer.question import Question
from agents.answer.rows import FamilyRow, at_par, quickest, row_of
from agents.answer.takeovers import takeovers
from agents.decision.depths import DEPTHS
from agents.decision.families import Family
from agents.decision.whole_plan import JudgedPlan, WholeFound
from agents.hi_ppo.coordinator import NoValidPlanError
from agents.hi_ppo.decision_report import coordinator_of
from agents.hi_ppo.explanation import explain
from agents.hi_ppo.local.decide import LocalAgent
from agents.hi_ppo.placement.features import MOST_DOMAINS
from agents.hi_ppo.policies import Policies
from agents.planners.bounds.step_bound import StepBound, step_lower_bound_s
from agents.planners.whole.misfits import shortfall
from agents.planners.whole.search_whole import search_whole
from des import InfeasiblePlacementError, Plan, UnreachableError, check_memory


@dataclass(frozen=True, kw_only=True)
class _Searched:
    """Rows of the families that fit somewhere, and the errors of those that do not."""

    rows: tuple[FamilyRow, ...] = ()
    misfits: Mapping[Family, str] = field(default_factory=dict)
    num_judged: int = 0


def answer(
    question: Question,
    policies: Policies | None = None,
    local: LocalAgent | None = None,
    *,
    searches: bool = True,
    explains: bool = False,
) -> Answer:
    """Decide over all families allowed, and say what people ask about the plan.

    Parameters
    ----------
    policies
        Their pipeline is judged with the plans of the search, so it never makes the answer worse.
        None, or more domains than they take: the search decides alone.
    local
        Binds the GPUs inside the domains of a pipeline; None leaves that open.
    searches
        Whether to search; without it the policies and the plan in force are all there is.
    explains
        Whether to reckon the neighbours of a pipeline, see `agents.hi_ppo.explanation.explain`.

    Raises
    ------
    InfeasiblePlacementError
        If no family fits, naming what the one lacks that lacks least.
    ValueError
        If a plan that is left has no price in tokens, or the plan in force is of another job.
    """
    searched = _searched(question) if searches else _Searched()
    rows = searched.rows
    bound, why_no_bound = _bound(question)
    if policies is not None:
        rows = _with_policies(question, rows, policies)
    rows = tuple(
        row if bound is None else replace(row, bound_s=bound.family_s[row.judged.family])
        for row in rows
    )
    present, misfit = _present(question)
    candidates = _within_reach(question, present, rows)
    if present is not None and misfit is None:
        candidates = (present, *candidates)
    if not candidates:
        raise InfeasiblePlacementError(
            "; ".join(searched.misfits.values())
            or f"answer: {'links lead to no plan that fits' if rows else _NONE_BY_POLICIES}"
        )
    best = quickest(candidates, question.most_slowdown)
    at_one = quickest(tuple(at_par(row) for row in candidates), question.most_slowdown)
    change: PlanChange | None = None
    if present is not None:
        change = change_to(question.problem, present, misfit, best, question.replacement)
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


def _searched(question: Question) -> _Searched:
    """Search each compression by itself, so that none hides another's best plan.

    Raises
    ------
    InfeasiblePlacementError
        If no family fits under any of them.
    """
    problem, found_of = question.problem, dict[float, WholeFound]()
    said = {
        family: shortfall(
            problem.topology, problem.workloads[0], family, problem.space.modes(family)[0]
        )
        for family in problem.space.families
    }
    hopeless = {family: what for family, what in said.items() if what and family in _BY_RULE}
    if len(hopeless) == len(said):
        raise InfeasiblePlacementError("; ".join(map(_fits_nowhere, hopeless, hopeless.values())))
    failure: InfeasiblePlacementError | None = None
    plainest = min(problem.space.compressions)
    for factor in dict.fromkeys((*problem.space.compressions, 1.0)):
        families = tuple(
            family
            for family in problem.space.families
            if family not in hopeless
            and (factor in problem.space.compressions if family in _WITH_BORDERS else factor == 1.0)
        )
        if not families:
            continue
        narrow = replace(problem.space, compressions=(factor,), families=families)
        try:
            found_of[factor] = search_whole(
                replace(problem, space=narrow), max_judged=question.max_judged
            )
        except InfeasiblePlacementError as error:
            failure = error
    if not found_of and failure is not None:
        raise failure
    return _Searched(
        rows=tuple(
            row_of(problem, _as_sent(judged), question.token_factor)
            for factor, found in found_of.items()
            for judged in found.by_family.values()
            if factor in (1.0, plainest) or _has_borders(judged.plan)
        ),
        misfits=_misfits(list(found_of.values()), said),
        num_judged=sum(found.num_judged for found in found_of.values()),
    )


def _bound(question: Question) -> tuple[StepBound | None, str]:
    """Lower bound of a step over the space, or the reason why the proof does not cover it."""
    try:
        return step_lower_bound_s(question.problem), ""
    except ValueError as error:
        return None, str(error)


def _misfits(
    found_of: Sequence[WholeFound], by_rule: Mapping[Family, str | None]
) -> dict[Family, str]:
    """Shortfalls of families that fit nowhere, by the search or, where it is silent, by rule."""
    said = {family: _fits_nowhere(family, what) for family, what in by_rule.items() if what}
    for found in found_of:
        said |= {family: str(error) for family, error in found.misfits.items()}
    known = {family for found in found_of for family in found.by_family}
    return {family: what for family, what in said.items() if family not in known}


def _fits_nowhere(family: Family, lack: str | None) -> str:
    return f"{family}: no plan fits; at best, {lack}"


_NONE_BY_POLICIES = "the policies found no plan that fits"

_BY_RULE: tuple[Family, ...] = ("single", "replicas")
"""Families of which `shortfall` looks at the plan that needs least."""

_WITH_BORDERS: tuple[Family, ...] = ("pipeline", "hybrid", "diloco", "streaming_diloco")
"""Families whose plans may send activations between domains."""


def _has_borders(plan: Plan) -> bool:
    """Whether activations go between domains, which a compression shrinks."""
    return any(one.num_borders for one in plan.placements)


def _as_sent(judged: JudgedPlan) -> JudgedPlan:
    """The plan without a compression where it has nothing to compress."""
    if _has_borders(judged.plan):
        return judged
    return replace(judged, plan=replace(judged.plan, activation_compression=1.0))


def _with_policies(
    question: Question, rows: tuple[FamilyRow, ...], policies: Policies
) -> tuple[FamilyRow, ...]:
    """Put the policies' pipeline in the place of its family's row where it is quicker."""
    found = _policy_plan(question, policies)
    space = question.problem.space
    if found is None or found.family not in space.families:
        return rows
    if _has_borders(found.plan) and 1.0 not in space.compressions:
        return rows
    own = row_of(question.problem, found, question.token_factor, decided_by="hi_ppo")
    titles = [row.title for row in rows]
    if own.title not in titles:
        return (*rows, own)
    place = titles.index(own.title)
    if rows[place].step_s <= own.step_s:
        return rows
    return (*rows[:place], own, *rows[place + 1 :])


def _policy_plan(question: Question, policies: Policies) -> JudgedPlan | None:
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


def _within_reach(
    question: Question, present: FamilyRow | None, rows: tuple[FamilyRow, ...]
) -> tuple[FamilyRow, ...]:
    """Rows to whose domains links lead from the layers of the plan in force."""
    if present is None:
        return rows
    found = []
    for row in rows:
        try:
            change_to(question.problem, present, None, row, question.replacement)
        except UnreachableError:
            continue
        found.append(row)
    return tuple(found)


def _present(question: Question) -> tuple[FamilyRow | None, str | None]:
    """Row of the plan in force, and what it lacks of memory now."""
    in_force = question.in_force
    if in_force is None:
        return None, None
    judged = judged_plan(question.problem, in_force.workload, in_force.plan)
    row = row_of(question.problem, judged, question.token_factor, decided_by="in force")
    try:
        check_memory(question.problem.topology, in_force.workload, in_force.plan)
    except InfeasiblePlacementError as error:
        return row, str(error)
    return row, None
