"""Surveys of chains: settings by their bounds, level splits, and the best of them improved."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import Chain, SiteChains
from agents.search.desk import SearchDesk
from agents.search.families import survey_alone, survey_families
from agents.search.kernels.records import SurveyLimits
from agents.search.ranking import ranked_families, reaches_of
from agents.search.setting_table import SettingTable

_SLACK = 1.08
"""Estimates up to this multiple of the best are improved."""

_NEAR = 1.3
"""Estimates up to this multiple of the best let other sizes of groups be tried."""

_MOST_TURNED = 4
"""Most candidates whose chain is tried the other way round."""

_MOST_IMPROVED = 12
"""Most candidates whose splits are improved."""


def surveyed(desk: SearchDesk, table: SettingTable, all_of: Sequence[Chain]) -> list[Candidate]:
    """Candidates by quick splits, settings of the quickest bounds first.

    Larger groups of microbatches are tried where groups of the pipeline's size come near, or where
    these leave a last group that the trainer cannot run.
    """
    if not table.settings:
        return []
    ranked = ranked_families(desk, table, reaches_of(desk, all_of))
    return survey_families(
        *(desk, desk.foreseen(table, table.families), ranked, SiteChains.of(all_of)),
        best_s=np.inf,
        limits=SurveyLimits(slack=_SLACK, near=_NEAR, kept=np.inf),
    )


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first two of those that are alike but for their sites, which may be any two of many."""
    counts: Counter[tuple[object, ...]] = Counter()
    found = []
    for one in candidates:
        key = one.setting, one.splits, one.estimate_s
        counts[key] += 1
        if counts[key] <= 2:
            found.append(one)
    return found


def improved(
    desk: SearchDesk, candidates: Sequence[Candidate], *, turns: bool
) -> tuple[Candidate, ...]:
    """The best candidates with better splits, the quickest first; some turned round too."""
    few = _distinct(sorted(candidates, key=lambda one: one.estimate_s))[:_MOST_IMPROVED]
    for one in few[: _MOST_TURNED if turns else 0]:
        if len(one.chains[0]) > 1:
            few += survey_alone(desk, one.setting, SiteChains.of([one.chains[0][::-1]]), np.inf)
    better = [desk.improved(one) for one in few]
    return tuple(sorted(better, key=lambda one: one.estimate_s))
