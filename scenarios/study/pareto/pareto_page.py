"""Report and picture of a comparison of fronts."""

from collections.abc import Sequence

import pandas as pd

from agents.planners.pareto.fronts import Front
from des import lower
from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line, Points
from des.figures.palette import INK, colour
from des.figures.panels import Axis, Panel
from des.plan.plan_texts import PERFECT_DEVICES, pipelines_text
from des.views.plan_views import plan_views
from scenarios.frame.report import PageTable, Repetition, Report
from scenarios.study.pareto.study import WorldFronts

_COLUMNS = {
    "coverage": "coverage of the reference",
    "hypervolume_ratio": "hypervolume",
    "igd_plus": "IGD+",
    "num_points": "plans",
    "timing_s": "time [s]",
}


def pareto_report(
    metrics: pd.DataFrame,
    drawn: Sequence[WorldFronts],
    repeat: Repetition,
) -> Report:
    """Return the report; on its first screen the quickest plan of the first world's front."""
    means = metrics.groupby(["table", "method"], sort=False)[list(_COLUMNS)].mean()
    own = means.loc[drawn[0].table]["coverage"].sort_values(ascending=False, kind="stable")
    first = drawn[0]
    quickest = min(first.reference.figures, key=lambda one: one.time_s_per_token)
    views = plan_views(
        first.world.topology,
        lower(first.world.topology, first.world.workload, quickest.plan),
        title=f"Quickest plan of the front of {first.world.name}",
    )
    rows = tuple(
        (f"{table}, {method}", *(f"{row[column]:.3f}" for column in _COLUMNS))
        for (table, method), row in zip(means.index, means.to_dict("records"), strict=True)
    )
    return Report(
        title="Fronts of time, cost of the links and utilisation",
        question=f"Which method finds most of the best known front, over {len(drawn)} worlds?",
        answer=f"{own.index[0]}: {100 * own.iloc[0]:.0f} % of it on the mean"
        + (f"; then {own.index[1]}, {100 * own.iloc[1]:.0f} %." if len(own) > 1 else "."),
        repeat=repeat,
        first=views.first,
        tables=(
            PageTable(title="Means over worlds", head=("method", *_COLUMNS.values()), rows=rows),
        ),
        figures=(fronts_figure(drawn), *views.more),
        caveats=(f"{PERFECT_DEVICES.capitalize()}.",),
    )


MOST_PANELS = 6
"""Worlds that are drawn, the first ones."""

_MOST_COLUMNS = 3


def fronts_figure(comparisons: Sequence[WorldFronts]) -> Figure:
    """Return the reference as steps and each method as marks; the plan shows on hovering.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    drawn = comparisons[:MOST_PANELS]
    if not drawn:
        raise ValueError("pareto figure: comparisons must have at least one, got none")
    columns = min(_MOST_COLUMNS, len(drawn))
    covered = ", ".join(f"{one.method} {one.metrics.coverage:.0%}" for one in drawn[0].methods)
    return Figure(
        name="fronts",
        title="Fronts: cost of the links against time, for 1e9 tokens",
        seen=f"Best known plans of {len(drawn)} worlds as steps, with {len(drawn[0].methods)} "
        f"methods as points; of the first world's steps they find {covered}.",
        panels=tuple(map(_panel, drawn)),
        columns=columns,
        width=max(7.0, 4.2 * columns),
    )


def _panel(comparison: WorldFronts) -> Panel:
    world = comparison.world
    names = tuple(domain.name for domain in world.topology.domains)
    hours, dollars, texts = _figures(comparison.reference, names)
    steps = Line(label="reference", x=hours, y=dollars, colour=INK, is_step=True, width=1.3)
    marks: list[Line | Points] = [steps]
    for place, method in enumerate(comparison.methods):
        hours, dollars, texts = _figures(method.front, names)
        marks.append(
            Points(
                label=method.method,
                x=hours,
                y=dollars,
                colour=colour(place),
                symbol=SYMBOLS[place % len(SYMBOLS)],
                is_open=True,
                hovers=texts,
            )
        )
    return Panel(
        x=Axis(label="hours per 1e9 tokens", low=0.0),
        y=Axis(label="USD for links per 1e9 tokens"),
        marks=tuple(marks),
        title=f"{world.name}: K {world.topology.num_domains}, {world.workload.name}",
        height=3.2,
        grid="both",
    )


def _figures(
    front: Front, names: tuple[str, ...]
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[str, ...]]:
    """Hours, dollars and plans of a front, the quickest first."""
    ordered = sorted(front.figures, key=lambda one: (one.time_s_per_token, one.cost_per_token))
    return (
        tuple(one.time_s_per_token * 1e9 / 3600.0 for one in ordered),
        tuple(one.cost_per_token * 1e9 for one in ordered),
        tuple(
            f"{pipelines_text(one.plan, names)}\n{one.plan.schedule}\n"
            f"{one.time_s_per_token * 1e9 / 3600.0:.4g} h, {one.cost_per_token * 1e9:.4g} USD"
            for one in ordered
        ),
    )
