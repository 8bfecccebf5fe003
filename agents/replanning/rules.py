"""Rules that choose among known plans: by horizon, by the leader, by the future, by chances."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agents.decision.levels import LEVELS, MoveLevel
from agents.replanning.payoff import undone
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Real, Whole


class Rule(Protocol):
    """Walks through an episode: returns one plan per epoch by number, (E,).

    All but those that know the whole episode take plans that are known in the epoch alone,
    `agents.replanning.tables.EpisodeTables.is_known`; the plan in force always is.

    ``samples`` are tables of the same plans in epochs of other draws, for rules that know the law
    by which epochs are drawn; None takes the epochs of the episode itself, in the rule's favour.
    """

    def __call__(self, tables: EpisodeTables, samples: EpisodeTables | None = None) -> Whole:
        """Return the path."""


def next_plans(tables: EpisodeTables, epoch: int, current: Whole, horizons: Real) -> Whole:
    """Take `best_plans` of those known in an epoch, for each of R runs, (R,)."""
    is_known = tables.is_known[epoch]
    moves_s = np.where(is_known, tables.move_s[epoch, current], np.inf)
    iteration_s = np.where(is_known, tables.iteration_s[epoch], np.inf)
    return best_plans(moves_s, iteration_s, current, tables.epoch_s * horizons)


def best_plans(moves_s: Real, iteration_s: Real, current: Whole, horizons_s: Real) -> Whole:
    """Best of C plans by `agents.replanning.payoff.undone`, for each of R runs, (R,).

    Plans that do not work in the epoch are not taken where another works and can be reached. Of
    equals the present plan stays, else that of the cheapest change comes.

    Parameters
    ----------
    moves_s
        To change to each plan from that of each run, (R, C); ``inf`` where that cannot be. [s]
    iteration_s
        As observed, (C,); ``inf`` where a plan does not work. [s]
    current
        Plan of each run, (R,).
    horizons_s
        Times for which the world is expected to stay as it is, (R,); ``inf`` looks at the iteration
        time alone. [s]
    """
    can_be = np.isfinite(iteration_s) & np.isfinite(moves_s)
    scores = undone(np.where(can_be, moves_s, 0.0), iteration_s, horizons_s[:, np.newaxis])
    scores = np.where(can_be, scores, np.inf)
    among_best = np.where(scores == scores.min(axis=1, keepdims=True), moves_s, np.inf)
    among_best[np.arange(len(current)), current] -= 1.0  # of equals, the one that is there
    chosen: Whole = among_best.argmin(axis=1)
    return chosen


def start(tables: EpisodeTables, num_runs: int) -> Whole:
    """Present plan of runs at their start: the static plan, (R,).

    The first epoch is decided like any other, as if a change from there had its price; it has none,
    as the first plan is free.
    """
    return np.full(num_runs, tables.static)


@dataclass(frozen=True, slots=True)
class Horizon:
    """Re-plan for a world that stays as it is for ``num_epochs`` epochs; begins at the static plan.

    Takes the plan under which most iterations are done by then, its change first, see
    `agents.replanning.rules.next_plans`. None holds on, infinitely many are greedy.
    """

    num_epochs: float

    def __post_init__(self) -> None:
        if not self.num_epochs >= 0:  # NaN fails too
            raise ValueError(f"horizon: num_epochs must be at least 0, got {self.num_epochs!r}")

    def __call__(self, tables: EpisodeTables, samples: EpisodeTables | None = None) -> Whole:
        """Return the path."""
        path: Whole = horizon_paths(tables, [self.num_epochs])[0]
        return path


def horizon_paths(tables: EpisodeTables, horizons: Sequence[float]) -> Whole:
    """Paths of several horizons side by side, (H, E)."""
    weights = np.array(horizons, dtype=np.float64)
    paths = np.empty((len(weights), tables.num_epochs), dtype=np.int64)
    current = start(tables, len(weights))
    for epoch in range(tables.num_epochs):
        paths[:, epoch] = current = next_plans(tables, epoch, current, weights)
    return paths


hold = Horizon(0.0)
"""Stay with the static plan; where it does not work, with what is reached soonest."""

greedy = Horizon(math.inf)
"""Take the best plan of each epoch, whatever the change costs."""


HORIZONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Default horizons to choose from. [epochs]"""


@dataclass(frozen=True, slots=True)
class FollowTheLeader:
    """Each epoch take the step of the horizon whose own run has cost least before it.

    Every horizon has its own run and plans, independent of the leader; the step is taken from the
    plan in force. Of equals the first leads, so in the first epoch the first of all.
    """

    horizons: tuple[float, ...] = HORIZONS

    def __post_init__(self) -> None:
        if not self.horizons or not all(horizon >= 0 for horizon in self.horizons):
            raise ValueError(
                f"follow the leader: horizons must be one or more of at least 0, "
                f"got {self.horizons!r}"
            )

    def __call__(self, tables: EpisodeTables, samples: EpisodeTables | None = None) -> Whole:
        """Return the path."""
        leaders = self.leaders(tables)
        path = np.empty(tables.num_epochs, dtype=np.int64)
        current = start(tables, 1)
        for epoch in range(tables.num_epochs):
            current = next_plans(tables, epoch, current, leaders[epoch : epoch + 1])
            path[epoch] = current[0]
        return path

    def leaders(self, tables: EpisodeTables) -> Real:
        """Horizon that leads into each epoch, (E,). [epochs]"""
        spent = running_totals(tables, horizon_paths(tables, self.horizons))
        before = np.concatenate([np.zeros((len(spent), 1)), spent[:, :-1]], axis=1)
        leaders: Real = np.array(self.horizons)[before.argmin(axis=0)]
        return leaders


def running_totals(tables: EpisodeTables, paths: Whole) -> Real:
    """Minus the iterations of paths up to the end of each epoch, (H, E); the first plan is free."""
    epochs = np.arange(tables.num_epochs)
    left: Real = tables.undone[epochs, paths]
    left[:, 1:] += tables.undone_by_move[epochs[1:], paths[:, :-1], paths[:, 1:]]
    totals: Real = np.cumsum(left, axis=1)
    return totals


@dataclass(frozen=True, slots=True)
class Clairvoyant:
    """Most iterations of all paths, by dynamic programming from the last epoch on.

    No rule that chooses among the same plans does better, whatever it knows. The first plan is
    free to choose and costs nothing.

    Attributes
    ----------
    levels
        Levels of the moves that it may make, besides staying; with ``("depth", "split")`` it keeps
        the order with which it begins.
    """

    levels: tuple[MoveLevel, ...] = LEVELS[1:]

    def __post_init__(self) -> None:
        for name in self.levels:
            if name not in LEVELS:
                raise ValueError(
                    f"clairvoyant: levels must be some of {', '.join(LEVELS)}; got {name!r}"
                )

    def __call__(self, tables: EpisodeTables, samples: EpisodeTables | None = None) -> Whole:
        """Return the path; of equally good ones one that stays where it can."""
        num_epochs, num_plans = tables.num_epochs, tables.num_plans
        allowed = [LEVELS.index(name) for name in ("nothing", *self.levels)]
        may_move = np.isin(tables.level, allowed)
        plans = np.arange(num_plans)
        onward = np.empty((num_epochs - 1, num_plans), dtype=np.int64)
        to_come = tables.undone[-1]
        for epoch in range(num_epochs - 2, -1, -1):
            costs = np.where(may_move, tables.undone_by_move[epoch + 1] + to_come, np.inf)
            best = costs.argmin(axis=1)
            least = costs[plans, best]
            onward[epoch] = np.where(costs[plans, plans] == least, plans, best)
            to_come = tables.undone[epoch] + least
        path = np.empty(num_epochs, dtype=np.int64)
        path[0] = to_come.argmin()
        for epoch in range(num_epochs - 1):
            path[epoch + 1] = onward[epoch, path[epoch]]
        return path


clairvoyant = Clairvoyant()
"""The one that may make all moves."""


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
