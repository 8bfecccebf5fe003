"""The bound: the best path through an episode for who knows all of it beforehand."""

from dataclasses import dataclass

import numpy as np

from agents.decision.levels import LEVELS, MoveLevel
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Whole


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
