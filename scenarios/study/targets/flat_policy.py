"""The flat policy of one training, `agents.flat.policy_planner`, in the place of a scheduler."""

import numpy as np

from agents.decision.depths import DEPTHS
from agents.decision.levels import level_of
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.situation import Decision, Situation
from agents.flat.policy_planner import PolicyPlanner
from agents.flat.task import PlacementTask
from agents.planners.choice.depth import with_best_depth

ONLY_ITS_WORLD = (
    "a flat policy knows the domains and layers that it was trained on, and no preferences"
)


class FlatPolicy:
    """Places the layers for the links as they are, under the one schedule of its task.

    It sees what its task shows it: links over all paths and the last placement. Before the first
    decision that is the even split, as in its training. With ``chooses_depth`` it is run under
    all depths each time, and the quickest plan is taken.
    """

    def __init__(
        self, policy: PolicyPlanner, task: PlacementTask, *, chooses_depth: bool = False
    ) -> None:
        self._planner: Planner = with_best_depth(policy) if chooses_depth else policy
        self._schedules = DEPTHS if chooses_depth else ()
        self._task = task
        self._rng = np.random.default_rng(0)  # the policy is greedy and draws nothing

    def begin(self) -> None:
        """Forget nothing, as nothing is remembered."""

    def decide(self, situation: Situation) -> Decision:
        """Return the placement for the epoch.

        Raises
        ------
        ValueError
            If the situation has another number of domains or layers than the task.
        """
        self._check(situation)
        problem = PlanningProblem(
            topology=situation.topology,
            workload=situation.workload,
            schedule=self._task.schedule,
            schedules=self._schedules,
            simulator=self._task.simulator,
            corrections=situation.corrections,
            last_plan=situation.last_plan,
        )
        plan = self._planner(problem, self._rng)
        return Decision(plan=plan, level=level_of(situation.last_plan, plan))

    def _check(self, situation: Situation) -> None:
        own = (self._task.world.num_domains, self._task.workload.num_layers)
        given = (situation.topology.num_domains, situation.workload.num_layers)
        if given != own:
            raise ValueError(
                f"flat policy: the situation must have the {own[0]} domains and {own[1]} layers of "
                f"its training, got {given[0]} and {given[1]}"
            )
