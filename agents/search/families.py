"""Surveys of families of settings: quick splits of chains, one compiled call for many settings."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import SiteChains
from agents.search.foreseen import FORESEEN, Families, ForeseenTimes, room_sizes
from agents.search.kernels.records import (
    FoundSplits,
    Room,
    SettingFamilies,
    SurveyLimits,
    SurveyPlace,
)
from agents.search.kernels.splits import survey
from agents.search.settings import BoundSetting
from agents.search.workspace import Workspace, candidate_of

Ranked = tuple[np.ndarray, np.ndarray]
"""Places of families, the quickest bound first, and these bounds. [s]"""

_MOST_FOUND = 512
"""Splits that are taken from a survey at a time, and one for each chain."""


def survey_alone(
    workspace: Workspace, setting: BoundSetting, chains: SiteChains, limit_s: float
) -> list[Candidate]:
    """Quick splits of chains under one setting, each below a limit and the quickest before it."""
    ranked = np.zeros(1, np.int64), np.zeros(1)
    limits = SurveyLimits(bound=1.0, slack=1.0, near=1.0, kept=1.0)
    times = workspace.alone(setting)
    return survey_families(workspace, times, ranked, chains, best_s=limit_s, limits=limits)


def survey_families(
    workspace: Workspace,
    times: ForeseenTimes,
    ranked: Ranked,
    chains: SiteChains,
    *,
    best_s: float,
    limits: SurveyLimits,
    own_sequences: int = 0,
    is_known: bool = False,
) -> list[Candidate]:
    """Quick splits of chains that are near the quickest, see `splits.survey`.

    Parameters
    ----------
    best_s
        Time that stands in for the quickest until there is one, or, with ``is_known``, that of a
        pipeline that is known. [s]
    own_sequences
        Those of a pipeline beside others, of which all splits found on the way are returned; 0:
        those of the settings.
    """
    families, rows = times.schedules.families, _rows_of(workspace, times, own_sequences)
    place = _place_of(times, chains, best_s, is_known=is_known)
    found = _make_room(chains, workspace.job.layer_count)
    room, parts = _room_of(workspace, times), list[FoundSplits]()
    while (at := int(place.next[0])) < len(ranked[0]):
        stacked = times.schedules.figures_at[ranked[0][at]]
        if not times.is_there[stacked]:
            times.put(stacked, workspace.tables.inside(families[ranked[0][at]][0]))
        count = survey(
            *(times.stack, times.levels, times.memory, rows, *ranked),
            *(chains.rows, chains.lengths, room, limits, found, place),
        )
        parts.append(FoundSplits(*(one[:count].copy() for one in found)))
    workspace.num_judged[0] += int(place.next[3])
    if own_sequences:
        return list(_candidates(families, chains, parts, np.inf, own_sequences))
    for family, size in np.argwhere(place.seen_s < np.inf).tolist():
        own_s, known = float(place.seen_s[family, size]), families[family][size]
        workspace.seen_s[known] = min(own_s, workspace.seen_s.get(known, np.inf))
    most_s = limits.slack * float(place.best_s[0])
    candidates = list(_candidates(families, chains, parts, most_s, own_sequences))
    workspace.surveyed.extend(candidates)
    return candidates


def _candidates(
    families: Families,
    chains: SiteChains,
    parts: list[FoundSplits],
    most_s: float,
    own_sequences: int,
) -> Iterator[Candidate]:
    """Candidates up to a time, in the order in which they were found."""
    for part in parts:
        for at in np.flatnonzero(part.times_s <= most_s).tolist():
            family, size, each = part.of[at].tolist()
            setting = families[family][size]
            if own_sequences:
                setting = replace(setting, own_sequences=own_sequences)
            split = part.splits[at, : chains.lengths[each]]
            own_s = float(part.times_s[at])
            yield candidate_of(setting, chains.all[each], split, own_s, part.counts[at])


def _rows_of(workspace: Workspace, times: ForeseenTimes, own_sequences: int) -> SettingFamilies:
    """Families as the survey reads them, with ways between sites."""
    own, orders = times.schedules, times.schedules.orders
    if own_sequences:
        orders = np.column_stack([own_sequences // own.together, orders[:, 1:]])
    first = own.families[0][0]
    return SettingFamilies(
        orders=orders,
        paces=own.paces,
        factors=own.factors,
        num_sizes=own.num_sizes,
        figures_at=own.figures_at,
        is_there=times.is_there,
        outer_at=own.outer_at,
        outer_s=np.array([workspace.tables.ways_s(size) for size in own.message_bytes]),
        is_even=first.is_even,
        whole_groups=first.whole_groups,
        most_microbatches=FORESEEN,
    )


def _place_of(
    times: ForeseenTimes, chains: SiteChains, best_s: float, *, is_known: bool
) -> SurveyPlace:
    """The beginning of a survey."""
    num_chains, size = chains.rows.shape
    return SurveyPlace(
        next=np.array([0, 0, is_known, 0]),
        best_s=np.array([best_s, np.nan]),
        seen_s=np.full(times.schedules.factors.shape, np.inf),
        least_s=np.zeros((num_chains, 2)),
        scratch=np.zeros((size, 2), np.int64),
    )


def _make_room(chains: SiteChains, num_layers: int) -> FoundSplits:
    """Room for what a survey finds."""
    num_chains, size = chains.rows.shape
    most = num_chains + _MOST_FOUND
    return FoundSplits(
        of=np.zeros((most, 3), np.int64),
        splits=np.zeros((most, size, 2), np.int64),
        counts=np.zeros((most, num_layers), np.int64),
        times_s=np.zeros(most),
    )


def _room_of(workspace: Workspace, times: ForeseenTimes) -> Room:
    """Room for the longest pipeline of all families."""
    own, num_devices = times.schedules, times.levels.num_devices.sum(axis=1)
    count, chunks, ahead, _ = own.orders.T
    paces = own.paces[:, 0], own.factors.max(axis=1)
    orders = count, chunks, ahead
    sizes = room_sizes(num_devices, workspace.job.layer_count, orders, paces, is_whole=False)
    return workspace.shared.room(sizes)
