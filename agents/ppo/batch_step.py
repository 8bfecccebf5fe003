"""A batch of environments and the result of its steps; a module that needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """Result of one step of N environments; D entries per observation.

    ``observations`` (N, D) are what the next action is chosen on: already the first of the next
    episode where one ended. ``final_observations`` (N, D) are what the step reached before any
    reset, so the two are equal where no episode ended. ``terminated`` (N,) says that the task
    itself ended there, ``truncated`` (N,) that only a time limit did. ``metrics`` are quantities
    to report, each (N,). The arrays are made for this step: later ones leave them as they are.
    """

    observations: npt.NDArray[np.float32]
    final_observations: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    metrics: Mapping[str, npt.NDArray[np.float64]]

    def __post_init__(self) -> None:
        shape = self.observations.shape
        if len(shape) != 2:
            raise ValueError(f"batch step: observations must be shaped (N, D), got {shape}")
        _check_array("observations", self.observations, shape, np.float32)
        _check_array("final_observations", self.final_observations, shape, np.float32)
        _check_array("rewards", self.rewards, shape[:1], np.float32)
        _check_array("terminated", self.terminated, shape[:1], np.bool_)
        _check_array("truncated", self.truncated, shape[:1], np.bool_)
        for name, values in self.metrics.items():
            _check_array(f"metric {name!r}", values, shape[:1], np.float64)


class SteppedBatch(Protocol):
    """N episodes stepped together: arrays in, arrays out."""

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin the next episode everywhere."""

    def step(self, actions: npt.NDArray[np.int64]) -> BatchStep:
        """Apply actions (N, A)."""

    def close(self) -> None:
        """End the workers, if any."""


def _check_array(
    field: str, array: npt.NDArray[np.generic], shape: tuple[int, ...], dtype: type[np.generic]
) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"batch step: {field} must be {np.dtype(dtype)} shaped {shape}, "
            f"got {array.dtype} shaped {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"batch step: {field} must be finite, got {array!r}")
