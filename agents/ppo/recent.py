"""Samples of the actions of recent rollouts."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

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
