"""Ranking of an episode's candidate plans by their worth."""

import numpy as np

from des.compiled.many.layout import Real, Whole

_FOR_EVER = 1e6


def chosen_plans(epoch_s: Real, reach_s: Real, most: int) -> Whole:
    """Rank plans by how many windows of epochs they win; returns the first ``most``.

    Windows are of 1, 2, 4, ... or all epochs and begin anywhere; each counts with and without the
    price of reaching the plan at its beginning. Behind the winners come the best plans of the
    single epochs, the second best, the third best, and so on.

    Parameters
    ----------
    epoch_s
        Time of each epoch under each plan, (E, N); ``inf`` where it does not work. [s]
    reach_s
        To change to a plan from where one is otherwise, (E, N). [s]
    most
        Most plans to return, (min(most, N),).
    """
    num_epochs, num_plans = epoch_s.shape
    longest_s = epoch_s[np.isfinite(epoch_s)].max()
    finite_s = np.where(np.isfinite(epoch_s), epoch_s, _FOR_EVER * longest_s)
    before_s = np.concatenate([np.zeros((1, num_plans)), np.cumsum(finite_s, axis=0)])
    votes = np.zeros(num_plans, dtype=np.int64)
    length = 1
    while True:
        stretch_s = before_s[length:] - before_s[:-length]
        for costs_s in (stretch_s, stretch_s + reach_s[: len(stretch_s)]):
            np.add.at(votes, costs_s.argmin(axis=1), 1)
        if length == num_epochs:
            break
        length = min(2 * length, num_epochs)
    winners = np.argsort(-votes, kind="stable")[: np.count_nonzero(votes)]
    ranked = np.concatenate(
        [
            np.argsort(costs_s, axis=1, kind="stable")[:, :most].T.ravel()
            for costs_s in (finite_s + reach_s, finite_s)
        ]
    )
    in_turn = ranked.reshape(2, -1).T.ravel()
    every = np.concatenate([winners, in_turn])
    _, first = np.unique(every, return_index=True)
    chosen: Whole = every[np.sort(first)][:most]
    return chosen
