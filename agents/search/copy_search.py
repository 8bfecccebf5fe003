"""Search for copies that differ: each group of sites with its own degrees and share of sequences.

Copies that exchange parameters every some steps, and, where a trainer lets stages differ, gradients
after every step. The slowest copy of a partition sets what all have in common.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations

import numpy as np

from agents.decision.token_prices import price_of
from agents.search.candidates import Candidate
from agents.search.chains import Chain, SiteChains, near_chains
from agents.search.copies import along_tree_s, around_ring_s, least_way_s, pace_bytes
from agents.search.copy_sets import CopySet, partitions
from agents.search.families import survey_families
from agents.search.kernels.records import SurveyLimits
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting, together_of
from agents.search.workspace import Workspace
from agents.trainers.trainer import Trainer
from des import DecoupledDiLoCo, Workload
from des.plan.buckets import bits_on_wire
from des.plan.plan import split_evenly
from des.plan.synchronisation import Synchronisation, agree_every_step

_MOST_KEPT = 2
"""Most sets of copies of a way to synchronise that are handed on, the second for misfits."""

_MOST_COMMON = 3
"""Most settings that the slowest copy proposes to all."""

_MOST_ORDERED = 3
"""Most sites of a group whose every order is tried."""

_MOST_RINGS = 5
"""Most copies of which all rings are looked at."""

_MOST_ROUNDS = 64
"""Most microbatches that go from the slowest copy to the quickest one by one."""

_SLACK = 1.08
"""Estimates up to this multiple of the best are proposed to all copies."""

_ROUNDING = 1.0 - 1e-9
"""Part of a bound that is left for sums in another order."""

_NEAR = 1.6
"""Copies may take this multiple of the limit until their shares and layers are level."""

_Common = tuple[int, str, str]
"""Sequences of a microbatch, recomputation and schedule."""


@dataclass(frozen=True, kw_only=True)
class CopySetSearch:
    """Best pipelines of groups of sites, each looked for once.

    Attributes
    ----------
    table
        Settings to choose from; of them the ones with one stage on each device are taken.
    limit_s
        Time of a step above which copies are left out. [s]
    token_factor
        Tokens that any changed training needs, see `PlanRequest`.
    """

    workspace: Workspace
    trainer: Trainer
    table: SettingTable
    limit_s: float
    token_factor: float | None
    _known: dict[tuple[object, ...], list[Candidate]] = field(default_factory=dict)
    _copies_of: dict[tuple[object, ...], list[Candidate]] = field(default_factory=dict)

    def sets(self, mode: Synchronisation) -> list[CopySet]:
        """The quickest copies that synchronise in one way."""
        workspace = self.workspace
        if not self.table.unchunked:
            return []
        least_s, exchange_s = self._least_s, self._least_exchange_s(mode)
        speeds = [domain.peak_flops_per_s for domain in workspace.topology.domains]
        found: list[CopySet] = []
        for groups in partitions(speeds, self._away_s):
            own_s = 2.0 * exchange_s * (len(groups) - 1) / len(groups)
            mean_s = _mean_s(least_s, own_s, mode, workspace.job.layer_count)
            if mean_s * _ROUNDING > _SLACK * self.limit_s:
                continue
            rates = [sum(speeds[site] for site in group) for group in groups]
            found += self._of_groups(groups, rates, mode)
        few = sorted(found, key=self._loss_s)[:_MOST_KEPT]
        return [replace(one, copies=tuple(map(workspace.improved, one.copies))) for one in few]

    @cached_property
    def _least_s(self) -> float:
        """Time of a step if all devices of all sites were always busy. [s]"""
        site_s = self.workspace.tables.fluid_s([one for (one,) in self.table.unchunked]).min(axis=0)
        with np.errstate(divide="ignore"):
            return float(1.0 / (1.0 / site_s).sum())

    def _least_exchange_s(self, mode: Synchronisation) -> float:
        """Time that copies, two at least, need to exchange over the best link alone. [s]"""
        workspace, precision = self.workspace, self.trainer.gradient_precision
        sizes = {together_of(one) for (one,) in self.table.unchunked}
        messages = [pace_bytes(workspace.job.workload(size)) for size in sizes]
        rates_s = [least_way_s(workspace, num_bytes) / num_bytes for num_bytes in messages]
        num_bytes = _exchanged_bytes(workspace.job.workload(1, "flash", precision), mode)
        return 0.5 * num_bytes * min(rates_s, default=0.0)

    def _loss_s(self, one: CopySet) -> float:
        """Time of a step of unchanged training that leads as far. [s]"""
        if self.token_factor is not None:
            return one.estimate_s
        workload = one.setting.workload(self.workspace.job)
        factor = price_of(one.plan(self.workspace.topology), workload).factor
        return one.estimate_s * (factor or 1.0)

    @cached_property
    def _away_s(self) -> np.ndarray:
        """Time of a message between sites, there and back. [s]"""
        workspace, num_bytes = self.workspace, self.workspace.job.workload(1).message_bytes
        way_s = workspace.tables.ways_s(num_bytes).sum(axis=-1)
        away_s: np.ndarray = way_s + way_s.T
        return away_s

    def _of_groups(
        self, groups: tuple[Chain, ...], rates: Sequence[float], mode: Synchronisation
    ) -> Iterator[CopySet]:
        """Copies on some groups of sites, by what suits the one that is slowest for its share."""
        is_seldom, is_equal = not agree_every_step(mode), self.trainer.equal_shares
        num_sequences = self.workspace.job.num_sequences
        if is_equal and num_sequences % len(groups):
            return
        slowest = min(range(len(groups)), key=lambda at: rates[at])
        share = num_sequences // len(groups)
        if not is_equal:
            share = _round(num_sequences * rates[slowest] / sum(rates))
        proposed = self._candidates(groups[slowest], share, is_seldom)
        for common in list(dict.fromkeys(_common_of(one.setting) for one in proposed))[
            :_MOST_COMMON
        ]:
            count, rest = divmod(num_sequences, common[0])
            if rest or count < len(groups):
                continue
            counts = split_evenly(count, len(groups))
            if not is_equal:
                counts = _shares(count, rates)
            shares = tuple(one * common[0] for one in counts)
            key = groups, shares, is_seldom, common
            if key not in self._copies_of:
                self._copies_of[key] = self._copies(groups, shares, is_seldom, common)
            if self._copies_of[key]:
                yield from self._finished(self._copies_of[key], mode)

    def _copies(
        self,
        groups: Sequence[Chain],
        sequences: Sequence[int],
        is_seldom: bool,
        common: _Common,
    ) -> list[Candidate]:
        """The best pipeline of each group; none where one has none."""
        found = []
        for group, share in zip(groups, sequences, strict=True):
            own = self._candidates(group, share, is_seldom, common)
            if not own:
                return []
            found.append(own[0])
        return found if self.trainer.equal_shares else self._level(found)

    def _candidates(
        self, group: Chain, sequences: int, is_seldom: bool, common: _Common | None = None
    ) -> list[Candidate]:
        """Pipelines of a group that do some sequences in less than the limit, quickest first."""
        key = group, sequences, is_seldom, common
        if key not in self._known:
            self._known[key] = self._survey(group, sequences, is_seldom, common)
        return self._known[key]

    def _survey(
        self, group: Chain, sequences: int, is_seldom: bool, common: _Common | None
    ) -> list[Candidate]:
        workspace, table = self.workspace, self.table
        families = table.seldom if is_seldom else table.unchunked
        times = workspace.foreseen(table, families)
        counts, rests = np.divmod(sequences, times.schedules.together)
        bounds_s = times.at_s(group, counts)
        bounds_s[rests > 0] = np.inf
        if common is not None:
            bounds_s[[_common_of(one) != common for (one,) in families]] = np.inf
        order = np.argsort(bounds_s, kind="stable")[: np.isfinite(bounds_s).sum()]
        found = survey_families(
            *(workspace, times, (order, bounds_s[order]), SiteChains.of(self._orders(group))),
            best_s=_NEAR * self.limit_s / _SLACK,
            limits=SurveyLimits(bound=_SLACK, slack=_SLACK, near=_SLACK, kept=1.0),
            own_sequences=sequences,
        )
        return sorted(found, key=lambda one: one.estimate_s)

    def _orders(self, group: Chain) -> list[Chain]:
        """Orders of the sites of a group, one way round."""
        if len(group) <= _MOST_ORDERED:
            return [one for one in permutations(group) if one[0] <= one[-1]]
        near = near_chains(group, self._away_s, len(group))
        return [one for one in near if len(one) == len(group)]

    def _level(self, copies: Sequence[Candidate]) -> list[Candidate]:
        """The copies with microbatches given from the slowest to the quickest while that helps."""
        workspace, each = self.workspace, [together_of(one.setting) for one in copies]
        sequences = [one.setting.own_sequences for one in copies]
        times_s = [one.estimate_s for one in copies]
        for _ in range(_MOST_ROUNDS):
            order = sorted(range(len(copies)), key=times_s.__getitem__)
            taker, giver = order[0], order[-1]
            if sequences[giver] <= each[giver]:
                break
            more = sequences[taker] + each[taker]
            more_s = workspace.staged_s(copies[taker], more)
            if more_s >= times_s[giver]:
                break
            less = sequences[giver] - each[giver]
            sequences[taker], times_s[taker] = more, more_s
            sequences[giver], times_s[giver] = less, workspace.staged_s(copies[giver], less)
        return [
            one
            if own == one.setting.own_sequences
            else replace(one, setting=replace(one.setting, own_sequences=own), estimate_s=own_s)
            for one, own, own_s in zip(copies, sequences, times_s, strict=True)
        ]

    def _finished(self, copies: Sequence[Candidate], mode: Synchronisation) -> Iterator[CopySet]:
        """The copies in the order of their quickest ring, where they keep the limit."""
        slowest_s = max(one.estimate_s for one in copies)
        if isinstance(mode, DecoupledDiLoCo):  # none waits: the pace is that of all sequences
            own = [(one.setting.own_sequences, one.estimate_s) for one in copies]
            slowest_s = sum(count for count, _ in own) / sum(count / one_s for count, one_s in own)
        setting, workload = copies[0].setting, copies[0].setting.workload(self.workspace.job)
        num_bytes = _exchanged_bytes(workload, mode)
        orders = permutations(copies[1:]) if len(copies) <= _MOST_RINGS else [tuple(copies[1:])]
        rings = [(copies[0], *order) for order in orders]
        chains_of = [[one.chains[0] for one in ring] for ring in rings]
        times_s = [around_ring_s(self.workspace, setting, own, num_bytes) for own in chains_of]
        summed_s, at = min(zip(times_s, range(len(rings)), strict=True))
        ring = rings[at]
        if self.trainer.chooses_ways and len(ring) > 2:
            chains = [one.chains[0] for one in ring]
            summed_s = min(summed_s, along_tree_s(self.workspace, setting, chains, num_bytes))
        step_s = _mean_s(slowest_s, summed_s, mode, workload.num_layers)
        if step_s < _SLACK * self.limit_s:
            yield CopySet(copies=ring, synchronisation=mode, estimate_s=step_s)


def _exchanged_bytes(workload: Workload, mode: Synchronisation) -> float:
    """Bytes that would go round a ring without end, there and back."""
    return 2.0 * workload.sums_before.num_parameters[-1] * bits_on_wire(workload, mode) / 8.0


def _mean_s(step_s: float, exchange_s: float, mode: Synchronisation, num_layers: int) -> float:
    """Time of a step with its part of an exchange: further steps hide some of each fragment. [s]"""
    count = len(mode.fragments(num_layers))
    late_s = max(0.0, exchange_s / count - mode.overlap_steps * step_s)
    return max(step_s + count * late_s / mode.steps_between, exchange_s / mode.steps_between)


def _common_of(setting: BoundSetting) -> _Common:
    """Sequences of a microbatch, recomputation and schedule, equal for all copies."""
    return together_of(setting), setting.recomputation, setting.schedule


def _round(sequences: float) -> int:
    """Sequences of which the usual sizes of microbatches are parts, where there are enough."""
    size = next(size for size in (8, 4, 2, 1) if sequences >= 4 * size or size == 1)
    return max(1, round(sequences / size)) * size


def _shares(count: int, rates: Sequence[float]) -> tuple[int, ...]:
    """Shares of a count by rates, at least one each, that add up.

    Examples
    --------
    >>> _shares(10, [3.0, 1.0, 0.1])
    (6, 3, 1)
    """
    left = count - len(rates)
    ideal = [left * rate / sum(rates) for rate in rates]
    found = [1 + int(each) for each in ideal]
    order = sorted(range(len(rates)), key=lambda at: (int(ideal[at]) - ideal[at], at))
    for at in order[: count - sum(found)]:
        found[at] += 1
    return tuple(found)
