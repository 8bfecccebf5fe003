"""State of a training in a checkpoint: its update, and all that is needed to continue."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.ppo.checkpoint import CheckpointError
from agents.ppo.trained_policy import tensors_of


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


class Part(NamedTuple):
    """A part of a training that a snapshot holds: how it is read, and how it is set."""

    read: Callable[[], object]
    set: Callable[[Any], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Form in which a checkpoint holds a training by updates.

    Attributes
    ----------
    num_updates
        Updates of the whole training.
    identity
        Settings that must agree before a snapshot can be continued.
    parts
        Random streams, queues and the optimiser, by name.
    """

    num_updates: int
    identity: Mapping[str, object]
    parts: Mapping[str, Part]

    def state(self, update: int) -> dict[str, object]:
        """Content that `load` continues from, after a number of updates."""
        parts = {name: part.read() for name, part in self.parts.items()}
        return {**self.identity, "update": update, **parts}

    def load(self, state: Mapping[str, Any], *, source: Path, restore: Callable[[], object]) -> int:
        """Set all parts, ``restore`` the policy, and return the number of updates.

        Raises
        ------
        CheckpointError
            If the content, of the file ``source``, is none of this training.
        """
        try:
            update = update_of(state, most=self.num_updates)
            require_same(state, self.identity)
            restore()
            for name, part in self.parts.items():
                part.set(tensors_of(state[name]))
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"checkpoint {source}: {error}") from error
        return update
