"""Gap of single decisions to the best plan."""

import math
from collections.abc import Sequence

import numpy as np

from agents.decision.held import held_topology
from agents.planners.search.search import search
from des import NO_CORRECTIONS, Topology, Workload
from des.compiled.simulate import simulate_compiled
from scenarios.measure.targets.measurement_size import (
    LARGE,
    SMALL,
    SchedulerColumn,
    by_draw,
    independent,
)
from scenarios.measure.targets.target import Goal, Target, measured
from scenarios.suites import SuiteWorld


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the gaps to the proven optimum, and on 10 domains to the best order search."""
    scope = column.scope
    small = scope.worlds("eval_static", scope.sizes.num_static, SMALL)
    by_world = by_draw(scope, small, lambda world, draw: _proven_gap(column, world, draw))
    gaps = [gap for found in by_world for gap in found]
    large = scope.worlds("eval_static", max(1, scope.sizes.num_static // 6), (LARGE,))
    searched = by_draw(scope, large, lambda world, draw: _searched_gap(column, world, draw))
    counted = (
        f"{len(gaps)} of {len(small) * scope.sizes.num_draws} draws; the others have no proof in "
        "budget"
        if small
        else f"no world of at most {max(SMALL)} domains"
    )
    proven, best_known = independent(by_world), independent(searched)
    mean, interval = measured(proven)
    large_mean, large_interval = measured(best_known)
    return [
        Target(
            name="gap to exact, mean",
            definition="iteration time of the first plan over the proven optimum, less 1; nothing "
            "moves",
            reference="branch and bound over orders, splits and depths; unseen worlds, K <= 6",
            goal=Goal(sense="at most", target=0.02, stretch=0.005),
            value=mean,
            interval=interval,
            values=tuple(proven),
            notes=(counted,),
        ),
        Target(
            name="gap to exact, p95",
            definition="95th percentile of the same",
            reference="the same",
            goal=Goal(sense="at most", target=0.06, stretch=0.02),
            value=float(np.quantile(gaps, 0.95)) if gaps else math.nan,
            interval=interval,
            notes=(counted,),
        ),
        Target(
            name="gap at 10 domains",
            definition="iteration time of the first plan over that of the best search, less 1; "
            "nothing moves",
            reference=f"best order search of {scope.sizes.num_searches}, each from its own starts",
            goal=Goal(sense="at most", target=0.02, stretch=0.003),
            value=large_mean,
            interval=large_interval,
            values=tuple(best_known),
            notes=(
                f"{len(searched)} worlds"
                if large
                else f"no world of more than {max(SMALL)} domains",
            ),
        ),
    ]


def _proven_gap(column: SchedulerColumn, world: SuiteWorld, draw: int) -> float | None:
    scope = column.scope

    def find_s() -> float | None:
        topology = held_topology(world, draw, 0)
        return proven_s(topology, world.workload, scope.sizes.most_judged)

    best_s = scope.once(("proven", world.name, draw), find_s)
    return None if best_s is None else gap_of(column, world, draw, best_s)


def _searched_gap(column: SchedulerColumn, world: SuiteWorld, draw: int) -> float:
    scope = column.scope

    def find_s() -> float:
        topology = held_topology(world, draw, 0)
        return searched_s(topology, world.workload, range(scope.sizes.num_searches))

    best_s = scope.once(("searched", world.name, draw), find_s)
    return gap_of(column, world, draw, best_s)


def gap_of(column: SchedulerColumn, world: SuiteWorld, draw: int, best_s: float) -> float:
    """Iteration time of the scheduler's first plan of a draw over a best one, less 1.

    Infinite where that plan does not fit into memory.
    """
    topology = held_topology(world, draw, 0)
    plan = column.still_plan(world, draw)
    result = simulate_compiled(topology, world.workload, plan, NO_CORRECTIONS)
    return result.makespan_s / best_s - 1.0 if result.fits_memory else math.inf


def proven_s(topology: Topology, workload: Workload, max_judged: int) -> float | None:
    """Time of the proven best plan; None where the budget does not last. [s]"""
    found = search(topology, workload, is_exact=True, max_judged=max_judged)
    return found.makespan_s if found.is_proven else None


def searched_s(topology: Topology, workload: Workload, seeds: Sequence[int]) -> float:
    """Time of the best plan of several searches. [s]"""
    return min(search(topology, workload, seed=seed).makespan_s for seed in seeds)
