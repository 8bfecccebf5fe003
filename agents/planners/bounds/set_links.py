"""Links that lead out of every set of a few domains."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from agents.planners.bounds.set_kernels import Real, Whole


@dataclass(frozen=True, kw_only=True)
class SetLinks:
    """Rates of links from row to column, (K, K), and what leads out of each of the 2^K sets."""

    rate_bytes_per_s: Real
    is_mesh: bool

    @cached_property
    def is_member(self) -> npt.NDArray[np.bool_]:
        """Whether a set has a domain, (2^K, K)."""
        size = len(self.rate_bytes_per_s)
        members: npt.NDArray[np.bool_] = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 > 0
        return members

    @cached_property
    def counts(self) -> Whole:
        """Domains of each set, (2^K,)."""
        found: Whole = self.is_member.sum(axis=1)
        return found

    @cached_property
    def sums_bytes_per_s(self) -> Real:
        """Sums of the quickest links out of each set, of a number of them, (2^K, K^2 + 1)."""
        ordered = self._sent
        sums = np.zeros((len(ordered), ordered.shape[1] + 1))
        np.cumsum(ordered, axis=1, out=sums[:, 1:])
        return sums

    @cached_property
    def slower_bytes_per_s(self) -> Real:
        """Links out of each set, the quickest first, of two ways the slower one, (2^K, K^2)."""
        rate = self.rate_bytes_per_s
        return self._leaving(np.minimum(rate, rate.T)) if self._has_two_ways else self._sent

    @cached_property
    def quicker_bytes_per_s(self) -> Real:
        """Links out of each set, the quickest first, of two ways the quicker one, (2^K, K^2)."""
        rate = self.rate_bytes_per_s
        return self._leaving(np.maximum(rate, rate.T)) if self._has_two_ways else self._sent

    @cached_property
    def _has_two_ways(self) -> bool:
        """Whether messages go there and back over the same pairs, at rates that differ."""
        return self.is_mesh and not np.array_equal(self.rate_bytes_per_s, self.rate_bytes_per_s.T)

    @cached_property
    def _sent(self) -> Real:
        """Links out of each set, the quickest first, (2^K, K^2)."""
        return self._leaving(self.rate_bytes_per_s)

    def _leaving(self, rate_bytes_per_s: Real) -> Real:
        """Rates out of each set, the quickest first; where messages take several hops, of all."""
        is_member = self.is_member
        outside = ~is_member if self.is_mesh else np.ones_like(is_member)
        is_leaving = is_member[:, :, None] & outside[:, None, :]
        leaving = np.where(is_leaving, rate_bytes_per_s, 0.0).reshape(len(is_member), -1)
        ordered: Real = -np.sort(-leaving, axis=1)
        return ordered


def links_of_sets(rate_bytes_per_s: Real, is_mesh: bool) -> SetLinks:
    """Return the links of a network, once for all sizes of microbatches."""
    return _links_of(rate_bytes_per_s.tobytes(), len(rate_bytes_per_s), is_mesh)


@lru_cache(maxsize=4)
def _links_of(rates: bytes, size: int, is_mesh: bool) -> SetLinks:
    return SetLinks(rate_bytes_per_s=np.frombuffer(rates).reshape(size, size), is_mesh=is_mesh)
