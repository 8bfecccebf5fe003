"""Fronts as a figure: communication cost against time, one panel per world."""

from collections.abc import Sequence

from agents.planners.pareto.fronts import Front
from des.figures.figure import Figure
from des.figures.marks import SYMBOLS, Line, Points
from des.figures.palette import INK, colour
from des.figures.panels import Axis, Panel
from des.plan.plan_texts import pipelines_text
from scenarios.study.pareto.study import WorldFronts

MOST_PANELS = 6
"""Worlds that are drawn, the first ones."""

_COLUMNS = 3


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
    columns = min(_COLUMNS, len(drawn))
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
