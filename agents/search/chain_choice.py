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
from agents.search.ranking import rank_families
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting
from agents.search.workspace import Workspace

_NUM_QUICKEST = 4
"""Sites of which pipelines of two are tried with all others."""


def chains_of(workspace: Workspace, table: SettingTable, *, is_thorough: bool) -> list[Chain]:
    """Chains of several sites: all of few sites, those of near sites of many.

    Both ways round: stages near the input hold more activations, so that sites divide the layers
    in another way. ``is_thorough`` adds chains with good bounds, where settings are few.
    """
    num_sites = workspace.topology.num_domains
    if num_sites <= MOST_ENUMERATED:
        return [chain for chain in all_chains(range(num_sites)) if len(chain) > 1]
    if not table.settings:
        return []
    order, _ = rank_families(workspace, table, [tuple(range(num_sites))])
    if not len(order):
        return []
    setting, most = table.families[order[0]][0], most_sites(workspace)
    way_s = workspace.tables.ways_s(setting.workload(workspace.job).message_bytes).sum(axis=-1)
    found = near_chains(range(num_sites), way_s + way_s.T, most)
    if is_thorough:
        found += _quick_chains(workspace, setting, way_s + way_s.T, most)
    return [chain for chain in dict.fromkeys(found) if len(chain) > 1]


def _quick_chains(
    workspace: Workspace, setting: BoundSetting, away_s: np.ndarray, most: int
) -> list[Chain]:
    """Chains with the best bounds of each length, and pairs with one of the quickest sites."""
    levels, _ = workspace.tables.levels(setting)
    site_s = levels.layer_s / np.maximum(levels.num_devices, 1)
    quickest: list[int] = np.argsort(site_s, kind="stable").tolist()
    every = chains_from_all(quickest, away_s, most)
    every += [tuple(quickest[:count]) for count in range(1, most + 1)]
    bounds_s, _ = workspace.least_s(setting, SiteChains.of(every))
    first = set(quickest[:_NUM_QUICKEST])
    pairs = (pair for pair in permutations(range(len(site_s)), 2) if not first.isdisjoint(pair))
    return [*few_of_each_length(every, bounds_s.max(axis=1).tolist()), *pairs]


def most_sites(workspace: Workspace) -> int:
    """Most sites of a pipeline: each has a layer."""
    return min(workspace.topology.num_domains, workspace.job.layer_count)
