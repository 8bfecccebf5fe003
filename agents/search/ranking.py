"""Order in which settings are looked at: by the time that some sites take at least."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from agents.search.chains import Chain, SiteChains
from agents.search.desk import LeastTimes, SearchDesk
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting


def ranked_families(
    desk: SearchDesk, table: SettingTable, reaches: Sequence[Chain]
) -> Iterator[tuple[float, int]]:
    """Places of families that some sites can run, the quickest bound first.

    ``reaches`` are sets of sites, of which the quickest counts. The size of groups is no part of a
    bound.
    """
    bounds_s, order = _ranked(desk, table, reaches)
    yield from zip(bounds_s.tolist(), order.tolist(), strict=True)


def families_below(
    desk: SearchDesk,
    table: SettingTable,
    all_of: Sequence[Chain],
    limit_s: Callable[[], float],
) -> Iterator[tuple[float, list[BoundSetting], LeastTimes]]:
    """Bounds of families under which a chain may keep a limit, the quickest first; those of chains.

    The limit may fall from one family to the next.
    """
    chains, foreseen = SiteChains.of(all_of), desk.foreseen(table, table.smallest)
    bounds_s, order = _ranked(desk, table, reaches_of(desk, all_of))
    ways = _ways(desk, table)
    while len(order):
        place, least = foreseen.next_below(ways, chains, order, limit_s())
        if place < len(order):
            yield float(bounds_s[place]), table.families[order[place]], least
        bounds_s, order = bounds_s[place + 1 :], order[place + 1 :]


def _ways(desk: SearchDesk, table: SettingTable) -> tuple[np.ndarray, np.ndarray]:
    """Ways between all sites by sizes of messages, and which each family of a table has."""
    sizes, size_of = desk.shared.part(
        ("sizes", desk.tables.bare_number, table),
        lambda: np.unique(
            [one.workload(desk.job).message_bytes for one in table.smallest],
            return_inverse=True,
        ),
    )
    return np.array([desk.tables.ways_s(size) for size in sizes.tolist()]), size_of


def _ranked(
    desk: SearchDesk, table: SettingTable, reaches: Sequence[Chain]
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of families in their order, and their places."""
    if not table.settings:
        return np.zeros(0), np.zeros(0, np.int64)
    foreseen = desk.foreseen(table, table.smallest)
    bounds_s = np.min([foreseen.at_s(reach) for reach in reaches], axis=0)
    order = np.argsort(bounds_s, kind="stable")[: np.isfinite(bounds_s).sum()]
    return bounds_s[order], order


def reaches_of(desk: SearchDesk, chains: Sequence[Chain]) -> list[Chain]:
    """Sets of sites that chains are within: one site of each kind, or all of them together."""
    if all(len(chain) == 1 for chain in chains):
        alone = {site for (site,) in chains}
        return [(site,) for site in desk.tables.representatives(alone)]
    return [tuple(sorted({site for chain in chains for site in chain}))]
