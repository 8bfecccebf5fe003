"""Links whose bandwidth wanders about its mean and comes back to it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from des.base.checks import require_positive
from des.dynamics.correlation import require_correlation, share_common_factor
from des.dynamics.grid import GridPath, require_interval
from des.dynamics.law import Extremes, LinkFigures, Path

_BLOCK_STEPS = 64
_FORGOTTEN_AFTER = 40.0
"""Relaxation times after which the past weighs e-40: less than a float can tell from nothing."""
_MOST_BLOCKS = 256
_LARGEST_SIGMA = 2.0
"""Beyond, the mean rests on rare bursts of hundreds of times the median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrnsteinUhlenbeck:
    """Law of links whose log bandwidth, and log latency, is an Ornstein-Uhlenbeck process.

    The factor is ``exp(s z - s^2 / 2)``, with mean 1. ``z`` has the stationary law N(0, 1) from
    the start on and is sampled every ``interval_s`` by the exact transition ``z' = a z +
    sqrt(1 - a^2) N(0, 1)``, ``a = exp(-interval_s / relaxation_s)``. It is held between samples.

    Attributes
    ----------
    bandwidth_sigma, latency_sigma
        ``s``, about the relative standard deviation of the factor.
    relaxation_s
        Time after which the correlation with the present has fallen to 1/e.
    correlation
        Of the ``z`` of any two links at the same time; 0 for independent links.
    most_sigmas
        ``z`` is cut there, so that a link has a best and a worst. At 4 that moves the mean by less
        than 1e-5 for ``s`` up to 0.3.

    Notes
    -----
    A modelling choice: no published fit of bandwidth between data centres by this process was
    found. Exact transition: D. T. Gillespie, "Exact numerical simulation of the
    Ornstein-Uhlenbeck process and its integral", Phys. Rev. E 54(2), 1996.
    """

    bandwidth_sigma: float
    latency_sigma: float = 0.0
    relaxation_s: float
    interval_s: float
    correlation: float = 0.0
    most_sigmas: float = 4.0

    def __post_init__(self) -> None:
        for field in ("bandwidth_sigma", "latency_sigma"):
            value = getattr(self, field)
            if not 0 <= value <= _LARGEST_SIGMA:
                raise ValueError(
                    f"dynamics: {field} must be from 0 to {_LARGEST_SIGMA}, got {value!r}"
                )
        require_positive("dynamics", "relaxation_s", self.relaxation_s)
        require_interval("dynamics", "interval_s", self.interval_s)
        require_correlation("dynamics", self.correlation)
        require_positive("dynamics", "most_sigmas", self.most_sigmas)

    def check_links(self, links: Sequence[LinkFigures]) -> None:
        """Any links will do."""

    def extremes(self, link: LinkFigures) -> Extremes:
        """Bounds of the factors, the same on every link."""
        ends = np.array([-self.most_sigmas, self.most_sigmas])
        bandwidth, latency = self.factors(np.stack([ends, ends])).tolist()
        return Extremes(*bandwidth, *latency)

    def path(self, links: Sequence[LinkFigures], seed: int) -> Path:
        """Draw a course of the links."""
        course = _Course(self, len(links), seed)
        return GridPath(self.interval_s, lambda segment: self.factors(course.at(segment)))

    def factors(self, z: np.ndarray) -> np.ndarray:
        """Factors on bandwidths (first row) and latencies (second), given ``z`` of both."""
        sigma = np.array([[self.bandwidth_sigma], [self.latency_sigma]])
        held = np.clip(z, -self.most_sigmas, self.most_sigmas)
        factors: np.ndarray = np.exp(sigma * held - sigma**2 / 2)
        return factors


class _Course:
    """``z`` of all links by step, in blocks of steps, each with random numbers of its own.

    A block starts with what the blocks before it leave. As they are forgotten, only the last of
    them count, and any block can be computed at once.
    """

    def __init__(self, law: OrnsteinUhlenbeck, num_links: int, seed: int) -> None:
        self._shape = (2, num_links)
        self._correlation = law.correlation
        self._seed = seed
        steps = law.interval_s / law.relaxation_s
        self._decay = math.exp(-steps)
        self._scale = math.sqrt(-math.expm1(-2.0 * steps))
        self._block_decay = math.exp(-_BLOCK_STEPS * steps)
        self._weights = np.exp(-steps * np.arange(_BLOCK_STEPS - 1, -1, -1.0))
        self._memory = math.ceil(_FORGOTTEN_AFTER / (_BLOCK_STEPS * steps))
        self._left: dict[int, np.ndarray] = {}
        self._blocks: dict[int, list[np.ndarray]] = {}

    def at(self, step: int) -> np.ndarray:
        """``z`` of the bandwidths and latencies at a step, shaped (2, num_links)."""
        block, place = divmod(step, _BLOCK_STEPS)
        if block not in self._blocks:
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            self._blocks[block] = self._run(block)
        return self._blocks[block][place]

    def _run(self, block: int) -> list[np.ndarray]:
        z = self._start_of(block)
        course = [z]
        for noise in self._noise(block)[:-1]:
            z = self._decay * z + noise
            course.append(z)
        return course

    def _start_of(self, block: int) -> np.ndarray:
        first = max(block - self._memory, 0)
        z = np.zeros(self._shape) if first else self._normal(0, (1, *self._shape))[0]
        for earlier in range(first, block):
            if earlier not in self._left:
                noise = self._noise(earlier)
                self._left[earlier] = np.einsum("s,sql->ql", self._weights, noise)
            z = self._block_decay * z + self._left[earlier]
        return z

    def _noise(self, block: int) -> np.ndarray:
        return self._scale * self._normal(1 + block, (_BLOCK_STEPS, *self._shape))

    def _normal(self, stream: int, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.Generator(np.random.Philox(key=self._seed, counter=[0, 0, 0, stream]))
        return share_common_factor(rng, shape, self._correlation)
