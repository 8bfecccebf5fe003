"""The same search for the depth of the warm-up, and for any schedule, for every planner."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from agents.decision.plan_space import HALVED_SCHEDULES
from agents.decision.problem import Planner, PlanningProblem
from agents.planners.choice.choosing import best_of, quick_simulator
from des import InfeasiblePlacementError, Plan


def with_best_depth(planner: Planner) -> Planner:
    """Return the planner that keeps the best of a planner's plans under all `choices` of a problem.

    The planner is called once for each schedule, as if that was the only one, always with the same
    draws. A plan that comes back under a schedule of the planner's own is judged as it is, and also
    under the one it was called for. The fastest one that fits is kept, see `choosing.best_of`; a
    schedule under which the planner finds nothing that fits is left out.

    Raises
    ------
    InfeasiblePlacementError
        From the planner that is returned, if its planner raises it under all schedules.

    Notes
    -----
    Of all levers on a pipeline over WAN links the depth is the largest, so a comparison of planners
    of which only some may choose it is one of schedules. Draws are those of a generator that is
    seeded by one draw from the given one.
    """

    def deepest(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        seed = int(rng.integers(2**63))
        return best_of(problem, list(_plans(planner, problem, seed)))

    return deepest


def with_best_schedule(planner: Planner, schedules: tuple[str, ...] = HALVED_SCHEDULES) -> Planner:
    """Return the planner that keeps a planner's plan under its own or another schedule.

    The ``schedules`` are judged for the same placement; the quickest that fits into memory is kept.
    One that a device has no memory for is left out.
    """

    def scheduled(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        judge = quick_simulator(problem)
        best = planner(problem, rng)
        own = judge(problem.topology, problem.workload, best, problem.corrections)
        best_key = (not own.fits_memory, own.makespan_s)
        for name in schedules:
            candidate = replace(best, schedule=name)
            try:
                result = judge(problem.topology, problem.workload, candidate, problem.corrections)
            except ValueError:  # no order keeps the halves of one microbatch
                continue
            key = (not result.fits_memory, result.makespan_s)
            if key < best_key:
                best, best_key = candidate, key
        return best

    return scheduled


def _plans(planner: Planner, problem: PlanningProblem, seed: int) -> Iterator[Plan]:
    """Yield the planner's plans under each schedule; raises where there are none at all."""
    misfit: InfeasiblePlacementError | None = None
    has_plans = False
    for schedule in problem.choices:
        alone = replace(problem, schedule=schedule, schedules=())
        try:
            plan = planner(alone, np.random.default_rng(seed))
        except InfeasiblePlacementError as error:
            misfit = error
            continue
        has_plans = True
        yield plan
        yield replace(plan, schedule=schedule)
    if misfit is not None and not has_plans:
        raise misfit
