"""Law of the length of stays: a mixture of two log-normals, and its fit."""

import math
from dataclasses import asdict, astuple, dataclass
from typing import Self

import numpy as np

from des.base.checks import require_positive
from des.dynamics.site_course import Stays

_LEAST_SIGMA = 0.25
"""Least width of a part: lengths in whole ticks would else be a part each."""
_ROUNDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StayLaw:
    """Lengths of stays: with ``weight`` of the first log-normal, else of the second.

    ``median_s`` and ``sigma`` are those of each; ``sigma`` is of the logarithm.
    """

    weight: float
    median_s: float
    sigma: float
    other_median_s: float
    other_sigma: float

    def __post_init__(self) -> None:
        for name in ("median_s", "sigma", "other_median_s", "other_sigma"):
            require_positive("stay law", name, getattr(self, name))
        if not 0 <= self.weight <= 1:
            raise ValueError(f"stay law: weight must be from 0 to 1, got {self.weight!r}")

    @property
    def figures(self) -> tuple[float, ...]:
        """All figures in a row, as kernels take them."""
        return astuple(self)

    @property
    def mean_s(self) -> float:
        """Mean length. [s]"""
        first = self.median_s * math.exp(self.sigma**2 / 2)
        other = self.other_median_s * math.exp(self.other_sigma**2 / 2)
        return self.weight * first + (1 - self.weight) * other

    @classmethod
    def of_mean(cls, mean_s: float) -> Self:
        """Make stays of a mean length that are as heavy-tailed as those up in the traces of 2023.

        Examples
        --------
        >>> round(StayLaw.of_mean(3600.0).mean_s, 6)
        3600.0
        """
        require_positive("stay law", "mean_s", mean_s)
        usual = USUAL_STAYS_UP
        factor = mean_s / usual.mean_s
        medians_s = {name: factor * getattr(usual, name) for name in ("median_s", "other_median_s")}
        return cls(**asdict(usual) | medians_s)

    @classmethod
    def fitted(cls, lengths_s: Stays) -> Self:
        """Fit to lengths by expectation and maximisation, from their lower and upper half.

        Raises
        ------
        ValueError
            If there are fewer than 4 lengths.
        """
        if len(lengths_s) < 4:
            raise ValueError(f"stay law: lengths_s must be at least 4, got {len(lengths_s)}")
        logs = np.sort(np.log(lengths_s))
        belongs = (np.arange(len(logs)) < len(logs) / 2) * 0.8 + 0.1
        for _ in range(_ROUNDS):
            parts = []
            for share in (belongs, 1 - belongs):
                mean = float(np.average(logs, weights=share))
                sigma = math.sqrt(float(np.average((logs - mean) ** 2, weights=share)))
                parts.append((float(share.mean()), mean, max(sigma, _LEAST_SIGMA)))
            first, other = (
                weight / sigma * np.exp(-(((logs - mean) / sigma) ** 2) / 2)
                for weight, mean, sigma in parts
            )
            belongs = np.clip(first / np.maximum(first + other, 1e-300), 1e-9, 1 - 1e-9)
        (weight, mean, sigma), (_, other_mean, other_sigma) = parts
        return cls(
            weight=weight,
            median_s=math.exp(mean),
            sigma=sigma,
            other_median_s=math.exp(other_mean),
            other_sigma=other_sigma,
        )


USUAL_STAYS_UP = StayLaw(
    weight=0.55, median_s=900.0, sigma=0.6, other_median_s=7200.0, other_sigma=1.4
)
"""Stays up like those that were counted in the traces of 2023."""
