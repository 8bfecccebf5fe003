"""Trained networks, and trainings that continue, in checkpoints; and the greedy policy of one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch

from agents.ppo.checkpoint import CheckpointError, require_held
from agents.ppo.networks import ActorCritic, NetworkArchitecture, network_of
from agents.ppo.trained_net import Numbers


def tensors_of(content: Any) -> Any:
    """Return content of a checkpoint with tensors in place of arrays, whose memory they share."""
    if isinstance(content, np.ndarray):
        return torch.from_numpy(content)
    if isinstance(content, Mapping):
        return {name: tensors_of(entry) for name, entry in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(tensors_of(entry) for entry in content)
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedPolicy:
    """The greedy policy of a trained network."""

    network: ActorCritic

    @classmethod
    def from_payload(
        cls,
        payload: Mapping[str, object],
        *,
        source: Path,
        observation_size: int,
        action_sizes: tuple[int, ...],
    ) -> Self:
        """Rebuild the policy in a trainer's state.

        Parameters
        ----------
        payload
            Result of ``load_checkpoint`` for a file holding ``PPOTrainer.state()``.
        source
            The file, to be named in errors.
        observation_size, action_sizes
            Sizes of the caller's environment.

        Raises
        ------
        CheckpointError
            If there is no policy in the payload, or one for another environment.
        """
        network = network_from_payload(payload.get("policy"), source=source)
        found = network.architecture
        if (found.observation_size, found.action_sizes) != (observation_size, action_sizes):
            raise CheckpointError(
                f"checkpoint {source}: policy must have observation_size {observation_size} and "
                f"action_sizes {action_sizes}, got observation_size {found.observation_size} and "
                f"action_sizes {found.action_sizes}"
            )
        return cls(network=network)

    @torch.no_grad()
    def decide(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Most likely action (A,) at one observation (D,)."""
        shape = (self.network.architecture.observation_size,)
        if observation.shape != shape or not np.isfinite(observation).all():
            raise ValueError(f"policy: observation must be finite, {shape}, got {observation!r}")
        batch = torch.from_numpy(observation).unsqueeze(0)
        actions: npt.NDArray[np.int64] = self.network.greedy(batch).squeeze(0).numpy()
        return actions


def network_payload(network: ActorCritic) -> dict[str, object]:
    """Plain content from which ``network_from_payload`` rebuilds the network."""
    return {**network.architecture.plain(), "parameters": dict(network.state_dict())}


def network_from_payload(policy: object, *, source: Path) -> ActorCritic:
    """Rebuild a network; ``CheckpointError`` if the content does not describe one."""
    if not isinstance(policy, Mapping):
        raise CheckpointError(
            f"checkpoint {source}: policy must be a dict, got {type(policy).__name__}"
        )
    sizes = {name: value for name, value in policy.items() if name != "parameters"}
    try:
        architecture = NetworkArchitecture(**sizes)
        require_held(policy["parameters"], architecture.widths)
        network = network_of(architecture, None)
        network.load_state_dict(tensors_of(policy["parameters"]))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"checkpoint {source}: policy must hold the sizes of a network and parameters of "
            f"these sizes, got {sizes} ({type(error).__name__}: {error})"
        ) from error
    return network


class NumberedModule(torch.nn.Module):
    """A module that answers as an `agents.ppo.trained_net.TrainedNet`."""

    @property
    def numbers(self) -> Numbers:
        """The numbers as they are now, on this processor, not copies."""
        return {name: value.numpy() for name, value in self.state_dict().items()}


def update_of(payload: Mapping[str, object], *, most: int) -> int:
    """Return the number of updates after a checkpoint.

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
