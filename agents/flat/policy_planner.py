"""A trained policy in the place of a planner."""

from pathlib import Path

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.flat.task import PlacementTask
from agents.ppo.checkpoint import load_checkpoint
from agents.ppo.trained_policy import TrainedPolicy
from des import Plan


class PolicyPlanner:
    """Decides greedily; before the first decision the last placement is even, as in an episode."""

    def __init__(self, policy: TrainedPolicy, task: PlacementTask) -> None:
        self._policy = policy
        self._task = task

    @classmethod
    def from_checkpoint(cls, path: Path, task: PlacementTask) -> "PolicyPlanner":
        """Load the policy that a trainer has saved.

        Raises
        ------
        CheckpointError
            If the file is no checkpoint, or one of a policy for another task.
        """
        policy = TrainedPolicy.from_payload(
            load_checkpoint(path),
            source=path,
            observation_size=task.observation_size,
            action_sizes=task.codec.sizes,
        )
        return cls(policy, task)

    def __call__(self, problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        """Place the layers for the links as they are now."""
        last = problem.last_plan
        placement = self._task.uniform_placement if last is None else last.placement
        observation = self._task.observe(problem.topology, placement)
        return problem.plan(self._task.codec.decode(self._policy.decide(observation).tolist()))
