"""A rule of re-planning: moves to the best plan every N epochs, whatever the move takes.

A row of ``RULES`` in ``agents/replanning/table.py`` makes it known to ``eastwest compare``.
"""

from dataclasses import dataclass

import numpy as np

from agents.replanning.rules import next_plans, start
from agents.replanning.tables import EpisodeTables
from des.compiled.many.layout import Whole


@dataclass(frozen=True)
class EveryNEpochs:
    """Rule that looks at the epoch time alone, in every N-th epoch."""

    num_epochs: int

    def __call__(self, tables: EpisodeTables, samples: EpisodeTables | None = None) -> Whole:
        """Return the plan of each epoch by number, (E,)."""
        current = start(tables, num_runs=1)
        path = np.empty(tables.num_epochs, dtype=np.int64)
        for epoch in range(tables.num_epochs):
            if epoch and epoch % self.num_epochs == 0:
                current = next_plans(tables, epoch, current, np.array([np.inf]))
            path[epoch] = current[0]
        return path
