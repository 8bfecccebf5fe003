"""History known to a scheduler: link figures and domain loads up to now."""

from dataclasses import dataclass

import numpy as np

from des import Topology
from des.compiled.many.layout import Flags, Real

LEAST_RATIO = 1e-3
"""A link or domain that is gone, or nearly so, counts as one at this share of its base figure."""

CONGESTED_BELOW = 0.5
"""Share of the base bandwidth below which a link is congested."""

CHANGED_BY = 0.01
"""Least step of a log ratio from one epoch to the next that is a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Figures of links, shaped (K, K) from row to column, or of domains, shaped (K,).

    Ratios are those of bandwidth, or speed, to the base figure. Where there is no link at base
    figures, as on the diagonal, all are 0.

    Attributes
    ----------
    log_ratio
        Natural logarithm of the present ratio, `LEAST_RATIO` at least.
    mean, variance
        Of the log ratios of all epochs up to now.
    since_change
        Epochs since the last one that differed from the one before it; counted from the first
        epoch where none did. 0 in the epoch of a change. [epochs]
    congested_share
        Share of the epochs whose ratio was below `CONGESTED_BELOW`.
    dwell
        Epochs up to now over stretches without a change, so their mean length so far. [epochs]
    lag_one
        Correlation of log ratios with those one epoch later, within [-1, 1]: 0 in the first epoch,
        1 of what has never moved.
    """

    log_ratio: Real
    mean: Real
    variance: Real
    since_change: Real
    congested_share: Real
    dwell: Real
    lag_one: Real


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All that `NetworkHistory` knows after an epoch."""

    epoch: int
    links: Past
    domains: Past


class NetworkHistory:
    """Running figures of a network, a fixed amount of work an epoch: O(K^2).

    Parameters
    ----------
    base
        The network at base figures.
    """

    def __init__(self, base: Topology) -> None:
        self._base = base
        self._links = _Running(*_bandwidths(base))
        self._domains = _Running(_speeds(base), np.ones(base.num_domains, dtype=np.bool_))
        self._num_epochs = 0

    def observe(self, topology: Topology, epoch: int) -> Memory:
        """Take in the network as an epoch finds it; returns what is known now.

        Raises
        ------
        ValueError
            If the epoch is not the next one, counted from 0, or the network has other domains.
        """
        if epoch != self._num_epochs:
            raise ValueError(
                f"network history: epoch must be {self._num_epochs}, the next one, got {epoch!r}"
            )
        if topology.index_of != self._base.index_of:
            raise ValueError(
                f"network history: topology must have the domains {', '.join(self._base.index_of)}"
                f", got {', '.join(topology.index_of)}"
            )
        self._num_epochs += 1
        return Memory(
            epoch=epoch,
            links=self._links.observe(_bandwidths(topology)[0]),
            domains=self._domains.observe(_speeds(topology)),
        )


class _Running:
    """Sums over epochs, entry by entry of arrays of one shape."""

    def __init__(self, base: Real, is_there: Flags) -> None:
        self._base, self._is_there = np.where(is_there, base, 1.0), is_there
        self._count = 0
        self._first, self._last = np.zeros_like(base), np.zeros_like(base)
        self._sum, self._squares, self._products = np.zeros((3, *base.shape))
        self._since_change, self._num_changes = np.zeros((2, *base.shape))
        self._num_congested = np.zeros_like(base)

    def observe(self, figures: Real) -> Past:
        """Add an epoch."""
        ratio = np.where(self._is_there, figures / self._base, 1.0)
        now = np.log(np.maximum(ratio, LEAST_RATIO))
        if self._count == 0:
            self._first = now
        else:
            has_changed = np.abs(now - self._last) > CHANGED_BY
            self._num_changes += has_changed
            self._since_change = np.where(has_changed, 0.0, self._since_change + 1.0)
            self._products += (now - self._first) * (self._last - self._first)
        self._count += 1
        self._sum += now - self._first  # from the first one on, so that little cancels
        self._squares += (now - self._first) ** 2
        self._num_congested += ratio < CONGESTED_BELOW
        self._last = now
        count, mean = self._count, self._sum / self._count
        spread = np.maximum(self._squares - count * mean**2, 0.0)
        there = self._is_there.astype(np.float64)
        return Past(
            log_ratio=now,
            mean=self._first + mean,
            variance=spread / count,
            since_change=self._since_change * there,
            congested_share=self._num_congested / count,
            dwell=count / (1.0 + self._num_changes) * there,
            lag_one=self._lag_one(mean, spread) * there,
        )

    def _lag_one(self, mean: Real, spread: Real) -> Real:
        """Sum of products of neighbours about the mean over the sum of squares about it."""
        count = self._count
        if count == 1:
            return np.zeros_like(mean)
        both = 2.0 * self._sum - (self._last - self._first)  # those that come first, and second
        about_mean = self._products - mean * both + (count - 1) * mean**2
        has_moved = self._num_changes > 0
        lag_one: Real = np.where(has_moved, about_mean / np.where(has_moved, spread, 1.0), 1.0)
        return np.clip(lag_one, -1.0, 1.0)


def _bandwidths(topology: Topology) -> tuple[Real, Flags]:
    """Bandwidths from row to column, 0 where no link is [bytes/s], and where one is, (K, K)."""
    bandwidth = np.zeros((topology.num_domains, topology.num_domains))
    for ends, index in topology.link_index.items():
        bandwidth[ends] = topology.links[index].bandwidth_bytes_per_s
    return bandwidth, bandwidth > 0.0


def _speeds(topology: Topology) -> Real:
    return np.array([domain.attainable_flops_per_s for domain in topology.domains])
