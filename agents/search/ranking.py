"""Order in which settings are looked at: by the time that some sites take at least."""

from collections.abc import Sequence

import numpy as np

from agents.search.chains import Chain
from agents.search.families import Ranked
from agents.search.setting_table import SettingTable
from agents.search.workspace import Workspace


def rank_families(workspace: Workspace, table: SettingTable, reaches: Sequence[Chain]) -> Ranked:
    """Places of families that some sites can run, the quickest bound first.

    ``reaches`` are sets of sites, of which the quickest counts. The size of groups is no part of a
    bound.
    """
    foreseen = workspace.foreseen(table, table.families)
    bounds_s = np.min([foreseen.at_s(reach) for reach in reaches], axis=0)
    order = np.argsort(bounds_s, kind="stable")[: np.isfinite(bounds_s).sum()]
    return order, bounds_s[order]


def reaches_of(workspace: Workspace, chains: Sequence[Chain]) -> list[Chain]:
    """Sets of sites that chains are within: one site of each kind, or all of them together."""
    if all(len(chain) == 1 for chain in chains):
        alone = sorted({site for (site,) in chains}, reverse=True)
        first = dict(zip(workspace.tables.kinds_of(alone), alone, strict=True))
        return [(site,) for site in first.values()]
    return [tuple(sorted({site for chain in chains for site in chain}))]
