"""Interface of re-planning rules, and the step that most of them take epoch after epoch."""

from typing import Protocol

import numpy as np

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
