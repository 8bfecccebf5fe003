"""Gap of single decisions to the best plan."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.planners.search.search import search
from des import NO_CORRECTIONS, Topology, Workload
from des.compiled.simulate import simulate_compiled
from scenarios.study.targets.measurement_size import (
    LARGE,
    SMALL,
    SchedulerColumn,
    by_draw,
    independent,
)
from scenarios.study.targets.references import best_known_s
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.suites import SuiteWorld

FindBest = Callable[[Topology, Workload], float | None]
"""Time of the best plan of perfect devices, where it is found. [s]"""


class _Kind(NamedTuple):
    """Best plans that first plans are compared with."""

    name: str
    best: str
    reference: str


_PROVEN = _Kind("exact", "the proven optimum", "branch and bound over orders, splits and depths")
_KNOWN = _Kind(
    "best known",
    "that of the best plan that the trainer is known to run",
    "the search of bound plans, the searched plan of perfect devices as the trainer runs it, and "
    "the first plan itself; nothing is proven",
)


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure the gaps to the proven optimum, and on 10 domains to the best order search.

    Optima are proven for perfect devices; plans of a trainer are compared with `best_known_plan`.
    """
    scope = column.scope
    kind = _PROVEN if scope.trainer.is_ideal else _KNOWN
    small = scope.worlds("eval_static", scope.sizes.num_static, SMALL)
    prove = partial(_proven_s, scope.sizes.most_judged)
    by_world = by_draw(scope, small, lambda world, draw: _gap(column, world, draw, "proven", prove))
    gaps = [gap for found in by_world for gap in found]
    large = scope.worlds("eval_static", max(1, scope.sizes.num_static // 6), (LARGE,))
    find = partial(_searched_s, scope.sizes.num_searches)
    searched = by_draw(
        scope, large, lambda world, draw: _gap(column, world, draw, "searched", find)
    )
    proofs = "; the others have no proof in budget" if scope.trainer.is_ideal else ""
    counted = (
        f"{len(gaps)} of {len(small) * scope.sizes.num_draws} draws{proofs}"
        if small
        else f"no world of at most {max(SMALL)} domains"
    )
    proven = mean_fields(independent(by_world))
    return [
        Target(
            name=f"gap to {kind.name}, mean",
            definition=f"iteration time of the first plan over {kind.best}, less 1; nothing moves",
            reference=f"{kind.reference}; unseen worlds, K <= 6",
            goal=Goal(sense="at most", target=0.02, stretch=0.005),
            **proven,
            notes=(counted,),
        ),
        Target(
            name=f"gap to {kind.name}, p95",
            definition="95th percentile of the same",
            reference="the same",
            goal=Goal(sense="at most", target=0.06, stretch=0.02),
            value=float(np.quantile(gaps, 0.95)) if gaps else math.nan,
            interval=proven["interval"],
            notes=(counted,),
        ),
        Target(
            name="gap at 10 domains",
            definition="iteration time of the first plan over that of the best search, less 1; "
            "nothing moves",
            reference=f"best order search of {scope.sizes.num_searches}, each from its own starts"
            if scope.trainer.is_ideal
            else kind.reference,
            goal=Goal(sense="at most", target=0.02, stretch=0.003),
            **mean_fields(independent(searched)),
            notes=(
                f"{len(searched)} worlds"
                if large
                else f"no world of more than {max(SMALL)} domains",
            ),
        ),
    ]


def _gap(
    column: SchedulerColumn, world: SuiteWorld, draw: int, what: str, find_s: FindBest
) -> float | None:
    """Gap of a first plan to the best one of perfect devices by ``find_s``, or of the trainer."""
    scope = column.scope

    def best_s() -> float | None:
        topology = freeze_topology(world, draw, 0)
        if not scope.trainer.is_ideal:
            return best_known_s(scope, topology, world.workload)
        return find_s(topology, world.workload)

    known_s = scope.once((what, world.name, draw), best_s)
    return None if known_s is None else gap_of(column, world, draw, known_s)


def gap_of(column: SchedulerColumn, world: SuiteWorld, draw: int, best_s: float) -> float:
    """Iteration time of the scheduler's first plan of a draw over a best one, less 1.

    Infinite where that plan does not fit into memory; 0 where it is quicker than the best known
    plan of a trainer, and so the best itself.
    """
    topology = freeze_topology(world, draw, 0)
    plan = column.still_plan(world, draw)
    result = simulate_compiled(topology, world.workload, plan, NO_CORRECTIONS)
    if not result.fits_memory:
        return math.inf
    if not column.scope.trainer.is_ideal:
        best_s = min(best_s, result.makespan_s)
    return result.makespan_s / best_s - 1.0


def _proven_s(max_judged: int, topology: Topology, workload: Workload) -> float | None:
    """Time of the proven best plan; None where the budget does not last. [s]"""
    found = search(topology, workload, is_exact=True, max_judged=max_judged)
    return found.makespan_s if found.is_proven else None


def _searched_s(num_searches: int, topology: Topology, workload: Workload) -> float:
    """Time of the best plan of several searches. [s]"""
    seeds = range(num_searches)
    return min(search(topology, workload, seed=seed).makespan_s for seed in seeds)
