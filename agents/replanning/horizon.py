"""Move as if the present epoch would last for a number of epochs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.replanning.rules import next_plans, start
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Whole


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
