"""Report of a decision: its page, with the map, the plan and the rivals as figures."""

from agents.answer.bound_answer import BoundAnswer
from agents.answer.bound_page import bound_sections
from agents.answer.number_texts import duration, figure
from agents.search.bound_rows import KIND_TITLES
from des import lower
from des.figures.figure import Figure, panel_figure
from des.figures.marks import bars_from_zero
from des.figures.palette import BLUE
from des.figures.panels import Axis, named_rows
from des.plan.plan_texts import pipelines_text
from des.views.plan_views import PlanViews, plan_views
from scenarios.frame.report import Repetition, Report


def decision_report(answer: BoundAnswer, repeat: Repetition) -> Report:
    """Return the report of an answer."""
    best, names = answer.best.bound, [one.name for one in answer.request.topology.domains]
    tokens, views = best.workload.tokens_per_iteration, answer_views(answer)
    return Report(
        title=f"Where to train {best.workload.name}",
        question=f"Where to place {best.workload.name}, {best.workload.num_layers} layers, "
        f"with {tokens:,} tokens a step on {', '.join(names)}?",
        answer=f"{KIND_TITLES[answer.best.kind]}: {pipelines_text(best.plan, names)}; "
        f"{duration(best.step_s)} a step, {figure(tokens / best.step_s)} tokens/s.",
        repeat=repeat,
        first=views.first,
        sections=bound_sections(answer),
        figures=(rivals_figure(answer), *views.more),
    )


def answer_views(answer: BoundAnswer) -> PlanViews:
    """Return the figures of the best plan of an answer."""
    best = answer.best.bound
    program = lower(best.topology, best.workload, best.plan, best.corrections)
    return plan_views(best.topology, program, best.corrections, title="The answer")


def rivals_figure(answer: BoundAnswer) -> Figure:
    """Return the time of a step of the best plan of each kind."""
    rows = sorted(answer.rows, key=lambda row: row.bound.step_s)
    times_s, titles = [row.bound.step_s for row in rows], [KIND_TITLES[row.kind] for row in rows]
    names = [one.name for one in answer.request.topology.domains]
    each = [f"{title} {duration(step_s)}" for title, step_s in zip(titles, times_s, strict=True)]
    hovers = tuple(
        f"{said}\n{pipelines_text(row.bound.plan, names)}"
        for said, row in zip(each, rows, strict=True)
    )
    return panel_figure(
        name="kinds",
        title="Best plan of each kind",
        seen=f"Time of a step: {'; '.join(each)}.",
        x=Axis(label="seconds a step", low=0.0),
        y=named_rows(titles),
        marks=(bars_from_zero("seconds a step", times_s, BLUE, hovers),),
        height=0.7 + 0.34 * len(rows),
        grid="x",
    )
