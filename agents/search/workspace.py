"""Workspace of a search: figures of each setting once, scratch arrays, times of candidates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.chains import Chain, SiteChains
from agents.search.figure_tables import FigureTables
from agents.search.foreseen import FORESEEN, Families, ForeseenTimes, Schedules, room_sizes
from agents.search.kernels.bounds import may_take_less
from agents.search.kernels.levels import write_least_s
from agents.search.kernels.pipeline_times import staged_pipeline_s
from agents.search.kernels.records import (
    Room,
    SiteFigures,
    SiteLevels,
    SiteMemory,
    TimingRules,
)
from agents.search.kernels.split_moves import better_split
from agents.search.kernels.stages import better_counts
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting, together_of
from agents.search.shared_parts import SharedParts
from des import Corrections, Topology

_MOST_ROUNDS = 30
"""Most rounds of changes of one split."""

_MOST_PASSES = 30_000
"""Most passes of an iteration of which every change of a split is simulated to its end."""

LeastTimes = tuple[np.ndarray, float]
"""Bounds of some chains, see `levels.write_least_s`, and the least of them. [s]"""
_Tools = tuple[SiteFigures, TimingRules, Room]
"""Figures, rules and room for pipelines of a setting."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Room and figures by which times of candidates are worked out.

    Attributes
    ----------
    shared
        Figures and room that this search has in common with others.
    num_judged
        Pipelines simulated so far, a list of one number.
    seen_s
        Quickest time of a pipeline by its setting. [s]
    surveyed
        Pipelines by quick splits, as they were found.
    """

    topology: Topology
    job: TrainingJob
    corrections: Corrections
    shared: SharedParts = field(default_factory=SharedParts)
    num_judged: list[int] = field(default_factory=lambda: [0])
    seen_s: dict[BoundSetting, float] = field(default_factory=dict)
    surveyed: list[Candidate] = field(default_factory=list)
    _tools: dict[tuple[BoundSetting, bool], _Tools] = field(default_factory=dict)
    _before: dict[Candidate, Candidate] = field(default_factory=dict)

    def figures(self, setting: BoundSetting) -> SiteFigures:
        """Figures of all sites under a setting."""
        return self.tables.figures(setting)

    @cached_property
    def tables(self) -> FigureTables:
        """Parts of figures that settings share."""
        return FigureTables(
            topology=self.topology,
            job=self.job,
            corrections=self.corrections,
            shared=self.shared,
        )

    def rules(self, setting: BoundSetting, *, is_whole: bool = False) -> TimingRules:
        """Rules of a setting; whole ones simulate all microbatches of a replica."""
        pace = setting.pace
        return TimingRules(
            pace=(pace.depth, -1.0 if pace.behind is None else pace.behind, pace.ahead),
            num_chunks=setting.num_chunks,
            group_factor=setting.group_factor,
            is_blocking=setting.is_blocking,
            is_even=setting.is_even,
            whole_groups=setting.whole_groups,
            num_microbatches=self.num_microbatches(setting),
            most_microbatches=0 if is_whole else FORESEEN,
        )

    def num_microbatches(self, setting: BoundSetting) -> int:
        """Microbatches of each replica."""
        own = setting.own_sequences or self.job.num_sequences // setting.num_replicas
        return own // together_of(setting)

    def foreseen(self, table: SettingTable, families: Families) -> ForeseenTimes:
        """Times without any wait of some families of a table, which it has as they are."""
        key = "foreseen", self.tables.sites_number, table, id(families)
        return self.shared.part(key, lambda: self._foreseen(families, key[2:]))

    def alone(self, setting: BoundSetting) -> ForeseenTimes:
        """The same of one setting, which is no family of a table."""
        key = "alone", self.tables.sites_number, setting
        return self.shared.part(key, lambda: self._foreseen([[setting]], key))

    def _foreseen(self, families: Families, name: Hashable) -> ForeseenTimes:
        firsts = [own[0] for own in families]
        schedules = self.shared.part(
            ("schedules", name),
            lambda: Schedules.of(families, self.job, list(map(self.num_microbatches, firsts))),
        )
        levels, memory = self.tables.all_levels(name, [firsts[at] for at in schedules.first])
        place = schedules.figures_at
        return ForeseenTimes(
            num_layers=self.job.layer_count,
            levels=SiteLevels(*(one[place] for one in levels)),
            memory=SiteMemory(*(one[place] for one in memory)),
            schedules=schedules,
            is_there=np.zeros(len(schedules.first), np.bool_),
        )

    def foreseen_s(self, setting: BoundSetting, sites: Chain) -> float:
        """Time of some sites without any wait, however much memory they have. [s]"""
        own = self.alone(setting)
        endless = own.memory._replace(room_bytes=np.full_like(own.memory.room_bytes, np.inf))
        return float(replace(own, memory=endless).at_s(sites)[0])

    def least_s(self, setting: BoundSetting, chains: SiteChains) -> LeastTimes:
        """Bounds of the times of chains, and the least of them; sizes of groups are no part."""
        outer_s = self.tables.ways_s(setting.workload(self.job).message_bytes)
        levels, memory = self.tables.levels(setting)
        of_chains_s = np.zeros((len(chains.all), 2))
        least_s = write_least_s(
            *(levels, memory, outer_s, self.job.layer_count),
            *(self.rules(setting), chains.rows, chains.lengths, of_chains_s),
        )
        return of_chains_s, least_s

    def improved(self, candidate: Candidate, *, is_whole: bool = False) -> Candidate:
        """The chain with its devices and layers moved until nothing helps."""
        if candidate.counts:
            return self.levelled(candidate, is_whole=is_whole)
        setting, chain = candidate.setting, np.array(candidate.chains[0])
        figures, rules, room = self._tools_of(setting, is_whole=is_whole)
        split = np.array(candidate.splits[0], np.int64)
        start_s = candidate.estimate_s
        if is_whole:
            start_s = self.time_s(setting, candidate.chains[0], candidate.splits[0])
        found_s = better_split(
            *(figures, rules, chain, room, split, np.zeros_like(split), start_s, _MOST_ROUNDS)
        )
        self.num_judged[0] += 1
        return candidate_of(setting, candidate.chains[0], split, float(found_s))

    def settled(self, candidate: Candidate, *, is_whole: bool = False) -> Candidate:
        """The candidate improved, and then levelled where stages may differ."""
        chains, tables = candidate.chains, self.tables
        inside = tuple(tables.numbers[kind][1] for kind in tables.kinds_of(chains[0]))
        ways_s = tables.ways_s(candidate.setting.workload(self.job).message_bytes)
        between = ways_s[np.ix_(chains[0], chains[0])].tobytes()
        key = "settled", inside, between, is_whole, replace(candidate, chains=())
        *both, count = self.shared.part(key, lambda: self._settle(candidate, is_whole=is_whole))
        self.num_judged[0] += count
        better, found = (replace(one, chains=chains) for one in both)
        if found.counts and not (candidate.setting.is_even or candidate.counts):
            self._before[found] = better
        return found

    def _settle(self, candidate: Candidate, *, is_whole: bool) -> tuple[Candidate, Candidate, int]:
        """The candidate improved, that levelled where it may be, and how many were simulated."""
        before = self.num_judged[0]
        better = found = self.improved(candidate, is_whole=is_whole)
        if not (candidate.setting.is_even or candidate.counts):
            found = self.levelled(better, is_whole=is_whole)
        count, self.num_judged[0] = self.num_judged[0] - before, before
        return better, found, count

    def polished(self, candidate: Candidate) -> Candidate:
        """The candidate improved by times of whole iterations, where these are short enough.

        It begins before it was levelled where that is quicker, as a part of an iteration may
        mislead.
        """
        setting = candidate.setting
        passes = 2 * candidate.num_workers * setting.num_chunks * self.num_microbatches(setting)
        if len(candidate.chains) > 1 or passes > _MOST_PASSES:
            return candidate
        starts = [candidate]
        if candidate in self._before:
            starts.append(self._before[candidate])
        return self.settled(min(starts, key=self.whole_s), is_whole=True)

    def may_take_less(self, candidate: Candidate, limit_s: float) -> bool:
        """Whether any split of the chain of a candidate may take less than a time."""
        figures, rules, _ = self._tools_of(candidate.setting)
        chain = np.array(candidate.chains[0])
        return bool(may_take_less(figures, rules, chain, limit_s))

    def levelled(self, candidate: Candidate, *, is_whole: bool) -> Candidate:
        """The candidate with layers moved between stages of a site, and of sites side by side."""
        setting = candidate.setting
        figures, rules, room = self._tools_of(setting, is_whole=is_whole)
        chain, split, counts = _arrays_of(candidate)
        start_s = float(staged_pipeline_s(figures, rules, chain, split, counts, room, np.inf))
        found_s = better_counts(figures, rules, chain, split, room, counts, start_s, _MOST_ROUNDS)
        self.num_judged[0] += 1
        if not found_s < start_s:
            return replace(candidate, estimate_s=start_s)
        return candidate_of(setting, candidate.chains[0], split, float(found_s), counts)

    def staged_s(self, candidate: Candidate, own_sequences: int) -> float:
        """Time of a pipeline with its layers of each stage that does some sequences. [s]"""
        figures, setting = self.figures(candidate.setting), candidate.setting
        count = own_sequences // together_of(setting)
        rules = self.rules(setting)._replace(num_microbatches=count)
        room = self._room(figures, rules)
        return float(staged_pipeline_s(figures, rules, *_arrays_of(candidate), room, np.inf))

    def whole_s(self, candidate: Candidate) -> float:
        """Time of a pipeline with its layers of each stage, all microbatches simulated. [s]"""
        figures, rules, room = self._tools_of(candidate.setting, is_whole=True)
        return float(staged_pipeline_s(figures, rules, *_arrays_of(candidate), room, np.inf))

    def time_s(
        self, setting: BoundSetting, chain: Chain, split: Sequence[tuple[int, int]]
    ) -> float:
        """Time of one replica's pipeline, all of its microbatches simulated. [s]"""
        figures, rules, room = self._tools_of(setting, is_whole=True)
        self.num_judged[0] += 1
        own = np.array(chain), np.array(split, np.int64), room.no_counts
        return float(staged_pipeline_s(figures, rules, *own, room, np.inf))

    def made_s(
        self, setting: BoundSetting, chain: Chain, split: Sequence[tuple[int, int]]
    ) -> tuple[float, np.ndarray]:
        """`time_s` of a replica, and when the last gradients of each of its stages are made. [s]"""
        own_s = self.time_s(setting, chain, split)
        _, _, room = self._tools_of(setting, is_whole=True)
        num_stages = sum(devices for devices, _ in split) * setting.num_chunks
        return own_s, room.made_s[:num_stages] + room.sums_s[:num_stages]

    def _tools_of(self, setting: BoundSetting, *, is_whole: bool = False) -> _Tools:
        """All that a kernel reads of a setting."""
        known = self._tools.get((setting, is_whole))
        if known is None:
            figures, rules = self.figures(setting), self.rules(setting, is_whole=is_whole)
            known = self._tools[setting, is_whole] = figures, rules, self._room(figures, rules)
        return known

    def _room(self, figures: SiteFigures, rules: TimingRules) -> Room:
        """Room for the longest pipeline that there can be."""
        most = int(figures.num_devices.sum()), figures.passes_s.shape[2] - 1
        own = rules.num_microbatches, rules.num_chunks, rules.pace[2]
        paces = rules.pace[0], rules.group_factor
        is_whole = not rules.most_microbatches
        return self.shared.part(
            ("room", most, own, paces, is_whole),
            lambda: self.shared.room(room_sizes(*most, own, paces, is_whole=is_whole)),
        )


def _arrays_of(candidate: Candidate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sites, devices and layers of each, and layers of each stage of a candidate's pipeline."""
    split, counts = candidate.splits[0], candidate.stage_layers
    return np.array(candidate.chains[0]), np.array(split, np.int64), np.array(counts, np.int64)


def candidate_of(
    setting: BoundSetting,
    chain: Chain,
    split: np.ndarray,
    time_s: float,
    counts: np.ndarray | None = None,
) -> Candidate:
    """A pipeline, with the layers of each stage that has some."""
    own = () if counts is None else tuple(counts[counts > 0].tolist())
    return Candidate(
        setting=setting,
        chains=(chain,),
        splits=(tuple(map(tuple, split.tolist())),),
        estimate_s=time_s,
        counts=own,
    )
