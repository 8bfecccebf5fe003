"""Value iteration: moves that are best on average if epochs are drawn independently."""

import numpy as np

from agents.replanning.rules import start
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Real, Whole


def value_iteration(tables: EpisodeTables, samples: EpisodeTables | None = None) -> Whole:
    """Take the plan of least change cost + epoch time + expected cost of all epochs to come.

    The expectation knows which epochs there are, ``samples``, each as likely as any other, and how
    many are to come; it does not know that what is now may last (`expected_s`). It too counts on
    none but the plans that are known by then. Arguments as those of
    `agents.replanning.rules.Rule`.

    Raises
    ------
    ValueError
        If the samples are of other plans.
    """
    law = tables if samples is None else samples
    if law.plans != tables.plans:
        raise ValueError(
            f"value iteration: samples must be of the {tables.num_plans} plans of the episode, "
            f"got {law.num_plans} others"
        )
    path = np.empty(tables.num_epochs, dtype=np.int64)
    (current,) = start(tables, 1).tolist()
    known, to_come = np.empty(0, dtype=np.int64), np.empty((0, 0))
    for epoch in range(tables.num_epochs):
        left = tables.num_epochs - 1 - epoch
        if tables.is_known[epoch].sum() > len(known):
            known = np.flatnonzero(tables.is_known[epoch])
            to_come = expected_undone(law, left + 1, known)
        costs = np.full(tables.num_plans, np.inf)
        costs[known] = tables.undone_by_move[epoch, current, known] + tables.undone[epoch, known]
        costs[known] += to_come[left]
        current = current if costs[current] == costs.min() else int(costs.argmin())
        path[epoch] = current
    return path


def expected_undone(law: EpisodeTables, num_epochs: int, known: Whole | None = None) -> Real:
    """Minus the most expected iterations of 0, 1, ... epochs to come, (num_epochs, C).

    By the plan in force before them.

    Parameters
    ----------
    known
        Plans there are to choose from, by number; the result is of these. None: all.

    Notes
    -----
    Backward induction over a finite horizon, without discount: with ``W_0 = 0`` and epochs drawn
    independently, ``W_h(i) = E[min_j (move(i, j) + epoch(j) + W_h-1(j))]``.
    """
    plans = np.arange(law.num_plans) if known is None else known
    epochs, moves = law.undone[:, plans], law.undone_by_move[:, plans[:, np.newaxis], plans]
    to_come = np.zeros((num_epochs, len(plans)))
    for left in range(1, num_epochs):
        to_come[left] = least_ahead(epochs, moves, to_come[left - 1]).mean(axis=0)
    return to_come


def least_ahead(epochs: Real, moves: Real, after: Real) -> Real:
    """Least cost from an epoch on, by network and by the plan in force before it, (N, C).

    Parameters
    ----------
    epochs, moves
        Of C plans on each network, (N, C), and of changes, from row to column, (N, C, C).
    after
        Cost of what comes after the epoch by the plan in force in it, (C,) or (N, C).

    Examples
    --------
    >>> moves = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> least_ahead(np.array([[2.0, 8.0]]), moves, np.array([0.0, -4.0])).tolist()
    [[2.0, 3.0]]
    """
    ahead = epochs + after
    least: Real = (moves + ahead[:, np.newaxis, :]).min(axis=2)
    return least
