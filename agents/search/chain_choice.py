"""Chains of several sites that a search looks at: all of few sites, promising ones of many."""

from itertools import permutations

import numpy as np

from agents.search.chains import (
    MOST_ENUMERATED,
    Chain,
    SiteChains,
    all_chains,
    chains_from_all,
    few_of_each_length,
    near_chains,
)
from agents.search.desk import SearchDesk
from agents.search.ranking import ranked_families
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting

_NUM_QUICKEST = 4
"""Sites of which pipelines of two are tried with all others."""


def chains_of(desk: SearchDesk, table: SettingTable, *, is_thorough: bool) -> list[Chain]:
    """Chains of several sites: all of few sites, those of near sites of many.

    Both ways round: stages near the input hold more activations, so that sites divide the layers
    in another way. ``is_thorough`` adds chains with good bounds, where settings are few.
    """
    num_sites = desk.topology.num_domains
    if num_sites <= MOST_ENUMERATED:
        return [chain for chain in all_chains(range(num_sites)) if len(chain) > 1]
    if not table.settings:
        return []
    order, _ = ranked_families(desk, table, [tuple(range(num_sites))])
    if not len(order):
        return []
    setting, most = table.families[order[0]][0], most_sites(desk)
    way_s = desk.tables.ways_s(setting.workload(desk.job).message_bytes).sum(axis=-1)
    found = near_chains(range(num_sites), way_s + way_s.T, most)
    if is_thorough:
        found += _quick_chains(desk, setting, way_s + way_s.T, most)
    return [chain for chain in dict.fromkeys(found) if len(chain) > 1]


def _quick_chains(
    desk: SearchDesk, setting: BoundSetting, away_s: np.ndarray, most: int
) -> list[Chain]:
    """Chains with the best bounds of each length, and pairs with one of the quickest sites."""
    levels, _ = desk.tables.levels(setting)
    site_s = levels.layer_s / np.maximum(levels.num_devices, 1)
    quickest: list[int] = np.argsort(site_s, kind="stable").tolist()
    every = chains_from_all(quickest, away_s, most)
    every += [tuple(quickest[:count]) for count in range(1, most + 1)]
    bounds_s, _ = desk.least_s(setting, SiteChains.of(every))
    first = set(quickest[:_NUM_QUICKEST])
    pairs = (pair for pair in permutations(range(len(site_s)), 2) if not first.isdisjoint(pair))
    return [*few_of_each_length(every, bounds_s.max(axis=1).tolist()), *pairs]


def most_sites(desk: SearchDesk) -> int:
    """Most sites of a pipeline: each has a layer."""
    return min(desk.topology.num_domains, desk.job.layer_count)
