"""Schedulers that search for plans: in every epoch, or when an observed change asks for it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.levels import level_of
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.reserved_memory import leave_reserved_memory
from agents.decision.situation import Decision, Situation
from agents.judge.steady_judge import SteadyJudge
from agents.planners.search.search import search
from agents.replanning.payoff import undone
from agents.replanning.plan_costs import Changes, PlanTimes
from agents.replanning.rules import best_plans
from des import InfeasiblePlacementError, Plan, Topology, Workload, migration_s
from des.compiled.simulate import simulate_compiled


@dataclass(kw_only=True)
class SearchScheduler:
    """Chooses among the plan in force, it under other schedules, and what a planner proposes.

    It takes that under which most iterations are done within ``horizon_epochs`` on the links as
    they are, its change first, see `agents.replanning.rules.best_plans`. Before the first
    decision the plan in force is what the planner proposes at base figures; the first plan is then
    chosen as if a change from there had its price, which it has not.

    Parameters
    ----------
    planner
        Called with the links as they are and all ``schedules`` to choose from.
    horizon_epochs
        Number of epochs for which the world is expected to stay as it is; 0 keeps the plan as long
        as it works, ``inf`` is greedy.
    seed
        For planners that draw at random; each draw of the world starts from it.
    name
        Name in errors and tables.
    """

    planner: Planner
    horizon_epochs: float
    schedules: tuple[str, ...] = DEPTHS
    seed: int = 0
    name: str = "replanning"
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.horizon_epochs >= 0:  # NaN fails too
            raise ValueError(
                f"{self.name}: horizon_epochs must be at least 0, got {self.horizon_epochs!r}"
            )
        self.begin()

    def begin(self) -> None:
        """Forget what was drawn."""
        self._rng = np.random.default_rng(self.seed)

    def decide(self, situation: Situation) -> Decision:
        """Return the plan for the epoch.

        ``is_fallback`` says that the planner found none that fits.

        Raises
        ------
        InfeasiblePlacementError
            If the planner finds no plan that fits, and none is in force.
        """
        began_s = time.perf_counter()
        last = situation.last_plan
        here = last or self._propose(situation, situation.base)
        try:
            proposals = [self._propose(situation, situation.topology)]
        except InfeasiblePlacementError:
            proposals = []
        depths = [replace(here, schedule=name) for name in self.schedules]
        plan = self._best(situation, list(dict.fromkeys([here, *depths, *proposals])))
        return Decision(
            plan=plan,
            level=level_of(last, plan),
            is_fallback=not proposals,
            response_s={"inter_domain": time.perf_counter() - began_s},
        )

    def _propose(self, situation: Situation, topology: Topology) -> Plan:
        problem = PlanningProblem(
            topology=topology,
            workload=situation.workload,
            schedule=self.schedules[0],
            schedules=self.schedules,
            simulator=simulate_compiled,
            corrections=situation.corrections,
            last_plan=situation.last_plan,
        )
        return self.planner(problem, self._rng)

    def _best(self, situation: Situation, plans: Sequence[Plan]) -> Plan:
        """Best of plans of which the first is in force."""
        topology, workload = situation.topology, situation.workload
        corrections = situation.corrections
        changes = Changes(
            workload, plans, topology.num_domains, situation.replacement, sources=plans[:1]
        )
        judge = SteadyJudge(workload, topology.num_domains, corrections=corrections)
        times_s = PlanTimes(judge, plans).on(topology)
        chosen = best_plans(
            changes.times_s(topology, corrections),
            times_s,
            np.array([0]),
            np.array([self.horizon_epochs * situation.epoch_s]),
        )
        return plans[int(chosen[0])]


def replan(planner: Planner, *, horizon_epochs: float, name: str = "replanning") -> SearchScheduler:
    """Make a scheduler of a planner, see `SearchScheduler`."""
    return SearchScheduler(planner=planner, horizon_epochs=horizon_epochs, name=name)


def search_anew(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Plan by `agents.planners.search.search.search`."""
    return search(
        problem.topology,
        problem.workload,
        problem.corrections,
        schedules=problem.choices,
        simulator=problem.simulator,
        seed=int(rng.integers(2**32)),
    ).plan


FindPlan = Callable[[Topology, Workload], Plan]
"""Looks for the quickest plan on links that stand still."""


def search_plan(topology: Topology, workload: Workload) -> Plan:
    """The plan of the strongest static planner, see `agents.planners.search.search`."""
    return search(topology, workload, schedules=DEPTHS).plan


class HoldPlan:
    """Plans once, on the links at base figures, and holds that."""

    def __init__(self, find_plan: FindPlan = search_plan) -> None:
        self._find_plan = find_plan
        self._plan: Plan | None = None

    def begin(self) -> None:
        """Forget the plan of the last draw."""
        self._plan = None

    def decide(self, situation: Situation) -> Decision:
        """Return the plan that was made at first."""
        if self._plan is None:
            self._plan = self._find_plan(situation.base, situation.workload)
        level = level_of(situation.last_plan, self._plan)
        return Decision(plan=self._plan, level=level)


class PlanEveryEpoch:
    """Search in every epoch; take the plan that does most within the horizon, its move first.

    The choice is among all plans found so far in this draw, the one for base figures first.
    An infinite horizon takes the quickest plan whatever the move costs.
    """

    def __init__(self, horizon_epochs: float, find_plan: FindPlan = search_plan) -> None:
        if not horizon_epochs > 0:
            raise ValueError(
                f"plan every epoch: horizon_epochs must be positive, got {horizon_epochs!r}"
            )
        self._horizon, self._find_plan = horizon_epochs, find_plan
        self._known: dict[Plan, None] = {}

    def begin(self) -> None:
        """Forget the plans of the last draw."""
        self._known = {}

    def decide(self, situation: Situation) -> Decision:
        """Return the plan for the epoch."""
        if not self._known:
            self._known[self._find_plan(situation.base, situation.workload)] = None
        self._known[self._find_plan(leave_reserved_memory(situation), situation.workload)] = None
        plan = min(self._known, key=lambda each: self._score(situation, each))
        return Decision(plan=plan, level=level_of(situation.last_plan, plan))

    def _score(self, situation: Situation, plan: Plan) -> float:
        result = simulate_compiled(
            situation.topology, situation.workload, plan, situation.corrections, is_recorded=False
        )
        if situation.last_plan is None or self._horizon == float("inf"):
            return result.makespan_s
        change_s = migration_s(
            situation.topology,
            situation.workload,
            situation.last_plan,
            plan,
            restart_s=situation.replacement.restart_s,
            pays_bytes=situation.replacement.pays_bytes,
            corrections=situation.corrections,
        )
        return float(undone(change_s, result.makespan_s, self._horizon * situation.epoch_s))
