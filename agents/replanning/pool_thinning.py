"""Ranking of an episode's candidate plans by their worth."""

import numpy as np

from des.compiled.many.layout import Real, Whole

_FOR_EVER = 1e6


def choose_plans(undone: Real, reach: Real, most: int) -> Whole:
    """Rank plans by how many windows of epochs they win; returns the first ``most``.

    Windows are of 1, 2, 4, ... or all epochs and begin anywhere; each counts with and without the
    price of reaching the plan at its beginning. Behind the winners come the best plans of the
    single epochs, the second best, the third best, and so on.

    Parameters
    ----------
    undone
        Minus the iterations of each epoch under each plan, (E, N); ``inf`` where it does not work.
    reach
        Iterations for which a change to a plan takes the time, from where one is otherwise, (E, N).
    most
        Most plans to return, (min(most, N),).
    """
    num_epochs, num_plans = undone.shape
    most_done = -undone[np.isfinite(undone)].min()
    finite = np.where(np.isfinite(undone), undone, _FOR_EVER * most_done)
    reach = np.where(np.isfinite(undone), reach, 0.0)
    before = np.concatenate([np.zeros((1, num_plans)), np.cumsum(finite, axis=0)])
    votes = np.zeros(num_plans, dtype=np.int64)
    length = 1
    while True:
        stretch = before[length:] - before[:-length]
        for costs in (stretch, stretch + reach[: len(stretch)]):
            np.add.at(votes, costs.argmin(axis=1), 1)
        if length == num_epochs:
            break
        length = min(2 * length, num_epochs)
    winners = np.argsort(-votes, kind="stable")[: np.count_nonzero(votes)]
    ranked = np.concatenate(
        [
            np.argsort(costs, axis=1, kind="stable")[:, :most].T.ravel()
            for costs in (finite + reach, finite)
        ]
    )
    in_turn = ranked.reshape(2, -1).T.ravel()
    every = np.concatenate([winners, in_turn])
    _, first = np.unique(every, return_index=True)
    chosen: Whole = every[np.sort(first)][:most]
    return chosen
