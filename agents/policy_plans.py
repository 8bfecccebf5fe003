"""Which placements a policy has been choosing, from the actions of its rollouts."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.task import PlacementTask
from des import Placement

_GOLDEN = 2_654_435_769
"""The golden ratio's fraction times 2**32: its multiples fill the unit interval evenly."""


def evenly_spread(num_items: int, most: int) -> npt.NDArray[np.int64]:
    """Positions of up to ``most`` of ``num_items`` items in a row, ascending, each once.

    The row is cut into as many equal runs, and one of each is taken: in each at another place, as
    equal steps could fall in with a period of the items and miss most of what there is.

    Examples
    --------
    >>> evenly_spread(10, 4).tolist()
    [0, 3, 5, 9]
    >>> evenly_spread(3, 4).tolist()
    [0, 1, 2]
    """
    num_runs = min(num_items, most)
    numbers = np.arange(num_runs)
    bounds = np.arange(num_runs + 1) * num_items // max(num_runs, 1)
    places = numbers * _GOLDEN % 2**32
    return bounds[:-1] + (np.diff(bounds) * places >> 32)


def some_actions(parts: Sequence[Tensor], most: int) -> npt.NDArray[np.int64]:
    """Copies of up to ``most`` actions (M, A), spread evenly over rollouts joined in order.

    Parameters
    ----------
    parts
        Actions (T, N, A) of each rollout, T steps of N environments, which may differ in both. They
        are not copied as a whole.
    most
        If there are no more decisions, all of them are returned.
    """
    rows = [part.flatten(0, 1) for part in parts]
    ends = np.cumsum([len(part) for part in rows])
    chosen = evenly_spread(int(ends[-1]), most)
    shares = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    taken = [
        part[torch.from_numpy(share - (end - len(part))).to(part.device)].cpu()
        for part, share, end in zip(rows, shares, ends, strict=True)
    ]
    actions: npt.NDArray[np.int64] = torch.cat(taken).numpy()
    return actions


def placements_of(
    task: PlacementTask, actions: npt.NDArray[np.int64]
) -> tuple[tuple[Placement, int], ...]:
    """What actions (M, A) mean and how often each placement was chosen, most frequent first.

    Of placements that are equally frequent, that with the lower domain in the first layer in which
    they differ comes first. Actions that mean the same placement count as one.

    Raises
    ------
    ValueError
        If the actions are not of the task.

    Examples
    --------
    >>> from agents.env import make_task
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
