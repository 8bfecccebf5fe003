"""Bounds on groups of many domains, of which not all sets are looked at."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from agents.planners.bounds.alone_limits import AloneLimits
from agents.planners.bounds.exchanges import ExchangeBound, Taken, least_latency_s
from agents.planners.bounds.job_figures import JobFigures, Real
from agents.planners.bounds.many_domains import ManyDomains

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class ManyGroups:
    """Groups of a job's domains, one of several domains, that exchange as replicas do.

    ``exchange`` is that of the fewest groups, ``most_groups`` the most that there may be.
    """

    domains: ManyDomains
    exchange: ExchangeBound
    most_groups: int

    @property
    def figures(self) -> JobFigures:
        """Figures of the job."""
        return self.domains.figures

    def hold(self, time_s: float) -> bool:
        """Whether the bound lets the groups do all microbatches by a time."""
        needed = self.figures.num_microbatches * (1.0 - _ROUNDING)
        if self.least_s > time_s:
            return False
        passes_s = float(self.taken.passes_s(time_s)[0])
        return (
            self._count_of_members(time_s, passes_s) >= needed
            and self._count_by_positions(passes_s) >= needed
            and self._count_by_bytes(time_s) >= needed
        )

    def links_bytes_per_s(self, num_groups: int) -> float:
        """Links that all groups together can send over, each to one other. [bytes/s]

        Two ways to cut layers in ``P`` and ``Q`` rows have ``P + Q - 1`` overlaps at most, so all
        ``R`` groups of ``K`` domains have ``R (K - R + 1)``, where all send to the largest; where
        messages take several hops all links count.
        """
        rate = self.figures.rate_bytes_per_s
        ordered = -np.sort(-rate, axis=None)
        if self.figures.is_mesh:
            ordered = ordered[: num_groups * (len(rate) - num_groups + 1)]
        return float(ordered.sum())

    @cached_property
    def least_s(self) -> float:
        """Least time of a step in which all groups exchange. [s]"""
        return float(self.taken.least_s[0])

    @cached_property
    def taken(self) -> Taken:
        """Exchanges after steps of the group that has no more links than all in the mean, (1,).

        It sends all bytes to another one, as two copies do at least.
        """
        count = self.exchange.num_replicas
        part = np.array([[self.links_bytes_per_s(count) / count]])
        return replace(self.exchange, num_replicas=2).taken_s(self.figures, part)

    @cached_property
    def most_links_bytes_per_s(self) -> float:
        """Links of the number of groups that have most of them. [bytes/s]"""
        middle = (len(self.figures.memory_bytes) + 1) // 2
        count = min(max(self.exchange.num_replicas, middle), self.most_groups)
        return self.links_bytes_per_s(count)

    @cached_property
    def alone(self) -> AloneLimits:
        """Limits of groups of one domain."""
        rate = self.figures.rate_bytes_per_s
        both = np.maximum(rate, rate.T) if self.figures.is_mesh else rate
        return AloneLimits.of(self.figures, self.exchange, rate.sum(axis=1), both.sum(axis=1))

    def _count_of_members(self, time_s: float, passes_s: float) -> float:
        """Count what each domain does alone, in whole microbatches, or as a member of a group.

        A member does its part of the model in as many microbatches as its best border carries.
        """
        figures, trip_s, wire_s = self.figures, self.domains.trip_s, self.domains.wire_s
        left_s = passes_s - figures.overhead_s
        rate, num_bytes = figures.rate_bytes_per_s, self.exchange.sent_bytes
        rate = np.minimum(rate.sum(axis=0), rate.sum(axis=1))
        period_s = time_s * self.exchange.period_steps
        with np.errstate(divide="ignore", invalid="ignore"):
            sent = np.where(num_bytes > 0.0, period_s * rate / num_bytes, 1.0)
            more = (left_s[:, None] - trip_s) / wire_s
        more = np.where(trip_s > left_s[:, None], -1.0, np.where(np.isnan(more), np.inf, more))
        carried = np.floor(1.0 + more.max(axis=1) + _ROUNDING)
        held = self.exchange.held(figures)
        part = np.clip(np.minimum(sent, held.most_layers / len(held.layer_bytes)), 0.0, 1.0)
        work = left_s * figures.rates / figures.reference_s.sum()
        with np.errstate(invalid="ignore"):
            shared = np.nan_to_num(np.clip(np.minimum(work, carried * part), 0.0, None))
        if not shared.any():
            return 0.0
        return float(np.maximum(self.alone.counts(figures, time_s), shared).sum())

    @cached_property
    def positions(self) -> tuple[Real, Real, Real]:
        """Rates of the domains, quickest first, and parts of the time and what their places cost.

        Each place of a pipeline has one domain a group at most.
        """
        figures, rule = self.figures, self.domains.rules[0]
        place = np.arange(len(rule.rates)) // self.most_groups
        apart = np.where(np.eye(len(place), dtype=np.bool_), np.inf, rule.hop_s)
        hops_s = np.sort(apart.min(axis=1))
        share = min(rule.share, figures.num_microbatches / len(place))
        kept = 1.0 - share / figures.num_microbatches
        cost_s = np.zeros(len(place))
        for index in range(1, len(place)):
            cost_s[index] = kept * cost_s[index - 1] + hops_s[index - 1]
        parts: Real = np.power(kept, place, dtype=np.float64)
        return -np.sort(-rule.rates), parts, cost_s[place]

    def _count_by_positions(self, time_s: float) -> float:
        """Count what is left behind the messages and the first passes of earlier stages."""
        rates, kept, cost_s = self.positions
        figures, exchange = self.figures, self.exchange
        left_s = time_s - figures.overhead_s.min() - exchange.latency_s(figures)
        worked_s = np.maximum(kept * left_s - cost_s, 0.0)
        return float((rates * worked_s).sum() / figures.reference_s.sum())

    def _count_by_bytes(self, time_s: float) -> float:
        """Count what is left of the work of all groups after their exchanges."""
        figures, exchange = self.figures, self.exchange
        if exchange.is_behind:
            return np.inf
        left_s = time_s - figures.overhead_s.min()
        left_s -= least_latency_s(figures) / exchange.period_steps
        work, least = figures.reference_s.sum(), figures.rates.min()
        others = exchange.num_replicas - 1
        roots = others * np.sqrt(least) + np.sqrt(figures.rates.sum() - others * least)
        sent = exchange.sent_share(figures) * roots**2 / self.most_links_bytes_per_s
        hidden = self.most_groups * exchange.hidden_share(figures)
        worked = left_s * np.array([figures.rates.sum(), self.most_groups * least]) / work
        return float(np.max(worked - (sent, 0.0) + hidden))
