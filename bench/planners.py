"""Decision times of the planners, and how many plans of each family are simulated a second."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agents.decision.problem import Planner, PlanningProblem
from agents.planners.table import reference_planners
from bench import families, step_bounds
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, Timing, race
from bench.worlds import DRAWN, SEED, SIZES, SMALL, Size, job, mesh


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One planner on one size."""

    planner: str = column("planner")
    size: str = column("domains and microbatches")
    decision_ms: float = column("decision [ms]", ",.3f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> Section:
    """Time the decisions on three domains, and on eight those of the planners but `exact`."""
    small, large, _ = SIZES
    groups: list[tuple[Size, Mapping[str, Planner]]] = [(SMALL[0], reference_planners())]
    if not effort.is_quick:
        groups = [(small, reference_planners()), (large, _static())]
    rows = [
        _row(size, timing)
        for size, planners in groups
        for timing in race([_contestant(name, planners[name], size) for name in planners], effort)
    ]
    return Section(
        name="planners",
        tables=[
            Table(title="One decision, on links drawn once", rows=rows, in_page=False),
            Table(
                title="Plans of a family, simulated together",
                rows=families.measure(effort),
                in_page=False,
            ),
            Table(title=step_bounds.TITLE, rows=step_bounds.measure(effort)),
            Table(
                title="Mean steps over a period",
                rows=families.measure_mean_steps(effort),
                in_page=False,
            ),
        ],
    )


def _static() -> dict[str, Planner]:
    """Planners that simulate little or nothing."""
    return {name: planner for name, planner in reference_planners().items() if name != "exact"}


def _contestant(name: str, planner: Planner, size: Size) -> Contestant:
    topology = mesh(size.num_stages, DRAWN).epoch_of(SEED)
    problem = PlanningProblem(topology=topology, workload=job(size.num_microbatches))
    rng = np.random.default_rng(SEED)
    return Contestant(name=name, call=lambda: planner(problem, rng))


def _row(size: Size, timing: Timing) -> DecisionRow:
    return DecisionRow(
        planner=timing.name,
        size=f"K{size.num_stages} M{size.num_microbatches}",
        decision_ms=1e3 / timing.items_per_s,
        spread_percent=1e2 * timing.spread_fraction,
    )
