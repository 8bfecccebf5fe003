"""How links move: the declared law of a world, and one draw of it."""

import math
from dataclasses import dataclass

import numpy as np

from des.checks import require_swing

_SHORTEST_INTERVAL_S = 1e-3
"""A millisecond: far below any latency, and keeps the segments of a transfer countable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """Law of the moving links: ``B(t) = B (1 + eps)`` with uniform, independent ``eps``.

    ``|eps| <= bandwidth_fluctuation`` for bandwidths, ``<= latency_jitter`` for latencies. Every
    direction of every link is drawn on its own: once per epoch, or every ``update_interval_s``
    seconds of simulated time where that is given.
    """

    bandwidth_fluctuation: float
    latency_jitter: float
    update_interval_s: float | None = None

    def __post_init__(self) -> None:
        require_swing("dynamics", "bandwidth_fluctuation", self.bandwidth_fluctuation)
        require_swing("dynamics", "latency_jitter", self.latency_jitter)
        interval_s = self.update_interval_s
        if interval_s is not None and not _SHORTEST_INTERVAL_S <= interval_s < math.inf:
            raise ValueError(
                f"dynamics: update_interval_s must be at least {_SHORTEST_INTERVAL_S} and finite, "
                f"got {interval_s!r}"
            )

    def draw_factors(
        self, num_links: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw ``1 + eps`` for the bandwidths and the latencies, each shaped (num_links,)."""
        eps = rng.uniform(-1.0, 1.0, size=(2, num_links))
        return 1.0 + self.bandwidth_fluctuation * eps[0], 1.0 + self.latency_jitter * eps[1]


STEADY = Dynamics(bandwidth_fluctuation=0.0, latency_jitter=0.0)
"""Links that never move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """Links that are redrawn every ``law.update_interval_s`` while an iteration runs.

    Factors of any segment can be asked for in any order: they depend on the seed and the segment
    alone, so a run of any length sees the same network.
    """

    law: Dynamics
    seed: int

    def __post_init__(self) -> None:
        if self.law.update_interval_s is None:
            raise ValueError("movement: law.update_interval_s must be given in seconds, got None")
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"movement: seed must be within [0, 2**64), got {self.seed!r}")

    @property
    def interval_s(self) -> float:
        """Length of a segment. [s]"""
        assert self.law.update_interval_s is not None  # checked when constructed
        return self.law.update_interval_s

    def factors(self, segment: int, num_links: int) -> tuple[np.ndarray, np.ndarray]:
        """Bandwidth and latency factors of all links, each shaped (num_links,).

        Segment ``k`` rules from ``k * interval_s``, inclusive, to ``(k + 1) * interval_s``.
        """
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, segment]))
        return self.law.draw_factors(num_links, rng)
