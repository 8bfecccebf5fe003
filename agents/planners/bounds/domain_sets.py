"""Bounds over all sets of a few domains: what groups of them can do in a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agents.planners.bounds.count_kernels import SetJob, counts_of_sets
from agents.planners.bounds.exchanges import ExchangeBound, Taken, least_latency_s
from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.pair_links import pair_links
from agents.planners.bounds.pipeline_rules import PipelineRule, pipeline_rules, update_share
from agents.planners.bounds.set_groups import SetGroups
from agents.planners.bounds.set_kernels import Whole, least_paths
from agents.planners.bounds.set_links import SetLinks, links_of_sets


@dataclass(frozen=True, kw_only=True)
class SetLimits:
    """Limits of every set in addition to its passes and messages, (2^K,) each.

    See `counts_of_sets`.
    """

    job: SetJob
    taken: Taken
    late_s: Real
    least_s: Real
    sent_late_s: Real
    sent_longer: Real


@dataclass(frozen=True, kw_only=True)
class DomainSets:
    """All sets of the domains of a job; a set is a number whose bits are its domains."""

    figures: JobFigures

    @cached_property
    def links(self) -> SetLinks:
        """Links that lead out of each set."""
        return links_of_sets(self.figures.rate_bytes_per_s, self.figures.is_mesh)

    @property
    def is_member(self) -> npt.NDArray[np.bool_]:
        """Whether a set has a domain, (2^K, K)."""
        return self.links.is_member

    @cached_property
    def rules(self) -> tuple[PipelineRule, ...]:
        """Rules that no pipeline breaks."""
        return pipeline_rules(self.figures)

    @cached_property
    def rates(self) -> Real:
        """Rates of the domains of each set, the quickest first, (rules, 2^K, K)."""
        own = [np.where(self.is_member, rule.rates, 0.0) for rule in self.rules]
        ordered: Real = -np.sort(-np.array(own), axis=2)
        return ordered

    @cached_property
    def paths_s(self) -> Real:
        """Least messages before the stages of each set in turn, (rules, 2^K, K). [s]"""
        return np.array([least_paths(rule.hop_s, False) for rule in self.rules])

    @cached_property
    def trip_s(self) -> Real:
        """Least time of a microbatch through a set and back, (2^K,). [s]"""
        both_s = self.figures.message_s + self.figures.message_s.T
        quickest_s = (self.figures.forward_s + self.figures.input_gradient_s).min(axis=0)
        trip_s: Real = quickest_s.sum() + _at_end(least_paths(both_s, False), self.is_member)
        return trip_s

    @cached_property
    def wire_s(self) -> Real:
        """Slowest wire of the best path through a set, a message, (2^K,). [s]"""
        both_s = np.maximum(self.figures.wire_s, self.figures.wire_s.T)
        return _at_end(least_paths(both_s, True), self.is_member)

    def _num_links(self, num_groups: int) -> Whole:
        """Most links of each set into the next of some groups that take layers, (2^K,)."""
        size, counts = len(self.figures.memory_bytes), self.links.counts
        most = np.minimum(size - counts - (num_groups - 2), len(self.figures.layer_bytes))
        return np.where(most < 1, 0, counts + most - 1)

    def taken(self, exchange: ExchangeBound) -> Taken:
        """Exchanges of groups after steps, over the links of each set, (2^K,)."""
        num_sets = len(self.is_member)
        if not exchange.is_behind:
            return exchange.taken_s(self.figures, np.zeros((num_sets, 1)))
        most = max(one.num_layers for one in exchange.waited + exchange.alone)
        both = self.links
        links = both.slower_bytes_per_s if exchange.num_replicas == 2 else both.quicker_bytes_per_s
        links = links[:, :most]
        if self.figures.is_mesh:
            num_links = self._num_links(exchange.num_replicas)[:, None]
            links = np.where(np.arange(links.shape[1]) < num_links, links, 0.0)
        return exchange.taken_s(self.figures, links)

    def links_bytes_per_s(self, num_groups: int) -> Real:
        """Links that each set can have into the next of some groups, (2^K,). [bytes/s]

        Two ways to cut layers in ``P`` and ``Q`` rows have ``P + Q - 1`` overlaps at most, and
        every one is a link. Where messages take several hops all links of a set count.
        """
        if not self.figures.is_mesh:
            return self.links.sums_bytes_per_s[:, -1]
        overlaps = self._num_links(num_groups)[:, None]
        found: Real = np.take_along_axis(self.links.sums_bytes_per_s, overlaps, axis=1)[:, 0]
        return found

    def has_room(self, figures: JobFigures) -> npt.NDArray[np.bool_]:
        """Whether the memory of a set may hold the model of these figures, (2^K,)."""
        num_layers = len(figures.layer_bytes)
        held = np.where(self.is_member, figures.memory_bytes, 0.0).sum(axis=1)
        most = np.where(self.is_member, np.minimum(figures.most_layers, num_layers), 0.0)
        room: npt.NDArray[np.bool_] = (held >= figures.layer_bytes.sum()) & (
            most.sum(axis=1) >= num_layers
        )
        return room

    def limits(self, exchange: ExchangeBound | None = None) -> SetLimits:
        """Return what an exchange, or none, adds to each set."""
        figures, is_member = self.figures, self.is_member
        held, num_sets = figures if exchange is None else exchange.held(figures), len(is_member)
        late_s = np.where(is_member, figures.overhead_s, np.inf).min(axis=1)
        sent_longer, sent_late_s, nothing = np.zeros(num_sets), late_s.copy(), np.zeros(num_sets)
        alone = 1 << np.arange(len(figures.memory_bytes))
        alone_late_s = figures.overhead_s + held.update_s.sum(axis=1)
        taken = Taken(nothing, nothing, 0, 1)
        if exchange is not None:
            links = self.links_bytes_per_s(exchange.num_replicas)
            taken = self.taken(exchange)
            sent_longer = exchange.longer(figures, self.rates[0].sum(axis=1), links)
            if not exchange.is_behind:
                sent_late_s = late_s + least_latency_s(figures) / exchange.period_steps
            late_s = late_s + exchange.latency_s(figures)
            alone_late_s = alone_late_s + exchange.alone_s(figures, links[alone])
        late_s[alone] = alone_late_s
        may = self.has_room(held) & np.isfinite(self.trip_s)
        return SetLimits(
            job=self._job_of(held),
            taken=taken,
            late_s=late_s,
            least_s=np.where(may, taken.least_s, np.inf),
            sent_late_s=sent_late_s,
            sent_longer=sent_longer,
        )

    def _job_of(self, held: JobFigures) -> SetJob:
        """Return the job, with the state of its copies, for compiled code."""
        figures = self.figures
        return SetJob(
            num_microbatches=figures.num_microbatches,
            num_layers=len(figures.layer_bytes),
            works=np.array([rule.work for rule in self.rules]),
            shares=np.array([rule.share for rule in self.rules]),
            rates=self.rates,
            paths_s=self.paths_s,
            trip_s=self.trip_s,
            wire_s=self.wire_s,
            alone_s=figures.model_s,
            layer_s=figures.layer_s.min(axis=1),
            most_layers=held.most_layers,
            forward_s=float(figures.forward_s.min()),
            longer=update_share(held),
        )

    def counts(self, time_s: float, limits: SetLimits) -> Real:
        """Most microbatches of each set as one group, (2^K,); see `count_of_set`."""
        counts = np.zeros(len(self.is_member))
        counts_of_sets(
            limits.job,
            time_s,
            limits.taken.passes_s(time_s),
            limits.late_s,
            limits.least_s,
            limits.sent_late_s,
            limits.sent_longer,
            counts,
        )
        return counts

    def pipelines(self) -> Callable[[float], bool]:
        """Return whether the bound lets a pipeline over several domains end by a time."""
        limits, is_several = self.limits(), self.is_member.sum(axis=1) > 1
        most = self.figures.num_microbatches
        return lambda time_s: bool(self.counts(time_s, limits)[is_several].max(initial=0.0) >= most)

    def groups(self, exchange: ExchangeBound, *, is_checked: bool) -> Callable[[float], bool]:
        """Return whether the bound lets groups, one of several domains, do a step by a time.

        ``exchange`` is that of two or three of them, or of four as the least of all others.
        """
        limits = self.limits(exchange)
        pair = pair_links(self.figures, exchange, limits.late_s, limits.sent_late_s)
        groups = SetGroups(
            figures=exchange.held(self.figures),
            num_groups=exchange.num_replicas,
            job=limits.job,
            pair=pair if self.figures.is_mesh else None,
            is_checked=is_checked,
        )
        return lambda time_s: groups.hold(
            time_s, self.counts(time_s, limits), limits.taken.passes_s(time_s)
        )


def _at_end(paths: Real, is_member: npt.NDArray[np.bool_]) -> Real:
    """Figure of the best path through all domains of each set, (2^K,); 0 for none."""
    counts = is_member.sum(axis=1)
    found: Real = np.take_along_axis(paths, np.maximum(counts - 1, 0)[:, None], axis=1)[:, 0]
    return np.where(counts == 0, 0.0, found)
