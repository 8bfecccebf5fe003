"""Re-planning: a planner's proposal in every epoch, taken where it pays for itself."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.levels import level_of
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.situation import Decision, Situation
from agents.judge.steady_judge import SteadyJudge
from agents.planners.search.search import search
from agents.replanning.changes import Changes
from agents.replanning.plan_times import PlanTimes
from agents.replanning.rules import best_plans
from des import InfeasiblePlacementError, Plan, Topology
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


def searching(max_judged: int | None = None) -> Planner:
    """Make a planner of `agents.planners.search.search.search`, with a budget for each network."""

    def planner(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        return search(
            problem.topology,
            problem.workload,
            problem.corrections,
            schedules=problem.choices,
            simulator=problem.simulator,
            seed=int(rng.integers(2**32)),
            max_judged=max_judged,
        ).plan

    return planner
