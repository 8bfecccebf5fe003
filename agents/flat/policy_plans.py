"""Placements that a policy has been choosing, from the actions of its rollouts."""

import numpy as np
import numpy.typing as npt

from agents.flat.task import PlacementTask
from des import Placement


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
