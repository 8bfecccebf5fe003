"""Times of iterations without any wait: bounds by which a search orders its settings."""

from dataclasses import dataclass

import numpy as np

from agents.search.chains import Chain
from agents.search.kernels.levels import write_foreseen_s
from agents.search.kernels.records import SiteLevels


@dataclass(frozen=True, kw_only=True)
class ForeseenTimes:
    """Times of iterations without any wait under each of some settings.

    Attributes
    ----------
    levels
        Of all sites under each setting, (settings, sites).
    schedules
        Chunks, and whether weight gradients stay behind, (settings, 2).
    """

    num_layers: int
    levels: SiteLevels
    schedules: np.ndarray

    def at_s(self, chain: Chain, num_microbatches: np.ndarray) -> np.ndarray:
        """Times of some sites under each setting, see `levels.foreseen_s`, (settings,). [s]"""
        times_s = np.zeros(len(self.schedules))
        orders = np.column_stack([num_microbatches, self.schedules])
        write_foreseen_s(self.levels, self.num_layers, orders, np.array(chain), times_s)
        return times_s
