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
    known, to_come_s = np.empty(0, dtype=np.int64), np.empty((0, 0))
    for epoch in range(tables.num_epochs):
        left = tables.num_epochs - 1 - epoch
        if tables.is_known[epoch].sum() > len(known):
            known = np.flatnonzero(tables.is_known[epoch])
            to_come_s = expected_s(law, left + 1, known)
        costs_s = np.full(tables.num_plans, np.inf)
        costs_s[known] = tables.move_s[epoch, current, known] + tables.epoch_s[epoch, known]
        costs_s[known] += to_come_s[left]
        best_s = costs_s.min()
        current = current if costs_s[current] == best_s else int(costs_s.argmin())
        path[epoch] = current
    return path


def expected_s(law: EpisodeTables, num_epochs: int, known: Whole | None = None) -> Real:
    """Least expected cost of 0, 1, ... epochs to come for who has a plan, (num_epochs, C). [s]

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
    epoch_s, move_s = law.epoch_s[:, plans], law.move_s[:, plans[:, np.newaxis], plans]
    to_come_s = np.zeros((num_epochs, len(plans)))
    for left in range(1, num_epochs):
        to_come_s[left] = least_ahead_s(epoch_s, move_s, to_come_s[left - 1]).mean(axis=0)
    return to_come_s


def least_ahead_s(epoch_s: Real, move_s: Real, after_s: Real) -> Real:
    """Least cost from an epoch on, by network and by the plan in force before it, (N, C). [s]

    Parameters
    ----------
    epoch_s, move_s
        Of C plans on each network, (N, C), and of changes, from row to column, (N, C, C). [s]
    after_s
        Cost of what comes after the epoch by the plan in force in it, (C,) or (N, C). [s]

    Examples
    --------
    >>> move_s = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> least_ahead_s(np.array([[2.0, 8.0]]), move_s, np.array([0.0, -4.0])).tolist()
    [[2.0, 3.0]]
    """
    ahead_s = epoch_s + after_s
    least_s: Real = (move_s + ahead_s[:, np.newaxis, :]).min(axis=2)
    return least_s
