"""Desk of a search: figures of each setting once, room to work in, and times of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.chains import Chain, SiteChains
from agents.search.figure_tables import FigureTables
from agents.search.foreseen import ForeseenTimes, schedules_of
from agents.search.kernels.levels import write_least_s
from agents.search.kernels.pipeline_times import MISFIT, staged_pipeline_s
from agents.search.kernels.records import (
    Room,
    SiteFigures,
    SiteLevels,
    SiteMemory,
    TimingRules,
    new_room,
)
from agents.search.kernels.splits import better_split, survey
from agents.search.kernels.stages import better_counts
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting, together_of
from agents.search.shared_parts import SharedParts
from des import Corrections, Topology

_FORESEEN = 48
"""Microbatches from which the time of all of an iteration is carried on, at least."""

_MOST_ROUNDS = 30
"""Most rounds of changes of one split."""

_MOST_PASSES = 30_000
"""Most passes of an iteration of which every change of a split is simulated to its end."""

LeastTimes = tuple[np.ndarray, float]
"""Bounds of some chains, see `levels.write_least_s`, and the least of them. [s]"""
_Tools = tuple[SiteFigures, TimingRules, Room]
"""Figures, rules and room for pipelines of a setting."""


@dataclass(frozen=True, kw_only=True)
class SearchDesk:
    """Room and figures by which times of candidates are worked out.

    Attributes
    ----------
    shared
        Figures and room that this search has in common with others.
    num_judged
        Pipelines simulated so far, a list of one number.
    seen_s
        Quickest time of a pipeline by its setting. [s]
    """

    topology: Topology
    job: TrainingJob
    corrections: Corrections
    shared: SharedParts = field(default_factory=SharedParts)
    num_judged: list[int] = field(default_factory=lambda: [0])
    seen_s: dict[BoundSetting, float] = field(default_factory=dict)
    _tools: dict[tuple[BoundSetting, bool], _Tools] = field(default_factory=dict)
    _rules: dict[BoundSetting, TimingRules] = field(default_factory=dict)

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
            most_microbatches=0 if is_whole else _FORESEEN,
        )

    def _known_rules(self, setting: BoundSetting, own_sequences: int) -> TimingRules:
        """Rules of a setting, or of a pipeline beside others that does some sequences."""
        known = self._rules.get(setting)
        if known is None:
            known = self._rules[setting] = self.rules(setting)
        count = own_sequences // together_of(setting)
        return known._replace(num_microbatches=count) if own_sequences else known

    def num_microbatches(self, setting: BoundSetting) -> int:
        """Microbatches of each replica."""
        own = setting.own_sequences or self.job.num_sequences // setting.num_replicas
        return own // together_of(setting)

    def foreseen(self, table: SettingTable, settings: tuple[BoundSetting, ...]) -> ForeseenTimes:
        """Times without any wait of some settings of a table, which it has as they are."""
        key = "foreseen", self.tables.sites_number, table, id(settings)
        return self.shared.part(key, lambda: self._foreseen(table, settings))

    def _foreseen(self, table: SettingTable, settings: tuple[BoundSetting, ...]) -> ForeseenTimes:
        key = "schedules", table, id(settings)
        orders, paces, first, place = self.shared.part(
            key, lambda: schedules_of(settings, [self.rules(one) for one in settings])
        )
        levels, memory = self.tables.all_levels(key, [settings[at] for at in first])
        return ForeseenTimes(
            num_layers=self.job.layer_count,
            levels=SiteLevels(*(one[place] for one in levels)),
            memory=SiteMemory(*(one[place] for one in memory)),
            orders=orders,
            paces=paces,
        )

    def foreseen_s(self, setting: BoundSetting, sites: Chain) -> float:
        """Time of some sites without any wait, however much memory they have. [s]"""
        (levels, memory), rules = self.tables.levels(setting), self.rules(setting)
        orders, paces, _, _ = schedules_of([setting], [rules])
        endless = np.full((1, len(memory.room_bytes)), np.inf)
        foreseen = ForeseenTimes(
            num_layers=self.job.layer_count,
            levels=SiteLevels(*(one[np.newaxis] for one in levels)),
            memory=SiteMemory(endless, memory.layer_bytes[np.newaxis]),
            orders=orders,
            paces=paces,
        )
        return float(foreseen.at_s(sites)[0])

    def least_s(
        self, setting: BoundSetting, chains: SiteChains, own_sequences: int = 0
    ) -> LeastTimes:
        """Bounds of the times of chains, and the least of them; sizes of groups are no part."""
        outer_s = self.tables.ways_s(setting.workload(self.job).message_bytes)
        levels, memory = self.tables.levels(setting)
        of_chains_s = np.zeros((len(chains.all), 2))
        least_s = write_least_s(
            *(levels, memory, outer_s, self.job.layer_count),
            *(self._known_rules(setting, own_sequences), chains.rows, chains.lengths, of_chains_s),
        )
        return of_chains_s, least_s

    def survey(
        self,
        setting: BoundSetting,
        chains: SiteChains,
        limit_s: float,
        *,
        ratio: float = 1.0,
        least: LeastTimes | None = None,
        own_sequences: int = 0,
    ) -> list[Candidate]:
        """Quick splits of chains below a limit, and below this multiple of the quickest.

        ``least`` are `least_s` of them, if they are known; ``own_sequences`` those of a pipeline
        beside others, 0: those of the setting.
        """
        of_chains_s, least_s = least or self.least_s(setting, chains, own_sequences)
        if not least_s < limit_s:
            return []
        rows, lengths = chains.rows, chains.lengths
        splits, times_s = np.zeros((*rows.shape, 2), np.int64), np.zeros(len(rows))
        counts = np.zeros((len(rows), self.job.layer_count), np.int64)
        figures, rules, room = self._tools_of(setting)
        if own_sequences:  # no more microbatches than there is room for
            rules = self._known_rules(setting, own_sequences)
        self.num_judged[0] += survey(
            *(figures, rules, rows, lengths, of_chains_s, room, limit_s, ratio),
            *(splits, counts, times_s, np.zeros((rows.shape[1], 2), np.int64)),
        )
        found = np.flatnonzero(times_s < min(MISFIT, limit_s)).tolist()
        if own_sequences:
            setting = replace(setting, own_sequences=own_sequences)
        elif found:
            self.seen_s[setting] = min(self.seen_s.get(setting, np.inf), times_s[found].min())
        return [
            _candidate(
                setting, chains.all[at], splits[at, : lengths[at]], float(times_s[at]), counts[at]
            )
            for at in found
        ]

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
        return _candidate(setting, candidate.chains[0], split, float(found_s))

    def polished(self, candidate: Candidate) -> Candidate:
        """The candidate improved by times of whole iterations, where these are short enough."""
        setting = candidate.setting
        passes = 2 * candidate.num_workers * setting.num_chunks * self.num_microbatches(setting)
        if len(candidate.chains) > 1 or passes > _MOST_PASSES:
            return candidate
        better = self.improved(candidate, is_whole=True)
        is_done = setting.is_even or candidate.counts
        return better if is_done else self.levelled(better, is_whole=True)

    def levelled(self, candidate: Candidate, *, is_whole: bool) -> Candidate:
        """The candidate with layers moved between stages of a site, and of sites side by side."""
        setting = candidate.setting
        figures, rules, room = self._tools_of(setting, is_whole=is_whole)
        chain, split = np.array(candidate.chains[0]), np.array(candidate.splits[0], np.int64)
        counts = np.array(candidate.stage_layers, np.int64)
        start_s = float(staged_pipeline_s(figures, rules, chain, split, counts, room, np.inf))
        found_s = better_counts(figures, rules, chain, split, room, counts, start_s, _MOST_ROUNDS)
        self.num_judged[0] += 1
        if not found_s < start_s:
            return replace(candidate, estimate_s=start_s)
        return _candidate(setting, candidate.chains[0], split, float(found_s), counts)

    def staged_s(self, candidate: Candidate, own_sequences: int) -> float:
        """Time of a pipeline with its layers of each stage that does some sequences. [s]"""
        setting, split = candidate.setting, np.array(candidate.splits[0], np.int64)
        figures, count = self.figures(setting), own_sequences // together_of(setting)
        rules = self.rules(setting)._replace(num_microbatches=count)
        room, counts = self._room(figures, rules), np.array(candidate.stage_layers, np.int64)
        chain = np.array(candidate.chains[0])
        return float(staged_pipeline_s(figures, rules, chain, split, counts, room, np.inf))

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
        num_layers = figures.passes_s.shape[2] - 1
        most = min(int(figures.num_devices.sum()), num_layers // rules.num_chunks)
        step = max(1, round(most * rules.group_factor))
        short = rules.num_microbatches + step + 1
        if rules.most_microbatches:
            depth, _, ahead = rules.pace
            held = min(ahead + depth * most + 1, rules.num_microbatches)
            short = min(short, max(rules.most_microbatches, 3 * step, int(2 * held) + step) + step)
        sizes = (max(most, 1), rules.num_chunks, 3 * rules.num_chunks * short, short)
        if sizes not in self.shared.rooms:
            self.shared.rooms[sizes] = new_room(*sizes)
        return self.shared.rooms[sizes]


def _candidate(
    setting: BoundSetting,
    chain: Chain,
    split: np.ndarray,
    time_s: float,
    counts: np.ndarray | None = None,
) -> Candidate:
    own = () if counts is None else tuple(counts[counts > 0].tolist())
    return Candidate(
        setting=setting,
        chains=(chain,),
        splits=(tuple((int(devices), int(layers)) for devices, layers in split),),
        estimate_s=time_s,
        counts=own,
    )
