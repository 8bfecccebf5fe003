"""Whether a change of plan pays: the work that it costs against what it wins over a horizon."""

import numpy as np

from agents.decision.problem import PlanningProblem
from des import Plan, UnreachableError
from des.compiled.many.layout import Real


def undone(change_s: float | Real, iteration_s: float | Real, horizon_s: float | Real) -> Real:
    """Minus the iterations until a horizon ends under a plan: the change first, then work.

    Parameters
    ----------
    change_s
        To change to the plan; 0 for the plan in force. [s]
    iteration_s
        Of the plan on the network as it is. [s]
    horizon_s
        Time for which the network is thought to stay as it is. An endless one lets no change cost
        count: the result is then minus the iterations of a second. [s]

    Notes
    -----
    ``(change_s - horizon_s) / iteration_s``; arguments are scalars, or arrays that broadcast. A
    change that takes longer than the horizon leaves work owed, at the pace of the new plan.

    Examples
    --------
    >>> float(undone(30.0, 10.0, 430.0))
    -40.0
    >>> float(undone(30.0, 10.0, float("inf")))
    -0.1
    """
    is_endless = np.isinf(horizon_s)
    time_s = np.where(is_endless, 1.0, horizon_s) - np.where(is_endless, 0.0, change_s)
    done: Real = time_s / iteration_s
    return -done


def pays(change_s: float, iteration_s: float, present_s: float, horizon_s: float) -> bool:
    """Whether more iterations are done within a horizon with a change of plan than without.

    Parameters
    ----------
    change_s
        Time of the change; ``inf`` where it is impossible. [s]
    iteration_s, present_s
        Time of an iteration under the new plan and under the one in force; ``inf`` where the plan
        does not work. [s]
    horizon_s
        As for `undone`; 0 holds on to the plan in force. [s]

    Notes
    -----
    ``(horizon_s - change_s) / iteration_s > horizon_s / present_s``: of equals the plan in force
    stays. A plan in force that does not work is left wherever another can be reached.

    Examples
    --------
    A plan that is a tenth quicker pays a change of 30 s within 400 s, not within 300 s:

    >>> pays(30.0, 9.0, 10.0, 400.0), pays(30.0, 9.0, 10.0, 300.0)
    (True, False)
    """
    if not (np.isfinite(change_s) and np.isfinite(iteration_s)):
        return False
    if not np.isfinite(present_s):
        return True
    changed = undone(change_s, iteration_s, horizon_s)
    return bool(changed < undone(0.0, present_s, horizon_s))


def undone_by_move(move_s: Real, iteration_s: Real) -> Real:
    """Iterations of the new plan that changes take the time of: (N, C, C) of (N, C) plans."""
    pace = 1.0 / iteration_s[:, np.newaxis, :]
    can_be = np.isfinite(move_s) & (pace > 0.0)
    return np.where(can_be, np.where(can_be, move_s, 0.0) * pace, np.inf)


def reachable_iteration_s(problem: PlanningProblem, plan: Plan) -> float:
    """Iteration time of a plan; endless where no path joins its domains. [s]"""
    try:
        return problem.makespan_s(plan)
    except UnreachableError:
        return np.inf
