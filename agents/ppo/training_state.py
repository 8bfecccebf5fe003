"""State of a training in a checkpoint: its update, and all that is needed to continue."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.ppo.checkpoint import CheckpointError


def update_of(payload: Mapping[str, object], *, most: int) -> int:
    """Return the number of updates behind a checkpoint.

    Raises
    ------
    CheckpointError
        If the checkpoint does not say it, as those of older versions, or it is above ``most``.
    """
    update = payload.get("update")
    if type(update) is not int or not 0 <= update <= most:
        raise CheckpointError(
            f"update must be a whole number from 0 to {most} for a training to continue from it, "
            f"got {update!r}"
        )
    return update


def require_same(payload: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Raise ``CheckpointError`` if a checkpoint is of another training, naming what differs."""
    for name, allowed in expected.items():
        if payload.get(name) != allowed:
            raise CheckpointError(f"{name} must be {allowed!r}, got {payload.get(name)!r}")


def random_state(rng: np.random.Generator) -> dict[str, Any]:
    """State of a generator as plain content."""
    return dict(rng.bit_generator.state)


def set_random_state(rng: np.random.Generator, state: object) -> None:
    """Set a generator to a state that `random_state` returned."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a random state must be a dict, got {type(state).__name__}")
    rng.bit_generator.state = dict(state)
