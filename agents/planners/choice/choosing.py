"""The better of several plans, and how layers are shared out: what several planners do alike."""

from collections.abc import Iterable, Sequence
from functools import partial

from agents.decision.problem import PlanningProblem
from agents.decision.simulator import Simulator
from des import Plan, UnreachableError, simulate
from des.compiled.simulate import simulate_compiled

_UNRECORDED = partial(simulate_compiled, is_recorded=False)


def quick_simulator(problem: PlanningProblem) -> Simulator:
    """Return the simulator of a problem; ours as its compiled twin, without spans and transfers."""
    is_ours = problem.simulator in (simulate, simulate_compiled)
    return _UNRECORDED if is_ours else problem.simulator


def best_of(problem: PlanningProblem, plans: Iterable[Plan]) -> Plan:
    """Return the fastest of the plans that fit into memory; of equal ones the first.

    Where none fits, the one that lacks least is judged as if it did; `IterationResult.fits_memory`
    of the outcome tells.

    Raises
    ------
    ValueError
        If there are no plans.
    UnreachableError
        If all of them send between domains that no path joins.
    """
    best: Plan | None = None
    best_key = (float("inf"), float("inf"))
    cut_off: UnreachableError | None = None
    judge = quick_simulator(problem)
    for plan in dict.fromkeys(plans):
        try:
            result = judge(problem.topology, problem.workload, plan, problem.corrections)
        except UnreachableError as error:
            cut_off = error
            continue
        key = (max(memory.overflow_fraction for memory in result.memory), result.makespan_s)
        if best is None or key < best_key:
            best, best_key = plan, key
    if best is None:
        raise cut_off or ValueError("best of plans: there must be at least one plan, got none")
    return best


def share_out(num_layers: int, weights: Sequence[float]) -> list[int]:
    """Share layers out in proportion to weights, rounded by largest remainders.

    The earlier one wins a tie.

    Examples
    --------
    >>> share_out(8, [3.0, 2.0, 1.0])  # 4, 2.67, 1.33
    [4, 3, 1]
    """
    total = sum(weights)
    ideal = [num_layers * weight / total for weight in weights]
    counts = [int(share) for share in ideal]
    by_remainder = sorted(range(len(ideal)), key=lambda index: counts[index] - ideal[index])
    for index in by_remainder[: num_layers - sum(counts)]:
        counts[index] += 1
    return counts
