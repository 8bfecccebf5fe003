"""All methods on some worlds, against the reference: rows of figures, points, and a summary."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from types import MappingProxyType

import pandas as pd

from agents.decision.situation import Preference
from agents.planners.pareto.fronts import Front, front_of_figures
from agents.planners.pareto.indicators import FrontMetrics
from agents.planners.pareto.plan_objectives import (
    OBJECTIVES,
    TIME_COST_USED_UTILISATION,
    TIME_COST_UTILISATION,
    WITH_ACTIVATIONS,
    figures_of_plans,
)
from des.base.checks import require_one_of
from des.compiled.simulate import simulate_compiled
from scenarios.frame.statistics import mean_and_interval
from scenarios.study.pareto.fronts import PricedWorld, Sweep, merged, metrics_of, reference_front

TABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "all_gpus": TIME_COST_UTILISATION,
        "used_gpus": TIME_COST_USED_UTILISATION,
        "activations": WITH_ACTIVATIONS,
    }
)
"""Objectives by the name of the table: utilisation over all GPUs or those of the domains in use;
peak activation memory as a fourth."""

TARGET_COVERAGE = 0.85
REFERENCE = "reference"

_METRICS = ("coverage", "hypervolume_ratio", "igd_plus")


@dataclass(frozen=True, kw_only=True)
class MethodFront:
    """Front of a method on a world, with its figures.

    Attributes
    ----------
    num_proposed, num_misfits
        Plans of the sweep, equal ones once, and those of them that do not fit into memory.
    timing_s
        Wall time of the sweep; it differs from run to run. [s]
    """

    method: str
    front: Front
    metrics: FrontMetrics
    num_proposed: int
    num_misfits: int
    timing_s: float
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WorldFronts:
    """All methods on one world in the objectives of one table."""

    world: PricedWorld
    table: str
    reference: Front
    methods: tuple[MethodFront, ...]


def fronts_of_methods(
    world: PricedWorld,
    table: str,
    methods: Mapping[str, Sweep],
    *,
    preferences: Sequence[Preference],
    num_evaluations: int,
    seed: int,
    made: Front | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> WorldFronts:
    """Sweep all methods, and compare each with what all of them and the reference have found.

    Parameters
    ----------
    made
        `reference_front` of the world where it is at hand.

    Raises
    ------
    ValueError
        If there is no such table.
    InfeasiblePlacementError
        If no plan of the reference fits into memory.
    """
    require_one_of("pareto", "table", table, TABLES)
    objectives = TABLES[table]
    found = []
    for name, sweep in methods.items():
        begin_s = clock()
        proposals = sweep(world, preferences)
        timing_s = clock() - begin_s
        figures = figures_of_plans(
            world.topology,
            world.workload,
            proposals.plans,
            simulator=partial(simulate_compiled, is_recorded=False),
        )
        front = front_of_figures(figures, objectives, num_judged=len(figures))
        num_misfits = sum(not one.fits_memory for one in figures)
        found.append((name, front, num_misfits, timing_s, proposals.notes))
    made = made or reference_front(
        world.topology, world.workload, objectives, num_evaluations=num_evaluations, seed=seed
    )
    reference = merged([made, *(front for _, front, *_ in found)])
    return WorldFronts(
        world=world,
        table=table,
        reference=reference,
        methods=tuple(
            MethodFront(
                method=name,
                front=front,
                metrics=metrics_of(front, reference),
                num_proposed=front.num_judged,
                num_misfits=num_misfits,
                timing_s=timing_s,
                notes=notes,
            )
            for name, front, num_misfits, timing_s, notes in found
        ),
    )


def metrics_frame(comparisons: Sequence[WorldFronts]) -> pd.DataFrame:
    """One row per world, table and method."""
    return pd.DataFrame(
        [
            {
                **_world_columns(comparison),
                "method": method.method,
                **asdict(method.metrics),
                "reference_is_proven": comparison.reference.is_proven,
                "num_proposed": method.num_proposed,
                "num_misfits": method.num_misfits,
                "timing_s": method.timing_s,
            }
            for comparison in comparisons
            for method in comparison.methods
        ]
    )


def points_frame(comparisons: Sequence[WorldFronts]) -> pd.DataFrame:
    """One row per plan of any front, with all `OBJECTIVES`; the reference is a method here."""
    rows = []
    for comparison in comparisons:
        fronts = [(REFERENCE, comparison.reference)]
        fronts += [(one.method, one.front) for one in comparison.methods]
        rows += [
            {
                "world": comparison.world.name,
                "table": comparison.table,
                "method": name,
                "placement": str(figures.plan.placement),
                "schedule": figures.plan.schedule,
                **{objective: getattr(figures, objective) for objective in OBJECTIVES},
            }
            for name, front in fronts
            for figures in front.figures
        ]
    return pd.DataFrame(rows)


def front_summary(metrics: pd.DataFrame, comparisons: Sequence[WorldFronts]) -> dict[str, object]:
    """Means over worlds with 95 % intervals, verdicts, and what methods had to say.

    A mean that is not finite, or an interval of a single world, is None.
    """
    tables: dict[str, dict[str, object]] = {}
    for (table, method), rows in metrics.groupby(["table", "method"], sort=False):
        figures: dict[str, object] = {"num_worlds": len(rows)}
        for name in _METRICS:
            values = rows[name].to_numpy(dtype=float)
            if not all(map(math.isfinite, values.tolist())):
                figures[name] = None
                continue
            interval = mean_and_interval(values)
            half_width = None if math.isnan(interval.half_width) else interval.half_width
            figures[name] = {"mean": interval.mean, "half_width": half_width}
        figures["meets_target"] = bool(rows["coverage"].mean() >= TARGET_COVERAGE)
        tables.setdefault(str(table), {})[str(method)] = figures
    notes = [
        f"{one.world.name}, {one.table}: {note}"
        for one in comparisons
        for method in one.methods
        for note in method.notes
    ]
    return {"target_coverage": TARGET_COVERAGE, "tables": tables, "notes": notes}


def _world_columns(comparison: WorldFronts) -> dict[str, object]:
    world = comparison.world
    return {
        "world": world.name,
        "num_domains": world.topology.num_domains,
        "model": world.workload.name,
        "ratio": world.ratio,
        "table": comparison.table,
    }
