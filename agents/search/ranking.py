"""Order in which settings are looked at: by the time that some sites take at least."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from agents.search.chains import Chain
from agents.search.desk import SearchDesk
from agents.search.settings import BoundSetting

_NO_RATE = 1e-300
"""Speed of sites that have no device."""


def ranked_settings(
    desk: SearchDesk, settings: Sequence[BoundSetting], reaches: Sequence[Chain]
) -> Iterator[tuple[float, BoundSetting]]:
    """Settings that some sites can run, the quickest bound first.

    ``reaches`` are sets of sites, of which the quickest counts. The bound of a setting is looked at
    once that of endless pipelines without memory is the least; the size of groups is no part of it.
    """
    families: dict[tuple[object, ...], list[BoundSetting]] = {}
    for setting in settings:
        families.setdefault(family_of_setting(setting), []).append(setting)
    waiting: list[tuple[float, bool, int]] = []
    alike = [sorted(one, key=lambda each: each.group_factor) for one in families.values()]
    known: dict[tuple[object, ...], float] = {}
    for at, (setting, *_) in enumerate(alike):
        key = setting.degrees, setting.microbatch_size, setting.recomputation
        if key not in known:
            rates = 1.0 / desk.tables.fluid_s(setting)
            known[key] = min(1.0 / (rates[list(reach)].sum() or _NO_RATE) for reach in reaches)
        waiting.append((known[key], False, at))
    heapify(waiting)
    while waiting:
        bound_s, is_known, at = heappop(waiting)
        if is_known:
            yield from ((bound_s, setting) for setting in alike[at])
            continue
        bound_s = min(desk.foreseen_s(alike[at][0], reach) for reach in reaches)
        if bound_s < np.inf:
            heappush(waiting, (bound_s, True, at))


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
