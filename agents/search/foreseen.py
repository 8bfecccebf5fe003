"""Times of iterations without any wait: bounds by which a search orders its settings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.search.chains import Chain
from agents.search.kernels.levels import write_foreseen_s
from agents.search.kernels.records import SiteLevels, SiteMemory, TimingRules
from agents.search.settings import BoundSetting, differences

_ROUNDING = 1.0 - 1e-9
"""Part of a bound that is left for sums in another order."""


@dataclass(frozen=True, kw_only=True)
class ForeseenTimes:
    """Times of iterations without any wait under each of some settings.

    Attributes
    ----------
    levels, memory
        Of all sites under each setting, (settings, sites).
    orders, paces
        Schedules of each, see `levels.write_foreseen_s`.
    """

    num_layers: int
    levels: SiteLevels
    memory: SiteMemory
    orders: np.ndarray
    paces: np.ndarray

    @property
    def alone_s(self) -> float:
        """Time below which no pipeline of one site is, if its devices were always busy. [s]

        A whole backward pass takes no longer than its two halves.
        """
        whole_s = self.orders[:, :1] * self.num_layers * self.levels.layer_s
        return float((whole_s / np.maximum(self.levels.num_devices, 1)).min()) * _ROUNDING

    def at_s(self, chain: Chain, num_microbatches: np.ndarray | None = None) -> np.ndarray:
        """Times of some sites under each setting, see `levels.foreseen_s`, (settings,). [s]

        ``num_microbatches`` are those of a pipeline; None: of each replica of the setting.
        """
        orders, times_s = self.orders, np.zeros(len(self.orders))
        if num_microbatches is not None:
            orders = np.column_stack([num_microbatches, orders[:, 1:]])
        write_foreseen_s(
            *(self.levels, self.memory, self.num_layers, orders, self.paces),
            *(np.array(chain), times_s),
        )
        return times_s


def schedules_of(
    settings: Sequence[BoundSetting], rules: Sequence[TimingRules]
) -> tuple[np.ndarray, np.ndarray, list[int], list[int]]:
    """Orders and paces of `ForeseenTimes`; the first of each settings with equal figures.

    Behind these it says for every setting which of them has its figures.
    """
    keys = list(map(differences, settings))
    first = {key: at for at, key in reversed(list(enumerate(keys)))}
    number = {key: at for at, key in enumerate(first)}
    orders = [(one.num_microbatches, one.num_chunks, one.pace[2], one.is_blocking) for one in rules]
    paces = np.array([(*one.pace[:2], one.group_factor) for one in rules])
    place = [number[key] for key in keys]
    return np.array(orders, np.int64), paces, list(first.values()), place
