"""Sets of domains that links of some rate or more join, and copies in them that exchange."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

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

    @property
    def between_bytes_per_s(self) -> Real:
        """Rate of the first set that has both of two domains, 0 where there is none, (K, K)."""
        pairs = self.is_member[:, :, np.newaxis] & self.is_member[:, np.newaxis, :]
        found: Real = np.where(pairs, self.rate_bytes_per_s[:, np.newaxis, np.newaxis], 0.0)
        found = found.max(axis=0, initial=0.0)
        np.fill_diagonal(found, 0.0)
        return found

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
    """Replicas of one domain each whose exchange is all over links of a rate, (N, K).

    ``rate_bytes_per_s`` is the quickest link of each domain to the others of a row, 0 of those that
    are not among them; ``slowest_bytes_per_s`` (N, K) that of all of them. What a copy sends takes
    the slowest link some time, in steps that nothing shortens.
    """

    figures: JobFigures
    exchange: ExchangeBound
    rate_bytes_per_s: Real
    slowest_bytes_per_s: Real

    @classmethod
    def of_two(cls, figures: JobFigures, exchange: ExchangeBound, sets: LinkedSets) -> Self:
        """Two copies: a row for each, with what the second one can do."""
        rate = figures.rate_bytes_per_s
        if figures.is_mesh:
            sent, slower = rate.T, np.minimum(rate, rate.T)
        else:
            sent = slower = sets.between_bytes_per_s
        return cls(
            figures=figures, exchange=exchange, rate_bytes_per_s=sent, slowest_bytes_per_s=slower
        )

    @classmethod
    def of_many(cls, figures: JobFigures, exchange: ExchangeBound, sets: LinkedSets) -> Self:
        """Three copies or more: a row for each set that links of some rate join."""
        is_member = sets.is_member
        towards = np.where(is_member[:, np.newaxis, :], figures.rate_bytes_per_s, 0.0)
        slowest = np.where(is_member, sets.rate_bytes_per_s[:, np.newaxis], 0.0)
        return cls(
            figures=figures,
            exchange=exchange,
            rate_bytes_per_s=np.where(is_member, towards.max(axis=2), 0.0),
            slowest_bytes_per_s=slowest,
        )

    def hold_two(self, time_s: float) -> bool:
        """Whether two copies may do all microbatches by a time."""
        counts = self._counts(time_s)
        both = np.where(np.minimum(counts, counts.T) >= 1.0, counts + counts.T, 0.0)
        return bool((both >= self.figures.num_microbatches).any())

    def hold_many(self, time_s: float) -> bool:
        """Whether three or more copies may do all microbatches by a time."""
        counts = self._counts(time_s)
        enough = counts.sum(axis=1) >= self.figures.num_microbatches
        return bool((enough & ((counts >= 1.0).sum(axis=1) > 2)).any())

    def _counts(self, time_s: float) -> Real:
        """Most microbatches of each domain in each row, (N, K)."""
        counts = self._limits.counts(self.figures, time_s)
        if not self.exchange.is_behind:
            counts = np.minimum(counts, self._counts_beside(time_s))
        found: Real = np.where(self.slowest_bytes_per_s > 0.0, counts, 0.0)
        return found

    @cached_property
    def _limits(self) -> AloneLimits:
        """Limits of each domain in each row, (N, K)."""
        return AloneLimits.of(
            self.figures, self.exchange, self.rate_bytes_per_s, self.slowest_bytes_per_s
        )

    def _counts_beside(self, time_s: float) -> Real:
        """Most microbatches where one step of a period is as long as the exchange, (N, K).

        That begins behind the first forward pass at least.
        """
        figures, period = self.figures, self.exchange.period_steps
        with np.errstate(divide="ignore"):
            taken_s = self.exchange.sent_bytes / self.slowest_bytes_per_s
        taken_s += figures.forward_s.sum(axis=1).min()
        if period == 1:
            return np.where(taken_s <= time_s, float(figures.num_microbatches), 0.0)
        left_s = (period * time_s - taken_s) / (period - 1) - self._limits.update_s
        counts: Real = np.floor(left_s / figures.model_s * (1.0 + 1e-9) + 1e-9)
        return counts
