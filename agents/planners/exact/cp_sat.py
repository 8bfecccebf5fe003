"""Order and split of any number of domains by constraint programming, with a proven bound."""

from dataclasses import dataclass, replace

import numpy as np
from ortools.sat.python import cp_model

from agents.decision.problem import PlanningProblem
from agents.planners.exact.cp_sat_model import Met, SplitModel
from agents.planners.sailor.sailor import sailor_search
from agents.planners.sailor.sailor_lists import no_plan_fits, quickest_of, standing_still
from des import InfeasiblePlacementError, Plan, check_memory, simulate
from des.base.checks import require_positive, require_seed
from des.compiled.simulate import simulate_compiled

TIME_LIMIT_S = 20.0
"""Default limit of the solver in deterministic time, about a second each. [s]"""

PROVEN_WITHIN = 1e-4
"""Share of the bound by which a plan may be above it and still count as proven."""

_START_LISTS = 500
"""Lists of domains that the search for a plan to start from looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatFound:
    """Result of the solver.

    Attributes
    ----------
    bound_s
        No plan with one stage per domain that fits is quicker under any of the schedules. [s]
    is_proven
        Whether the plan is the best to within `PROVEN_WITHIN`.
    """

    plan: Plan
    makespan_s: float
    bound_s: float
    is_proven: bool


def cp_sat(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Plan by `cp_sat_search`, whose seed the generator draws."""
    return cp_sat_search(problem, seed=int(rng.integers(2**31))).plan


def cp_sat_search(
    problem: PlanningProblem,
    *,
    time_limit_s: float = TIME_LIMIT_S,
    seed: int = 0,
    known: Plan | None = None,
) -> CpSatFound:
    """Minimise a lower bound on the iteration time; judge all plans met on the way.

    Links are taken at the figures of the topology. One worker and the solver's own deterministic
    clock: equal arguments give equal results.

    Parameters
    ----------
    time_limit_s
        Deterministic time of the solver. [s]
    known
        A plan to start from and to be better than; None takes that of `sailor_search` over few
        lists, if one fits.

    Raises
    ------
    ValueError
        If the simulator is not that of `des`, to which the bounds belong.
    InfeasiblePlacementError
        If no plan was found that fits, or the one that is known does not.

    Notes
    -----
    The model chooses domains, their order and the layers of each, and minimises the largest of the
    bounds of `agents.planners.exact.bounds` over the stages: work, window and wire. Every figure is
    rounded down to whole units, so that the solver's bound holds. Schedules are bounded one by one,
    in equal parts of the time; the least bound is that of all.

    A stage that holds at most ``w`` of ``m`` microbatches is bound by more paths than there. A trip
    is that of one microbatch from its forward at the stage to the end of its backward there.

    - from the first: after its trip, ``m - 1`` backwards and the ``m - w`` forwards that wait for
      room, and before it the forwards that the last stage does before its first backward;
    - to the last: ``m - 1`` forwards and the ``m - w`` backwards that made room, then its trip;
    - ``j`` trips one after another, each waiting for the room of the one before, then ``m - 1 -
      j w`` forwards and backwards, and the trip of the last.

    Layers count as the least of all, but for what the last has more; so does memory. The more the
    others differ, the lower is the bound.
    """
    require_positive("cp_sat", "time_limit_s", time_limit_s)
    require_seed("cp_sat", "seed", seed)
    if problem.simulator not in (simulate, simulate_compiled):
        raise ValueError("cp_sat: simulator must be that of des, to which the bounds belong")
    still = standing_still(problem)
    best = _first_plan(still, known)
    bounds_s = []
    for name in problem.choices:
        found, bound_s = _solve(
            replace(still, schedule=name, schedules=()),
            np.inf if best is None else best[1],
            time_limit_s / len(problem.choices),
            seed,
        )
        bounds_s.append(bound_s)
        if found is not None and (best is None or found[1] < best[1]):
            best = found
    if best is None:
        raise no_plan_fits(problem, "cp_sat")
    bound_s = min(best[1], *bounds_s)
    return CpSatFound(
        plan=best[0],
        makespan_s=best[1],
        bound_s=bound_s,
        is_proven=best[1] <= bound_s * (1.0 + PROVEN_WITHIN),
    )


def _solve(
    problem: PlanningProblem, known_s: float, time_limit_s: float, seed: int
) -> tuple[tuple[Plan, float] | None, float]:
    """Best plan met under the schedule of the problem, and the bound on all. [s]

    The bound is ``inf`` if none is quicker than the time that is known.
    """
    model = SplitModel(problem, known_s)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_deterministic_time = time_limit_s
    solver.parameters.linearization_level = 2
    met = Met(model)
    status = solver.solve(model.cp, met)
    found = quickest_of(problem, [problem.plan(placement) for placement in met.placements])
    if status == cp_model.INFEASIBLE:
        return found, np.inf
    return found, max(0.0, solver.best_objective_bound * model.unit_s)


def _first_plan(problem: PlanningProblem, known: Plan | None) -> tuple[Plan, float] | None:
    if known is not None:
        check_memory(problem.topology, problem.workload, known)
        return known, problem.makespan_s(known)
    try:
        plan = sailor_search(problem, is_overlapped=True, max_lists=_START_LISTS, max_judged=1).plan
    except InfeasiblePlacementError:
        return None
    return plan, problem.makespan_s(plan)
