"""Answers of a stream: the plan in force after each, with the verdict on leaving the last one."""

from agents.answer.bound_answer import BoundAnswer
from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import write_document
from agents.decision.token_prices import price_of
from agents.replanning.stay_or_move import PayoffRule, Stakes, weigh_move


def followed(answer: BoundAnswer, rule: PayoffRule) -> tuple[dict[str, object], BoundPlan]:
    """Return the document of the plan in force after an answer, and the plan.

    It is that of `BoundAnswer.as_dict` with a ``verdict``; where the plan in force stays, the
    document is of it. Plans are compared by their time to an equal loss. Where an objective other
    than time decides, its best plan is followed.
    """
    change, best = answer.change, answer.best
    if change is None:
        return _with_verdict(answer, best.bound, "first", "no plan was in force")
    present = change.present
    if present is None:
        return _with_verdict(answer, best.bound, "move", f"it cannot run: {change.misfit}")
    if not answer.objective.is_time_alone:
        return _with_verdict(answer, best.bound, "move", "the objective is not time alone")
    factor = price_of(present.plan, present.workload).factor or 1.0
    stakes = Stakes(present_s=present.step_s * factor, step_s=best.figures.loss_s, cost=change.cost)
    weighed = weigh_move(rule, stakes)
    if weighed.moves:
        return _with_verdict(answer, best.bound, "move", weighed.why)
    return _with_verdict(answer, present, "stay", weighed.why)


def _with_verdict(
    answer: BoundAnswer, plan: BoundPlan, action: str, why: str
) -> tuple[dict[str, object], BoundPlan]:
    content = answer.as_dict()
    facts = content["answer"]
    assert isinstance(facts, dict)
    if plan is not answer.best.bound:
        content = write_document(plan)
    return content | {"answer": facts | {"verdict": {"action": action, "why": why}}}, plan
