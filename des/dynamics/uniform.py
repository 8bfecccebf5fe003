"""Links within a band around their base figures, redrawn per epoch or at a fixed interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from des.base.checks import require_swing
from des.base.lazy import lazy_imports
from des.dynamics.correlation import require_correlation, share_common_factor
from des.dynamics.grid import GridPath, require_interval
from des.dynamics.law import Extremes, LinkFigures, Path

with lazy_imports(__name__):
    from scipy import special

    from des.dynamics import uniform_course


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLaw:
    """Law of the moving links: ``B(t) = B (1 + eps)`` with uniform ``eps``.

    ``|eps| <= bandwidth_fluctuation`` for bandwidths, ``<= latency_jitter`` for latencies. Every
    direction of every link is drawn on its own: once per epoch, or every ``update_interval_s``
    seconds of simulated time where that is given. With ``correlation`` the normal numbers behind
    the ``eps`` of any two links correlate that much (a Gaussian copula).
    """

    bandwidth_fluctuation: float
    latency_jitter: float
    update_interval_s: float | None = None
    correlation: float = 0.0

    def __post_init__(self) -> None:
        require_swing("dynamics", "bandwidth_fluctuation", self.bandwidth_fluctuation)
        require_swing("dynamics", "latency_jitter", self.latency_jitter)
        if self.update_interval_s is not None:
            require_interval("dynamics", "update_interval_s", self.update_interval_s)
        require_correlation("dynamics", self.correlation)

    def factors(self, num_links: int, seed: int, segment: int) -> np.ndarray:
        """``1 + eps`` of the bandwidths (first row) and the latencies, shaped (2, num_links).

        A function of (seed, link, segment) alone; links that are drawn once per epoch have the
        factors of segment 0. With correlation, a function of (seed, segment) and all links.
        """
        bandwidth, latency = float(self.bandwidth_fluctuation), float(self.latency_jitter)
        if not self.correlation:
            return uniform_course.uniform_factors_of_links(
                seed, num_links, segment, bandwidth, latency
            )
        rng = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, segment]))
        eps = 2.0 * special.ndtr(share_common_factor(rng, (2, num_links), self.correlation)) - 1.0
        return np.stack([1.0 + bandwidth * eps[0], 1.0 + latency * eps[1]])

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors, the same on every link."""
        bandwidth, latency = self.bandwidth_fluctuation, self.latency_jitter
        return Extremes(1.0 - bandwidth, 1.0 + bandwidth, 1.0 - latency, 1.0 + latency)

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw a course of the links; each segment has random numbers of its own."""
        assert self.update_interval_s is not None  # checked by the movement
        num_links = len(links)
        return GridPath(
            self.update_interval_s, lambda segment: self.factors(num_links, seed, segment)
        )


STEADY = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0)
"""Links that never move."""
