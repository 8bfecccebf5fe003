"""Move by the horizon that would have been best so far."""

from dataclasses import dataclass

import numpy as np

from agents.replanning.horizon import horizon_paths
from agents.replanning.rules import next_plans, start
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Real, Whole

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
