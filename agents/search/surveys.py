"""Surveys of chains: settings by their bounds, level splits, and the best of them improved."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import Chain, SiteChains
from agents.search.families import survey_alone, survey_families
from agents.search.kernels.records import SurveyLimits
from agents.search.ranking import rank_families, reaches_of
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting
from agents.search.workspace import Workspace

_BOUND = 1.08
"""Settings are looked at whose bounds are up to this multiple of the best estimate."""

_SLACK = 1.2
"""Estimates up to this multiple of the best are improved: moving layers gains up to a sixth."""

_NEAR = 1.3
"""Estimates up to this multiple of the best let other sizes of groups be tried."""

_MOST_TURNED = 4
"""Most candidates whose chain is tried the other way round."""

_MOST_ALIKE = 4
"""Most candidates that are alike but for the size of groups and the order of sites."""

_MOST_IMPROVED = 16
"""Most candidates whose splits are improved."""


def surveyed(
    workspace: Workspace,
    table: SettingTable,
    all_of: Sequence[Chain],
    known_s: float = np.inf,
) -> list[Candidate]:
    """Candidates by quick splits, settings of the quickest bounds first.

    Larger groups of microbatches are tried where groups of the pipeline's size come near, or where
    these leave a last group that the trainer cannot run. ``known_s`` is the time of a pipeline that
    is known, beside which others count. [s]
    """
    if not table.settings:
        return []
    ranked = rank_families(workspace, table, reaches_of(workspace, all_of))
    return survey_families(
        *(workspace, workspace.foreseen(table, table.families), ranked, SiteChains.of(all_of)),
        best_s=known_s,
        limits=SurveyLimits(bound=_BOUND, slack=_SLACK, near=_NEAR, kept=np.inf),
        is_known=known_s < np.inf,
    )


def _distinct(workspace: Workspace, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The first few of those that are alike but for the size of groups and the order of sites.

    Of candidates of one time on other sites of the same kinds the first one is kept, where sites
    share no uplinks.
    """
    counts: Counter[tuple[object, ...]] = Counter()
    seen, is_open = set[tuple[object, ...]](), workspace.topology.first_limit is None
    for one in candidates:
        key = replace(one.setting, group_factor=1.0), one.sites
        kinds = tuple(map(workspace.tables.kinds_of, one.chains)) if is_open else one.chains
        twins = one.setting, kinds, one.splits, one.counts, one.estimate_s
        counts[key] += 1
        if counts[key] <= _MOST_ALIKE and twins not in seen:
            yield one
        seen.add(twins)


def improved(
    workspace: Workspace,
    candidates: Sequence[Candidate],
    *,
    turns: bool,
    known_s: float = np.inf,
) -> tuple[Candidate, ...]:
    """The best candidates with better splits, the quickest first; some turned round too."""
    few = list(
        islice(
            _distinct(workspace, sorted(candidates, key=lambda one: one.estimate_s)), _MOST_IMPROVED
        )
    )
    for one in few[: _MOST_TURNED if turns else 0]:
        if len(one.chains[0]) > 1:
            few += survey_alone(
                workspace, one.setting, SiteChains.of([one.chains[0][::-1]]), np.inf
            )
    better, best_s, whole_s = list[Candidate](), known_s, known_s
    for one in few:
        if one.estimate_s < _SLACK * best_s and workspace.may_take_less(one, whole_s):
            better.append(workspace.settled(one))
            best_s = min(best_s, better[-1].estimate_s)
            if better[-1].estimate_s < whole_s:
                whole_s = min(whole_s, workspace.whole_s(better[-1]))
        else:
            better.append(one)
    return tuple(sorted(better, key=lambda one: one.estimate_s))


def single_sites(
    workspace: Workspace, table: SettingTable, chains: Sequence[Chain]
) -> tuple[Candidate, ...]:
    """The best candidates of single sites, which are the same whatever the links."""

    def work_out() -> tuple[tuple[Candidate, ...], int, dict[BoundSetting, float]]:
        before, seen_s = workspace.num_judged[0], dict(workspace.seen_s)
        workspace.seen_s.clear()
        found = improved(workspace, surveyed(workspace, table, chains), turns=False)
        own_s = dict(workspace.seen_s)
        count, workspace.num_judged[0] = workspace.num_judged[0] - before, before
        workspace.seen_s.clear()
        workspace.seen_s.update(seen_s)
        return found, count, own_s

    key = "single", workspace.tables.sites_number, table, tuple(chains)
    found, num_judged, seen_s = workspace.shared.part(key, work_out)
    workspace.num_judged[0] += num_judged
    for setting, time_s in seen_s.items():
        workspace.seen_s[setting] = min(time_s, workspace.seen_s.get(setting, np.inf))
    return found
