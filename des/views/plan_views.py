"""Figures of one plan in one world: map, Gantt chart, links and memory."""

from dataclasses import dataclass

from des.base.lazy import lazy_imports
from des.engine.result import IterationResult
from des.figures.figure import Figure
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.program.program import Program
from des.views.gantt import gantt_figure
from des.views.link_cells import link_cells
from des.views.map_texts import Places
from des.views.memory_figure import memory_figure
from des.views.memory_timeline import memory_timeline
from des.views.site_map import site_map
from des.world.topology import Topology
from des.worlds.presets import AWS_REGIONS, EAST_WEST_CLUSTERS

with lazy_imports(__name__):
    from des.compiled import simulate as compiled_simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanViews:
    """Figures of a plan: ``first`` are the map and the Gantt chart, ``more`` links and memory."""

    result: IterationResult | None = None
    first: tuple[Figure, ...]
    more: tuple[Figure, ...]


def plan_views(
    topology: Topology,
    program: Program,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    title: str = "The chosen plan",
) -> PlanViews:
    """Run the program of an iteration and return its figures."""
    result = compiled_simulate.simulate_program(topology, program, corrections)
    return views_of_result(topology, program, result, title=title)


def views_of_result(
    topology: Topology, program: Program, result: IterationResult, *, title: str
) -> PlanViews:
    """Return the figures of an iteration whose program has been run."""
    timeline = memory_timeline(program, result)
    return PlanViews(
        result=result,
        first=(
            site_map(topology, result, places=known_places(topology)),
            gantt_figure(result, title=title),
        ),
        more=(
            link_cells(topology, result),
            memory_figure(timeline, makespan_s=result.makespan_s),
        ),
    )


def known_places(topology: Topology) -> Places | None:
    """Return longitudes and latitudes where all domains are sites of one preset, else None."""
    names = [domain.name for domain in topology.domains]
    for known in (EAST_WEST_CLUSTERS, {name: at for name, (at, _) in AWS_REGIONS.items()}):
        if all(name in known for name in names):
            return {name: (known[name].longitude_deg, known[name].latitude_deg) for name in names}
    return None
