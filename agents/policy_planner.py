"""A trained policy in the place of a planner."""

from pathlib import Path

import numpy as np

from agents.checkpoint import TrainedPolicy, load_checkpoint
from agents.planners import PlanningProblem
from agents.task import PlacementTask
from des import Placement


class PolicyPlanner:
    """Decides greedily; what it sees besides the links is its own last placement.

    Before the first decision that is the uniform one, as at the start of an episode.
    """

    def __init__(self, policy: TrainedPolicy, task: PlacementTask) -> None:
        self._policy = policy
        self._task = task
        self._last_placement = task.uniform_placement

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

    def __call__(self, problem: PlanningProblem, rng: np.random.Generator) -> Placement:
        """Place the layers for the links as they are now."""
        observation = self._task.observe(problem.topology, self._last_placement)
        action = self._policy.decide(observation)
        self._last_placement = self._task.codec.decode(action.tolist())
        return self._last_placement
