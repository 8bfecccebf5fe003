"""Weights of the parts of a node's score."""

import math
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """Weights of the parts of a score; their sum does not matter.

    ``same_numa_bonus`` and ``cross_numa_penalty`` are points added to the 100 of the parts: for
    GPUs on one NUMA node, and on several.
    """

    topology: float = 40.0
    numa: float = 30.0
    balance: float = 20.0
    preference: float = 10.0
    latency: float = 0.0
    same_numa_bonus: float = 0.0
    cross_numa_penalty: float = 0.0

    @property
    def parts(self) -> tuple[float, ...]:
        """Weights of topology, NUMA, balance, preference and latency, in this order."""
        return self.topology, self.numa, self.balance, self.preference, self.latency

    def __post_init__(self) -> None:
        for name, value in zip(self.__slots__, astuple(self), strict=True):
            if not 0 <= value < math.inf:
                raise ValueError(
                    f"score weights: {name} must be finite and not negative, got {value!r}"
                )
        if not 0 < math.fsum(self.parts) < math.inf:
            raise ValueError("score weights: at least one must be positive, got zeros")
