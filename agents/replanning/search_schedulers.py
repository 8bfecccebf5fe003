"""Schedulers made of a search: its plan is held, or it is repeated in every epoch."""

from collections.abc import Callable

from agents.decision.depths import DEPTHS
from agents.decision.levels import level_of
from agents.decision.occupied import occupied
from agents.decision.situation import Decision, Situation
from agents.planners.search.search import search
from agents.replanning.payoff import undone
from des import Plan, Topology, Workload, migration_s
from des.compiled.simulate import simulate_compiled

FindPlan = Callable[[Topology, Workload], Plan]
"""Looks for the quickest plan on links that stand still."""


def searched_plan(topology: Topology, workload: Workload) -> Plan:
    """The plan of the strongest static planner, see `agents.planners.search.search`."""
    return search(topology, workload, schedules=DEPTHS).plan


class HoldPlan:
    """Plans once, on the links at base figures, and holds that."""

    def __init__(self, find_plan: FindPlan = searched_plan) -> None:
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

    def __init__(self, horizon_epochs: float, find_plan: FindPlan = searched_plan) -> None:
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
        self._known[self._find_plan(occupied(situation), situation.workload)] = None
        plan = min(self._known, key=lambda each: self._score(situation, each))
        return Decision(plan=plan, level=level_of(situation.last_plan, plan))

    def _score(self, situation: Situation, plan: Plan) -> float:
        result = simulate_compiled(
            situation.topology, situation.workload, plan, situation.corrections
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
