"""Search for the rows of an answer: the best plans of each family, and why others fit nowhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agents.answer.question import Question
from agents.answer.rows import FamilyRow, row_of
from agents.decision.families import Family
from agents.decision.token_prices import price_of
from agents.decision.whole_plan import JudgedPlan, WholeFound
from agents.hi_ppo.plans.plan_policy import PlanPolicy
from agents.hi_ppo.plans.plan_proposals import proposing_plans
from agents.planners.whole.misfits import shortfall
from agents.planners.whole.search_whole import search_whole
from des import InfeasiblePlacementError, Plan

_BY_RULE: tuple[Family, ...] = ("single", "replicas")
"""Families of which `shortfall` looks at the plan that needs least."""

_WITH_BORDERS: tuple[Family, ...] = ("pipeline", "hybrid", "diloco", "streaming_diloco")
"""Families whose plans may send activations between domains."""


@dataclass(frozen=True, kw_only=True)
class SearchedRows:
    """Rows of the families that fit somewhere, and the errors of those that do not."""

    rows: tuple[FamilyRow, ...] = ()
    misfits: Mapping[Family, str] = field(default_factory=dict)
    num_judged: int = 0


def searched_rows(question: Question, plans: PlanPolicy | None) -> SearchedRows:
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
                replace(problem, space=narrow),
                max_judged=question.max_judged,
                propose=None if plans is None else proposing_plans(plans, problem.corrections),
            )
        except InfeasiblePlacementError as error:
            failure = error
    if not found_of and failure is not None:
        raise failure
    return SearchedRows(
        rows=tuple(
            row_of(problem, _as_sent(judged), question.token_factor)
            for factor, found in found_of.items()
            for judged in _of_each_family(found)
            if factor in (1.0, plainest) or has_borders(judged.plan)
        ),
        misfits=_misfits(list(found_of.values()), said),
        num_judged=sum(found.num_judged for found in found_of.values()),
    )


def _of_each_family(found: WholeFound) -> Iterator[JudgedPlan]:
    """The quickest plan of each family, and the one with the least price in tokens if another is.

    More copies may be quicker and need more tokens.
    """
    for family, judged in found.by_family.items():
        yield judged
        priced = [
            (one.step_s * factor, one)
            for one in found.by_copies[family]
            for factor in [price_of(one.plan, one.workload).factor]
            if factor is not None
        ]
        if priced:
            least = min(priced, key=lambda each: each[0])[1]
            if least is not judged:
                yield least


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


def has_borders(plan: Plan) -> bool:
    """Whether activations go between domains, which a compression shrinks."""
    return any(one.num_borders for one in plan.placements)


def _as_sent(judged: JudgedPlan) -> JudgedPlan:
    """The plan without a compression where it has nothing to compress."""
    if has_borders(judged.plan):
        return judged
    return replace(judged, plan=replace(judged.plan, activation_compression=1.0))
