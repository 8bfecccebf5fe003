"""Pipelines that a search has found, timed again by another one where something is otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from agents.search.candidates import Candidate
from agents.search.chains import Chain
from agents.search.kernels.pipeline_times import MISFIT
from agents.search.setting_table import SettingTable
from agents.search.workspace import Workspace
from des import Topology

_MOST_KNOWN = 4
"""Most pipelines that are timed again: the quickest one bounds what a search looks at."""


@dataclass(frozen=True, kw_only=True)
class NearBest:
    """Settings near the best of a search, and its pipelines, the quickest first."""

    topology: Topology
    settings: SettingTable
    pipelines: tuple[Candidate, ...]

    def time_again(self, workspace: Workspace) -> tuple[Candidate, ...]:
        """The first few pipelines that can run in another search, the quickest first."""
        timed = (replace(one, estimate_s=workspace.whole_s(one)) for one in self._move(workspace))
        found = islice((one for one in timed if one.estimate_s < MISFIT), _MOST_KNOWN)
        return tuple(sorted(found, key=lambda one: one.estimate_s))

    def first_left(self, workspace: Workspace) -> list[Chain]:
        """Sites of the first pipeline that another search has, if they are several."""
        place = self._places(workspace)
        left = tuple(place[site] for site in self.pipelines[0].chains[0] if place[site] >= 0)
        return [left] if len(left) > 1 else []

    def _places(self, workspace: Workspace) -> list[int]:
        """Position of each site in another search, -1 where it is lost."""
        return [workspace.topology.index_of.get(one.name, -1) for one in self.topology.domains]

    def _move(self, workspace: Workspace) -> Iterator[Candidate]:
        """Pipelines of sites that another search has, and that messages join."""
        place = self._places(workspace)
        for one in self.pipelines:
            chain = tuple(place[site] for site in one.chains[0])
            message_bytes = one.setting.workload(workspace.job).message_bytes
            if min(chain) >= 0 and _is_joined(workspace.tables.ways_s(message_bytes), chain):
                yield replace(one, chains=(chain,))


def _is_joined(ways_s: np.ndarray, chain: Sequence[int]) -> bool:
    """Whether messages go both ways between all sites side by side, and from the last one back."""
    here, there = np.array(chain), np.roll(chain, -1)
    return bool(np.isfinite(ways_s[here, there]).all() and np.isfinite(ways_s[there, here]).all())
