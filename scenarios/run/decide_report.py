"""Report of a decision: its page, with the map, the plan and the rivals as figures."""

from collections.abc import Mapping

from agents.answer.answer import Answer
from agents.answer.figures import duration, figure
from agents.answer.page import sections_of
from des.figures.figure import Axis, Figure, Panel
from des.figures.marks import Boxes, GuideLine
from des.figures.palette import BLUE, VERMILION
from des.plan.plan_texts import pipelines_text
from des.views.plan_views import PlanViews, plan_views
from scenarios.frame.report import Report


def decision_report(answer: Answer, configuration: Mapping[str, object], command: str) -> Report:
    """Return the report of an answer."""
    question, judged = answer.question, answer.best.judged
    problem, names = question.problem, question.domain_names
    views = answer_views(answer)
    return Report(
        title=f"Where to train {judged.workload.name}",
        question=f"Where to place {judged.workload.name}, {judged.workload.num_layers} layers, "
        f"with {problem.job.tokens_per_step:,} tokens a step on {', '.join(names)}?",
        answer=f"{answer.best.title}: {pipelines_text(judged.plan, names)}; "
        f"{duration(answer.step_s)} a step, {figure(answer.tokens_per_s)} tokens/s.",
        command=command,
        first=views.first,
        sections=sections_of(answer),
        figures=(families_figure(answer), *views.more),
        configuration=configuration,
    )


def answer_views(answer: Answer) -> PlanViews:
    """Return the figures of the best plan of an answer."""
    problem, judged = answer.question.problem, answer.best.judged
    return plan_views(
        problem.topology, judged.workload, judged.plan, problem.corrections, title="The answer"
    )


def families_figure(answer: Answer) -> Figure:
    """Return the time of a step of the best plan of each family, with the bound."""
    rows = sorted(answer.rows, key=lambda row: row.step_s) or [answer.best]
    places = tuple(map(float, range(len(rows))))
    names = answer.question.domain_names
    boxes = Boxes(
        label="seconds a step",
        starts=(0.0,) * len(rows),
        ends=tuple(row.step_s for row in rows),
        rows=places,
        colour=BLUE,
        height=0.6,
        hovers=tuple(
            f"{row.title}: {duration(row.step_s)}\n{pipelines_text(row.judged.plan, names)}"
            for row in rows
        ),
    )
    said = "; ".join(f"{row.title} {duration(row.step_s)}" for row in rows)
    rules: tuple[GuideLine, ...] = ()
    if answer.bound is not None:
        rules = (GuideLine(label="no plan is quicker", x=answer.bound.step_s, colour=VERMILION),)
        said += f"; no plan is below {duration(answer.bound.step_s)}"
    panel = Panel(
        x=Axis(label="seconds a step", low=0.0),
        y=Axis(
            ticks=tuple((place, row.title) for place, row in zip(places, rows, strict=True)),
            low=-0.5,
            high=len(rows) - 0.5,
            is_reversed=True,
        ),
        marks=(*rules, boxes),
        height=0.7 + 0.34 * len(rows),
        grid="x",
    )
    return Figure(
        name="families",
        title="Best plan of each family",
        seen=f"Time of a step: {said}.",
        panels=(panel,),
    )
