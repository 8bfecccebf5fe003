"""A trained policy in the place of a planner, and the placements that it has been choosing."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from agents.decision.problem import PlanningProblem
from agents.flat.task import PlacementTask
from agents.ppo.checkpoint import load_checkpoint
from agents.ppo.trained_policy import TrainedPolicy
from des import Placement, Plan


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


def placements_of(
    task: PlacementTask, actions: npt.NDArray[np.int64]
) -> tuple[tuple[Placement, int], ...]:
    """Placements that actions (M, A) stand for with their counts, most frequent first.

    Of placements that are equally frequent, that with the lower domain in the first layer in which
    they differ comes first. Actions that mean the same placement count as one.

    Raises
    ------
    ValueError
        If the actions are not of the task.

    Examples
    --------
    >>> from agents.flat.env import make_task
    >>> task = make_task(num_layers=2, actions="order_split")
    >>> actions = np.array([[0, 0, 2, 2], [0, 0, 1, 2], [0, 1, 2, 2]])
    >>> [(one.domain_of_layer, count) for one, count in placements_of(task, actions)]
    [((0, 0), 2), ((0, 1), 1)]
    """
    sizes = task.codec.sizes
    if actions.ndim != 2 or actions.shape[1] != len(sizes) or actions.dtype.kind not in "iu":
        raise ValueError(
            f"policy plans: actions must be whole numbers shaped (M, {len(sizes)}), got "
            f"{actions.dtype} shaped {actions.shape}"
        )
    outside = np.argwhere((actions < 0) | (actions >= np.array(sizes)))
    if len(outside):
        row, component = outside[0].tolist()
        raise ValueError(
            f"policy plans: actions[{row}, {component}] must be within [0, {sizes[component]}), "
            f"got {actions[row, component]}"
        )
    distinct, frequencies = np.unique(actions, axis=0, return_counts=True)
    counts: dict[Placement, int] = {}
    for action, frequency in zip(distinct.tolist(), frequencies.tolist(), strict=True):
        placement = task.codec.decode(action)
        counts[placement] = counts.get(placement, 0) + frequency
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0].domain_of_layer)))
