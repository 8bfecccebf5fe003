"""CrossPipe's part of a plan: the schedule, for stages and links that are given."""

from dataclasses import replace

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.problem import Planner, PlanningProblem
from agents.planners.search.search import search
from des import Plan, Workload
from des.schedules import is_static

MOST_EXACT_PASSES = 48
"""Stages times microbatches up to which the schedule is searched exactly, in less than a second
mostly; with many more that takes minutes."""


def crosspipe_on(placed_by: Planner) -> Planner:
    """Return the planner that takes another's plan and makes the schedule [1]_ for it.

    The schedule is ``greedy`` or, for up to 48 stages times microbatches, ``exact`` where the
    judge finds that quicker (see `des.schedules`). Both know the links and the memory, and do the
    backward pass in halves. All but the schedule stays as the other planner has it, whose own
    schedule does not matter. Where links move, orders are made for the figures of the topology.

    The planner raises a ValueError if a device has no memory for one microbatch on each of its
    stages.

    References
    ----------
    .. [1] T. Chen et al., "CrossPipe: Towards Optimal Pipeline Schedules for Cross-Datacenter
       Training", USENIX ATC 2025.
    """

    def planner(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        placed = placed_by(problem, rng)
        greedy = replace(placed, schedule="greedy")
        if num_passes(placed, problem.workload) > MOST_EXACT_PASSES:
            return greedy
        exact = replace(placed, schedule="exact")
        return min(exact, greedy, key=problem.makespan_s)

    return planner


def num_passes(plan: Plan, workload: Workload) -> int:
    """Stages times microbatches, summed over the replicas: the size of the scheduling problem.

    Examples
    --------
    >>> from des import Placement, build_workload
    >>> workload = build_workload("llama2_7b", num_microbatches=16)
    >>> num_passes(Plan(placement=Placement.even(2, 32)), workload)
    32
    """
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    return sum(size * share for size, share in zip(plan.replica_sizes, shares, strict=True))


def _search(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Place layers by `search`, over those of the problem's schedules that it can choose from."""
    static = tuple(name for name in problem.choices if is_static(name))
    found = search(
        problem.topology,
        problem.workload,
        problem.corrections,
        schedules=static or DEPTHS,
        simulator=problem.simulator,
        seed=int(rng.integers(2**63)),
    )
    return found.plan


_ON_SEARCH = crosspipe_on(_search)


def crosspipe(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Place layers as `agents.planners.search.search` does, then make CrossPipe's schedule for
    the stages.

    The search chooses from those of the problem's schedules that are static, from `DEPTHS` where
    none is; see `crosspipe_on` for the schedule.

    Raises
    ------
    InfeasiblePlacementError
        If no plan was found that fits into memory.
    ValueError
        If a stage's domain has no memory for the halves of one microbatch's backward pass.
    """
    return _ON_SEARCH(problem, rng)
