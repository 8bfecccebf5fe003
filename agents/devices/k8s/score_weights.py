"""Weights of the parts of a node's score."""

import math
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWeights:
    """Weights of the parts of a score; their sum does not matter."""

    topology: float = 40.0
    numa: float = 30.0
    balance: float = 20.0
    preference: float = 10.0

    def __post_init__(self) -> None:
        for name, value in zip(self.__slots__, astuple(self), strict=True):
            if not 0 <= value < math.inf:
                raise ValueError(
                    f"score weights: {name} must be finite and not negative, got {value!r}"
                )
        if not 0 < math.fsum(astuple(self)) < math.inf:
            raise ValueError("score weights: at least one must be positive, got zeros")
