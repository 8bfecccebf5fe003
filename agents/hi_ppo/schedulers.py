"""Who is measured: schedulers made of planners, and the door to trained policies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from agents.decision.depths import DEPTHS
from agents.decision.situation import Decision, Scheduler, Situation, level_of
from agents.hi_ppo.coordinator import QUICK, Coordinator
from agents.hi_ppo.moves.move_policy import MoveObservation
from agents.hi_ppo.moves.move_rules import RULES, MoveRule, index_of
from agents.hi_ppo.placement.proposals import Proposer
from agents.hi_ppo.policies import Policies
from agents.hi_ppo.proposing import proposing
from agents.planners.pareto.proposals import Propose
from agents.planners.search.search import search
from agents.replanning.payoff import over_horizon_s
from des import Plan, Topology, Workload, migration_s
from des.compiled.simulate import simulate_compiled

FindPlan = Callable[[Topology, Workload], Plan]
"""Looks for the quickest plan on links that stand still."""

MakeScheduler = Callable[[], Scheduler]
"""Makes a scheduler that has seen nothing."""


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
    """Plans anew in every epoch and takes the least of move cost + horizon x epoch time.

    The choice is among all plans that it has found in this draw, the one for base figures first.
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
        self._known[self._find_plan(situation.topology, situation.workload)] = None
        plan = min(self._known, key=lambda each: self._score(situation, each))
        return Decision(plan=plan, level=level_of(situation.last_plan, plan))

    def _score(self, situation: Situation, plan: Plan) -> float:
        result = simulate_compiled(
            situation.topology, situation.workload, plan, situation.corrections
        )
        epoch_s = situation.iterations_per_epoch * result.makespan_s
        if situation.last_plan is None or self._horizon == float("inf"):
            return epoch_s
        change_s = migration_s(
            situation.topology,
            situation.workload,
            situation.last_plan,
            plan,
            restart_s=situation.replacement.restart_s,
            pays_bytes=situation.replacement.pays_bytes,
            corrections=situation.corrections,
        )
        return over_horizon_s(change_s, epoch_s, self._horizon)


METHODS: Mapping[str, MakeScheduler] = MappingProxyType(
    {
        "search_once": HoldPlan,
        "search_h1": lambda: PlanEveryEpoch(1.0),
        "search_h4": lambda: PlanEveryEpoch(4.0),
        "search_h8": lambda: PlanEveryEpoch(8.0),
        "search_greedy": lambda: PlanEveryEpoch(float("inf")),
    }
)
"""Schedulers by the name users write: one strong search, held or re-run at every change."""


MOST_SLOWDOWN = 0.08
"""Bound of policies that are to be stable: so much longer than an iteration of the quickest plan
that they know may one of theirs take. They are judged by 10 % over a search, which may find a
plan a little quicker than any that they know."""


def policy_scheduler(
    checkpoint: Path, most_slowdown: float | None = None
) -> tuple[MakeScheduler, Propose]:
    """Return what makes schedulers of trained policies, and what these propose for preferences.

    All share what they know of a job. ``most_slowdown`` is that of
    `agents.hi_ppo.coordinator.Coordinator`.

    Raises
    ------
    ValueError
        If the file cannot be read or is no checkpoint of such policies.
    """
    policies = Policies.load(checkpoint)
    proposer = Proposer(policies.placement, look_ahead=QUICK)

    def make() -> Scheduler:
        return Coordinator(
            proposer,
            policies.moves,
            trained_range=policies.trained_range,
            most_slowdown=most_slowdown,
        )

    return make, proposing(policies.placement)


FIXED_HORIZONS = (4.0, 8.0, 16.0)
"""Of rules that choose among the proposals of a placement policy. [epochs]"""


@dataclass(frozen=True, slots=True)
class FixedRule:
    """A move policy that names the same rule whatever it sees."""

    rule: MoveRule

    def choose(self, observation: MoveObservation) -> MoveRule:
        """Return the rule."""
        return self.rule


def fixed_rule_schedulers(checkpoint: Path) -> Mapping[str, MakeScheduler]:
    """Return what makes schedulers that propose as trained policies do and move by one rule.

    The rules are those of `agents.replanning.horizon.Horizon` on the plans proposed so far, by the
    names that they have there; errors are those of `policy_scheduler`.
    """
    policies = Policies.load(checkpoint)
    proposer = Proposer(policies.placement, look_ahead=QUICK)

    def make(rule: MoveRule) -> Scheduler:
        return Coordinator(proposer, FixedRule(rule), trained_range=policies.trained_range)

    return {
        f"H{horizon:g}": partial(make, RULES[index_of("order", horizon)])
        for horizon in FIXED_HORIZONS
    }
