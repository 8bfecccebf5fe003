"""Networks of torch in checkpoints, and the greedy policy of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

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


def module_numbers(module: torch.nn.Module) -> Numbers:
    """Return the numbers of a module on this processor, not copies."""
    return {name: value.numpy() for name, value in module.state_dict().items()}
