"""Report of a decision: its page, with the map, the plan and the rivals as figures."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.answer.answer import Answer
from agents.answer.bound_answer import BoundAnswer
from agents.answer.bound_page import bound_sections
from agents.answer.figures import duration, figure
from agents.answer.page import sections_of
from agents.search.bound_rows import KIND_TITLES
from des import Corrections, Plan, Topology, Workload, lower
from des.figures.figure import Figure
from des.figures.marks import GuideLine, bars_from_zero
from des.figures.palette import BLUE, VERMILION
from des.figures.panels import Axis, Panel, named_rows
from des.plan.plan_texts import pipelines_text
from des.views.plan_views import PlanViews, plan_views
from scenarios.frame.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rival:
    """The best plan of one kind or family."""

    title: str
    workload: Workload
    plan: Plan
    step_s: float


def decision_report(
    answer: Answer | BoundAnswer, configuration: Mapping[str, object], command: str
) -> Report:
    """Return the report of an answer, whether with a bound plan or among perfect devices."""
    best, names = _rivals(answer)[0], [one.name for one in _world(answer)[0].domains]
    tokens, views = best.workload.tokens_per_iteration, answer_views(answer)
    return Report(
        title=f"Where to train {best.workload.name}",
        question=f"Where to place {best.workload.name}, {best.workload.num_layers} layers, "
        f"with {tokens:,} tokens a step on {', '.join(names)}?",
        answer=f"{best.title}: {pipelines_text(best.plan, names)}; "
        f"{duration(best.step_s)} a step, {figure(tokens / best.step_s)} tokens/s.",
        command=command,
        first=views.first,
        sections=sections_of(answer) if isinstance(answer, Answer) else bound_sections(answer),
        figures=(rivals_figure(answer), *views.more),
        configuration=configuration,
    )


def answer_views(answer: Answer | BoundAnswer) -> PlanViews:
    """Return the figures of the best plan of an answer."""
    best, (topology, corrections) = _rivals(answer)[0], _world(answer)
    program = lower(topology, best.workload, best.plan, corrections)
    return plan_views(topology, program, corrections, title="The answer")


def _world(answer: Answer | BoundAnswer) -> tuple[Topology, Corrections]:
    if isinstance(answer, Answer):
        return answer.question.problem.topology, answer.question.problem.corrections
    return answer.request.topology, answer.request.corrections


def _rivals(answer: Answer | BoundAnswer) -> list[_Rival]:
    """The answer, then all rows of its table."""
    if isinstance(answer, Answer):
        return [
            _Rival(
                title=row.title,
                workload=row.judged.workload,
                plan=row.judged.plan,
                step_s=row.step_s,
            )
            for row in (answer.best, *answer.rows)
        ]
    return [
        _Rival(
            title=KIND_TITLES[row.kind],
            workload=row.bound.workload,
            plan=row.bound.plan,
            step_s=row.bound.step_s,
        )
        for row in (answer.best, *answer.rows)
    ]


def rivals_figure(answer: Answer | BoundAnswer) -> Figure:
    """Return the time of a step of the best plan of each family or kind, with the bound."""
    best, *others = _rivals(answer)
    rows = sorted(others, key=lambda row: row.step_s) or [best]
    names = [one.name for one in _world(answer)[0].domains]
    hovers = tuple(
        f"{row.title}: {duration(row.step_s)}\n{pipelines_text(row.plan, names)}" for row in rows
    )
    boxes = bars_from_zero("seconds a step", (row.step_s for row in rows), BLUE, hovers)
    said = "; ".join(f"{row.title} {duration(row.step_s)}" for row in rows)
    rules: tuple[GuideLine, ...] = ()
    if isinstance(answer, Answer) and answer.bound is not None:
        rules = (GuideLine(label="no plan is quicker", x=answer.bound.step_s, colour=VERMILION),)
        said += f"; no plan is below {duration(answer.bound.step_s)}"
    panel = Panel(
        x=Axis(label="seconds a step", low=0.0),
        y=named_rows(row.title for row in rows),
        marks=(*rules, boxes),
        height=0.7 + 0.34 * len(rows),
        grid="x",
    )
    kinds = ("families", "family") if isinstance(answer, Answer) else ("kinds", "kind")
    return Figure(
        name=kinds[0],
        title=f"Best plan of each {kinds[1]}",
        seen=f"Time of a step: {said}.",
        panels=(panel,),
    )
