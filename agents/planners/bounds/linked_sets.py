"""Sets of domains that links of some rate or more join, and copies in them that exchange."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.planners.bounds.alone_limits import AloneLimits
from agents.planners.bounds.exchanges import ExchangeBound
from agents.planners.bounds.job_figures import JobFigures, Real


class LinkedSets(NamedTuple):
    """Every set of several domains that links of a rate or more join, and no others.

    ``is_member`` (N, K); ``rate_bytes_per_s`` (N,) is the largest such rate, the largest first.
    Copies that exchange by rings or trees are in one of them, and the slowest link that they send
    over is no quicker than its rate: single linkage, the merges of a spanning tree of quickest
    links. Of two ways between two domains the quicker one counts.
    """

    is_member: npt.NDArray[np.bool_]
    rate_bytes_per_s: Real

    @classmethod
    def of(cls, figures: JobFigures) -> "LinkedSets":
        """Merge the sets with the quickest link between them, until no link is left."""
        rate = np.maximum(figures.rate_bytes_per_s, figures.rate_bytes_per_s.T)
        size = len(rate)
        between = rate.copy()
        np.fill_diagonal(between, 0.0)
        members, found, rates = np.eye(size, dtype=np.bool_), [], []
        while len(members) > 1:
            one, other = divmod(int(between.argmax()), len(members))
            if between[one, other] <= 0.0:
                break
            rates.append(float(between[one, other]))
            members[one] |= members[other]
            found.append(members[one].copy())
            between[one] = between[:, one] = np.maximum(between[one], between[other])
            between[one, one] = 0.0
            members = np.delete(members, other, axis=0)
            between = np.delete(np.delete(between, other, axis=0), other, axis=1)
        return cls(np.array(found, dtype=np.bool_).reshape(-1, size), np.array(rates))


@dataclass(frozen=True, kw_only=True)
class LinkedCopies:
    """Any number of replicas of one domain each, whose exchange all of them wait for.

    The slowest link that they send over takes what a copy sends, in steps that nothing shortens.
    """

    figures: JobFigures
    exchange: ExchangeBound
    sets: LinkedSets

    def hold(self, time_s: float) -> bool:
        """Whether two or more copies may do all microbatches by a time."""
        counts = self._limits.counts(self.figures, time_s)
        if not self.exchange.is_behind:
            counts = np.minimum(counts, self._counts_beside(time_s))
        counts = np.where(self.sets.is_member, counts, 0.0)
        enough = counts.sum(axis=1) >= self.figures.num_microbatches
        return bool((enough & ((counts >= 1.0).sum(axis=1) > 1)).any())

    @cached_property
    def _limits(self) -> AloneLimits:
        """Limits of each domain in each set, (N, K)."""
        figures, (is_member, rate) = self.figures, self.sets
        if self.exchange.is_behind:
            rates = np.broadcast_to(rate[:, np.newaxis], is_member.shape)
        else:
            towards = np.where(is_member[:, np.newaxis, :], figures.rate_bytes_per_s, 0.0)
            rates = towards.max(axis=2)
        return AloneLimits.of(figures, self.exchange, rates)

    def _counts_beside(self, time_s: float) -> Real:
        """Most microbatches where one step of a period is as long as the exchange, (N, K).

        That begins behind the first forward pass at least.
        """
        figures, period = self.figures, self.exchange.period_steps
        taken_s = self.exchange.layer_bytes.sum() / self.sets.rate_bytes_per_s
        taken_s += figures.forward_s.sum(axis=1).min()
        if period == 1:
            most = np.where(taken_s <= time_s, figures.num_microbatches, 0.0)
            return np.broadcast_to(most[:, np.newaxis], self.sets.is_member.shape)
        left_s = (period * time_s - taken_s) / (period - 1)
        counts: Real = np.floor(left_s[:, np.newaxis] / figures.model_s * (1.0 + 1e-9) + 1e-9)
        return counts
