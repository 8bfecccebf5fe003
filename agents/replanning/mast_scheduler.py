"""MAST over epochs: a slow path that balances load over domains, a fast path that places the job.

References
----------
.. [1] A. Choudhury et al., "MAST: Global scheduling of ML training across geo-distributed
   datacenters at hyperscale", OSDI'24.
"""

import math
from collections.abc import Callable, Sequence

from agents.decision.levels import level_of
from agents.decision.problem import PlanningProblem
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Decision, Situation
from agents.planners.rules.mast import placed
from des import InfeasiblePlacementError, Plan, check_memory
from des.base.checks import require_count
from des.compiled.simulate import simulate_compiled

OVERLOAD_WEIGHT, IDLE_WEIGHT = 10.0, 1.0
"""Weights of the squared excess demand on a domain, and of its squared idle capacity.

How much worse overload is than idleness is a choice of ours: [1]_ says that it is.
"""


class MastScheduler:
    """Scheduler that places one job as MAST would, next to the jobs that its domains report.

    The *slow path*, every ``slow_every`` epochs, says which domains are home to the job: from those
    that hold it now it climbs to the set of as many that spreads the expected demand best over the
    supply (`rebalanced`). In between the *fast path* places the job on them (`mast.placed`), but
    only if it has to: at the start, where the last plan is not at home any more, and where it does
    not fit next to other jobs. MAST does not look at the network once a job runs, so neither does
    this. Before the first balance all domains are home.

    What the domains are busy with is what they report (`DomainLoad`), else the share by which they
    are slower than at base figures. Expected demand is the mean since the last slow path, and one
    domain's worth for the job on each domain that it holds. What a move costs does not count.

    Parameters
    ----------
    slow_every
        Epochs from one slow path to the next.
    schedules
        Schedules to choose from; none given means 1F1B.
    """

    def __init__(
        self,
        *,
        slow_every: int = 8,
        schedules: tuple[str, ...] = (),
    ) -> None:
        require_count("MAST", "slow_every", slow_every)
        self._slow_every, self._schedules = slow_every, schedules
        self.begin()

    def begin(self) -> None:
        """Forget what was seen."""
        self._seen: list[tuple[float, ...]] = []
        self._home: frozenset[int] | None = None

    def decide(self, situation: Situation) -> Decision:
        """Return the last plan where it may stay, else the winner among those that fit.

        Raises
        ------
        InfeasiblePlacementError
            If no domains hold the job and there is no last plan to stay with.
        """
        busy = busy_fractions(situation)
        last, problem = situation.last_plan, self._problem(situation)
        if last is not None and len(self._seen) == self._slow_every:
            self._home = self._balance(problem, last)
            self._seen = []
        self._seen.append(busy)
        is_home = last is not None and (self._home is None or domains_of(last) <= self._home)
        if last is not None and is_home and _fits(problem, last):
            return Decision(plan=last, level="nothing")
        home = sorted(self._home or range(len(busy)))
        plan = placed(problem, home, busy)
        if plan is None:
            if last is None:
                raise InfeasiblePlacementError("MAST: no domains hold the job beside other jobs")
            return Decision(plan=last, level="nothing", is_fallback=True)
        return Decision(plan=plan, level=level_of(last, plan))

    def _problem(self, situation: Situation) -> PlanningProblem:
        """Return the decision to be made, with the memory that other jobs leave."""
        return PlanningProblem(
            topology=leave_reserved_memory(situation),
            workload=situation.workload,
            schedules=self._schedules,
            simulator=simulate_compiled,
            corrections=situation.corrections,
            last_plan=situation.last_plan,
        )

    def _balance(self, problem: PlanningProblem, last: Plan) -> frozenset[int]:
        expected = [math.fsum(each) / len(each) for each in zip(*self._seen, strict=True)]

        def holds(members: frozenset[int]) -> bool:
            return placed(problem, sorted(members), expected) is not None

        return rebalanced(expected, domains_of(last), holds)


def busy_fractions(situation: Situation) -> tuple[float, ...]:
    """Share of every domain that other jobs take: as reported, else what it is slower by.

    A domain that is faster than at base figures counts as idle.
    """
    if situation.loads:
        return tuple(load.utilisation for load in situation.loads)
    return tuple(
        max(0.0, 1.0 - now.attainable_flops_per_s / base.attainable_flops_per_s)
        for now, base in zip(situation.topology.domains, situation.base.domains, strict=True)
    )


def imbalance(busy: Sequence[float], members: frozenset[int]) -> float:
    """Penalty of a job on some domains: overload weighs more than idleness, both squared.

    Supply is 1 a domain, demand what others take and 1 for the job where it runs.

    Examples
    --------
    >>> imbalance([0.5, 0.0], frozenset({0}))  # 10 x 0.5^2 and 1 x 1^2
    3.5
    """
    penalty = 0.0
    for domain, others in enumerate(busy):
        excess = others + (domain in members) - 1.0
        penalty += (OVERLOAD_WEIGHT if excess > 0.0 else IDLE_WEIGHT) * excess**2
    return penalty


def rebalanced(
    busy: Sequence[float],
    members: frozenset[int],
    holds: Callable[[frozenset[int]], bool],
) -> frozenset[int]:
    """Climb from a set of domains to the best one in reach: swap one for another while that helps.

    Each step takes the swap of least `imbalance` after which the set still holds the job; of equal
    ones that of the earlier domains.
    """
    while True:
        swaps = sorted(
            (imbalance(busy, members - {out} | {into}), out, into)
            for out in members
            for into in range(len(busy))
            if into not in members
        )
        better = (
            members - {out} | {into}
            for penalty, out, into in swaps
            if penalty < imbalance(busy, members)
        )
        found = next((each for each in better if holds(each)), None)
        if found is None:
            return members
        members = found


def domains_of(plan: Plan) -> frozenset[int]:
    """Domains that a plan uses."""
    return frozenset(
        domain for placement in plan.placements for domain in placement.domain_of_layer
    )


def _fits(problem: PlanningProblem, plan: Plan) -> bool:
    try:
        check_memory(problem.topology, problem.workload, plan)
    except InfeasiblePlacementError:
        return False
    return True
