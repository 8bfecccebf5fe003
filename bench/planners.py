"""Decision times of the planners."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from agents.decision.families import FAMILIES, SYNCHRONOUS
from agents.decision.plan_space import PlanSpace
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds.step_bound import step_lower_bound_s
from agents.planners.table import reference_planners
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, Timing, race
from bench.worlds import DRAWN, MODEL, SEED, SIZES, SMALL, Size, job, mesh


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One planner on one size."""

    planner: str = column("planner")
    size: str = column("domains and microbatches")
    decision_ms: float = column("decision [ms]", ",.3f")
    spread_percent: float = column("± %", ".0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRow:
    """The proven bound of one decision."""

    families: str = column("families")
    num_domains: int = column("domains")
    bound_ms: float = column("time [ms]", ",.1f")
    spread_percent: float = column("± %", ".0f")
    over_work: float = column("bound over the work alone", ".3f")
    binds: str = column("binds")


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
    tables = [
        Table(title="One decision, on links drawn once", rows=rows),
        Table(title="Lower bound of a step, Llama 2 70B, 512 sequences", rows=_bounds(effort)),
    ]
    return Section(name="planners", tables=tables)


def _bounds(effort: Effort) -> list[BoundRow]:
    """Bounds over all families and over those that train the same."""
    found = []
    for size in (3,) if effort.is_quick else (4, 10, 32, 64):
        for name, families in (("all", FAMILIES), ("synchronous", SYNCHRONOUS)):
            problem = WholeProblem(
                topology=mesh(size, DRAWN).epoch_of(SEED),
                job=TrainingJob(model=MODEL, num_sequences=512),
                space=PlanSpace(families=families),
            )
            call = partial(step_lower_bound_s, problem)
            (timing,) = race([Contestant(name=name, call=call)], effort)
            bound = call()
            found.append(
                BoundRow(
                    families=name,
                    num_domains=size,
                    bound_ms=1e3 / timing.items_per_s,
                    spread_percent=1e2 * timing.spread_fraction,
                    over_work=bound.step_s / bound.work_s,
                    binds=bound.binds,
                )
            )
    return found


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
