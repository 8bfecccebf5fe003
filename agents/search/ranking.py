"""Order in which settings are looked at: by the time that some sites take at least."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agents.search.chains import Chain
from agents.search.desk import SearchDesk
from agents.search.foreseen import ForeseenTimes
from agents.search.settings import BoundSetting


@dataclass(frozen=True, kw_only=True)
class SettingFamilies:
    """Settings in families that differ by the size of groups of microbatches alone."""

    desk: SearchDesk
    settings: Sequence[BoundSetting]

    @cached_property
    def _families(self) -> list[list[BoundSetting]]:
        families: dict[tuple[object, ...], list[BoundSetting]] = {}
        for setting in self.settings:
            families.setdefault(family_of_setting(setting), []).append(setting)
        return [sorted(one, key=lambda each: each.group_factor) for one in families.values()]

    @cached_property
    def _foreseen(self) -> tuple[ForeseenTimes, np.ndarray]:
        """Times of each family without any wait, and its microbatches."""
        first = [one[0] for one in self._families]
        counts = np.array([self.desk.num_microbatches(one) for one in first], np.int64)
        return self.desk.foreseen(first), counts

    def ranked(self, reaches: Sequence[Chain]) -> Iterator[tuple[float, BoundSetting]]:
        """Settings that some sites can run, the quickest bound first.

        ``reaches`` are sets of sites, of which the quickest counts. The size of groups is no part
        of a bound.
        """
        if not self.settings:
            return
        foreseen, counts = self._foreseen
        bounds_s = np.min([foreseen.at_s(reach, counts) for reach in reaches], axis=0)
        order = np.argsort(bounds_s, kind="stable")
        for at in order[: np.isfinite(bounds_s).sum()].tolist():
            yield from ((float(bounds_s[at]), setting) for setting in self._families[at])


def family_of_setting(setting: BoundSetting) -> tuple[object, ...]:
    """All of a setting but the size of its groups of microbatches."""
    sizes = setting.microbatch_size, setting.num_chunks
    return setting.degrees, setting.recomputation, setting.schedule, *sizes


def reaches_of(desk: SearchDesk, chains: Sequence[Chain]) -> list[Chain]:
    """Sets of sites that chains are within: one site of each kind, or all of them together."""
    if all(len(chain) == 1 for chain in chains):
        alone = {site for (site,) in chains}
        return [(site,) for site in desk.tables.representatives(alone)]
    return [tuple(sorted({site for chain in chains for site in chain}))]
