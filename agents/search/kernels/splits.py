"""Devices and layers of the sites of a chain: level to begin with, then better step by step."""

import numpy as np

from agents.search.kernels.bounds import has_layers, quickest_share
from agents.search.kernels.held_levels import write_held_counts
from agents.search.kernels.layouts import num_devices_of
from agents.search.kernels.levels import (
    level_s,
    levels_of_sites,
    levels_under,
    write_even,
    write_fitting_level,
    write_least_s,
    write_level,
)
from agents.search.kernels.pipeline_times import MISFIT, staged_iteration_s
from agents.search.kernels.records import (
    FoundSplits,
    Room,
    SettingFamilies,
    SiteFigures,
    SiteLevels,
    SiteMemory,
    SurveyLimits,
    SurveyPlace,
    TimingRules,
)
from des.base.jit import inner_kernel, lean_kernel

_NO_END = 1 << 30
"""More proposals than there are."""

_OVER, _NONE, _PLAIN, _COUNTED = range(4)
"""Outcomes of a proposal: no more, none this time, a split, a split with layers of each stage."""


@inner_kernel
def copy_split(source: np.ndarray, target: np.ndarray) -> None:
    """Write devices and layers of sites into another split."""
    for at in range(len(source)):
        target[at, 0], target[at, 1] = source[at, 0], source[at, 1]


@inner_kernel
def _has_same_devices(one: np.ndarray, other: np.ndarray) -> bool:
    differing = 0
    for at in range(len(one)):
        differing += one[at, 0] != other[at, 0]
    return differing == 0


@inner_kernel
def _write_next_even(
    figures: SiteFigures, rules: TimingRules, chain: np.ndarray, scratch: np.ndarray, attempt: int
) -> int:
    """Write an even split: on all devices, then on one less of the slowest site each time."""
    if attempt == 0:
        for at in range(len(chain)):
            scratch[at, 0] = figures.num_devices[chain[at]]
    else:
        slowest, slowest_s = -1, -1.0
        for at in range(len(chain)):
            own_s = figures.layer_s[chain[at]]
            if scratch[at, 0] > 1 and own_s > slowest_s:
                slowest, slowest_s = at, own_s
        if slowest < 0:
            return _OVER
        scratch[slowest, 0] -= 1
    return _PLAIN if write_even(figures, rules, scratch) else _NONE


@inner_kernel
def _write_next(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    most_workers: int,
    pace_s: float,
    attempt: int,
) -> int:
    """Write a level split with all devices, then with few, then both with sends that block.

    The last two have layers of each stage, in the room's counts, and the devices of ``split``. If
    sends do not block one follows that is level within the memory of sites of one device each.
    """
    if attempt < 2:
        if not write_level(figures, chain, pace_s, rules.num_chunks, attempt == 1, scratch):
            return _NONE
        return _NONE if attempt == 1 and _has_same_devices(split, scratch) else _PLAIN
    if not rules.is_blocking:
        is_last = attempt > 2 or rules.num_chunks > 1
        if is_last or not write_fitting_level(figures, rules, chain, scratch):
            return _OVER
        return _PLAIN
    if attempt == 4:
        return _OVER
    copy_split(split, scratch)
    for at in range(len(chain)):
        if attempt == 3:
            scratch[at, 0] = figures.num_devices[chain[at]]
    num_workers = num_devices_of(scratch)
    if num_workers > most_workers or num_workers < 1:
        return _NONE
    own = room.counts[:num_workers]
    return _COUNTED if write_held_counts(figures, rules, chain, scratch, room, own) else _NONE


@inner_kernel
def _quick_split(
    figures: SiteFigures,
    rules: TimingRules,
    chain: np.ndarray,
    room: Room,
    split: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
    limit_s: float,
) -> float:
    """Write the best split of those that are quick to find; its time, or the limit. [s]"""
    best_s, pace_s, num_layers = limit_s, 0.0, figures.passes_s.shape[2] - 1
    most_workers = min(num_layers, len(counts))
    if not rules.is_even:
        pace_s = level_s(levels_of_sites(figures), num_layers, chain, rules.num_chunks)
    for attempt in range(_NO_END):
        if rules.is_even:
            found = _write_next_even(figures, rules, chain, scratch, attempt)
        else:
            found = _write_next(
                figures, rules, chain, room, split, scratch, most_workers, pace_s, attempt
            )
        if found == _OVER:
            break
        if found == _NONE:
            continue
        num_counts = num_devices_of(scratch) if found == _COUNTED else 0
        own = room.counts[:num_counts]
        found_s = staged_iteration_s(figures, rules, chain, scratch, own, room, best_s)
        if found_s < best_s or (found == _PLAIN and split[0, 0] == 0):
            best_s = min(best_s, found_s)
            copy_split(scratch, split)
            for at in range(len(counts)):
                counts[at] = own[at] if at < num_counts else 0
    return best_s


@inner_kernel
def _rules_of(families: SettingFamilies, family: int, turn: int) -> TimingRules:
    """Rules of a setting of a family, the smallest groups first."""
    return TimingRules(
        (families.paces[family, 0], families.paces[family, 1], families.orders[family, 2]),
        families.orders[family, 1],
        families.factors[family, turn],
        families.orders[family, 3] > 0,
        families.is_even,
        families.whole_groups,
        families.orders[family, 0],
        families.most_microbatches,
    )


@inner_kernel
def _figures_of(
    figures: SiteFigures, families: SettingFamilies, family: int, outer_s: np.ndarray
) -> SiteFigures:
    """Figures of all sites under the settings of a family."""
    at = families.figures_at[family]
    return SiteFigures(
        figures.passes_s[at],
        figures.state_bytes[at],
        figures.kept_bytes[at],
        figures.halved_bytes[at],
        figures.room_bytes[at],
        figures.parameters[at],
        figures.sums_s[at],
        figures.update_s[at],
        figures.num_devices[at],
        figures.layer_s[at],
        figures.most_layers[at],
        figures.inner_s[at],
        figures.back_s[at],
        outer_s,
    )


@lean_kernel
def survey(
    figures: SiteFigures,
    levels: SiteLevels,
    memory: SiteMemory,
    families: SettingFamilies,
    order: np.ndarray,
    bounds_s: np.ndarray,
    chains: np.ndarray,
    lengths: np.ndarray,
    room: Room,
    limits: SurveyLimits,
    found: FoundSplits,
    place: SurveyPlace,
) -> int:
    """Write the quick splits of chains under many settings; returns how many keep their limits.

    Families of settings in their order, until a bound says that no more is near the best, until the
    figures of a family are asked for, or until there is no room for what another setting may have
    found. Where sends block, layers of each stage that allow for that are tried too.

    Parameters
    ----------
    figures, levels, memory
        Of all settings, `families` says which of them: with one more axis in front.
    order, bounds_s
        Families, the quickest bound first, and these bounds. [s]
    chains, lengths
        Sites of each chain, (chains, most sites), and how many it has.
    """
    num_found = 0
    while place.next[0] < len(order):
        family = order[place.next[0]]
        if place.next[1] == 0 and bounds_s[place.next[0]] >= limits.bound * place.best_s[0]:
            place.next[0] = len(order)
            break
        outer_s, num_layers = families.outer_s[families.outer_at[family]], found.counts.shape[1]
        own_levels, held = levels_under(levels, memory, family)
        rules, bounds = _rules_of(families, family, 0), place.least_s
        least_s = write_least_s(
            own_levels, held, outer_s, num_layers, rules, chains, lengths, bounds
        )
        while place.next[1] < families.num_sizes[family]:
            best_s, known_s = place.best_s[0], place.best_s[1]
            if least_s >= limits.bound * best_s or known_s > limits.near * best_s:
                break
            is_full = len(found.times_s) - num_found < len(chains)
            if is_full or not families.is_there[families.figures_at[family]]:
                return num_found
            rules = _rules_of(families, family, place.next[1])
            own = _figures_of(figures, families, family, outer_s)
            num_found = _survey_setting(
                own, rules, family, chains, lengths, room, limits, found, place, num_found
            )
            place.next[1] += 1
        place.next[0] += 1
        place.next[1], place.best_s[1] = 0, np.nan
    return num_found


@inner_kernel
def _survey_setting(
    figures: SiteFigures,
    rules: TimingRules,
    family: int,
    chains: np.ndarray,
    lengths: np.ndarray,
    room: Room,
    limits: SurveyLimits,
    found: FoundSplits,
    place: SurveyPlace,
    before: int,
) -> int:
    """Write the quick splits of chains after those found before; returns how many there are.

    A chain is not simulated whose bounds are above the quickest time or the limit of splits.
    """
    num_found, turn, own_s, share = before, place.next[1], np.inf, quickest_share(figures)
    best_s, known_s = place.best_s[0], place.best_s[1]
    ratio, bound = limits.slack, limits.bound
    if rules.num_chunks > 1 and np.isnan(known_s):
        ratio = bound = limits.near
    limit_s, quickest_s = ratio * best_s, bound * best_s
    for each in range(len(chains)):
        kept_s = min(limit_s, min(ratio, limits.kept) * quickest_s)
        most_sent_s = min(kept_s, bound * min(best_s, quickest_s))
        is_near = place.least_s[each, 0] < quickest_s
        if not is_near or not place.least_s[each, 1] < most_sent_s:
            continue
        chain, scratch = chains[each, : lengths[each]], place.scratch[: lengths[each]]
        if not has_layers(figures, rules, chain, min(kept_s, quickest_s) / share):
            continue
        split, counts = found.splits[num_found, : lengths[each]], found.counts[num_found]
        split[:], counts[:] = 0, 0
        found_s = _quick_split(figures, rules, chain, room, split, scratch, counts, kept_s)
        place.next[3] += 1
        if found_s < kept_s:
            quickest_s = min(quickest_s, found_s)
        if found_s < min(kept_s, MISFIT):
            own_s = min(own_s, found_s)
            found.times_s[num_found] = found_s
            found.of[num_found, 0], found.of[num_found, 1] = family, turn
            found.of[num_found, 2] = each
            num_found += 1
    if num_found > before:
        place.seen_s[family, turn] = own_s
        place.best_s[0] = min(best_s, own_s) if place.next[2] > 0 else own_s
        place.next[2] = 1
    if np.isnan(known_s) and (num_found > before or not rules.whole_groups):
        place.best_s[1] = own_s
    return num_found
