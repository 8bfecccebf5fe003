"""Checkpoint files: written whole or not at all, the same bytes for the same content."""

import io
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.ppo.networks import ActorCritic, NetworkArchitecture
from agents.ppo.stored_tensors import MOST_BYTES, stored_content
from des.base.atomic_write import write_atomically
from des.base.bounded_files import read_at_most
from des.base.names import one_line

_FORMAT = "eastwest-checkpoint"
_VERSION = 2

MadePolicy = TypeVar("MadePolicy", bound=torch.nn.Module)


class CheckpointError(ValueError):
    """A file or a payload is not a checkpoint that can be used here."""


def save_checkpoint(path: Path, payload: Mapping[str, object]) -> None:
    """Write a checkpoint, replacing an old one at once: a failure leaves the old file in place.

    Parameters
    ----------
    path
        The file; its folder must exist.
    payload
        None, bool, int, float, str, tensors, and lists, tuples and dicts of these. Equal payloads
        (dicts in equal order) give equal bytes.

    Raises
    ------
    ValueError
        If the payload holds anything else.
    """
    content = {"format": _FORMAT, "version": _VERSION, "payload": _canonical(payload, "payload")}
    buffer = io.BytesIO()  # torch.save would put the name of a file into its content
    torch.save(content, buffer)
    write_atomically(path, buffer.getvalue())


def load_checkpoint(path: Path) -> dict[str, object]:
    """Payload of a checkpoint; no code in the file is run.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, of another kind or of a newer version, or holds a number
        that is infinite or none.
    """
    allowed = f"an intact {_FORMAT} file of version {_VERSION}"
    try:
        packed = read_at_most(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got {error}") from error
    try:
        content = stored_content(packed)
    except Exception as error:  # on damaged bytes, zipfile and pickle raise almost anything
        raise CheckpointError(
            f"checkpoint {path}: must be {allowed}, got {len(packed)} bytes that torch cannot "
            f"load ({type(error).__name__}: {one_line(str(error), 300)})"
        ) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got another torch file")
    if content.get("version") != _VERSION:
        raise CheckpointError(
            f"checkpoint {path}: must be {allowed}, got version {content.get('version')!r}"
        )
    payload = content.get("payload")
    if not isinstance(payload, dict):
        raise CheckpointError(
            f"checkpoint {path}: payload must be a dict, got {type(payload).__name__}"
        )
    _require_finite(payload, path, ())
    return payload


def _require_finite(value: object, path: Path, where: tuple[str, ...]) -> None:
    """Refuse weights with which every decision would be the same, or none."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _require_finite(entry, path, (*where, str(key)))
    elif isinstance(value, Tensor) and value.is_floating_point() and not value.isfinite().all():
        raise CheckpointError(
            f"checkpoint {path}: {'.'.join(where)} must hold finite numbers, got "
            f"{int((~value.isfinite()).sum())} of {value.numel()} that are not"
        )


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
    return {**asdict(network.architecture), "parameters": dict(network.state_dict())}


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
        network = ActorCritic(architecture, None)
        network.load_state_dict(policy["parameters"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"checkpoint {source}: policy must hold the sizes of a network and parameters of "
            f"these sizes, got {sizes} ({type(error).__name__}: {error})"
        ) from error
    return network


def require_held(parameters: object, *chains: Sequence[int]) -> None:
    """Refuse sizes of a network beyond its parameters, before any of them is allocated.

    Parameters
    ----------
    parameters
        Tensors by name, which are there.
    chains
        Widths of layers that follow each other: each has as many weights as the product of two.

    Raises
    ------
    TypeError
        If there are no parameters by name.
    ValueError
        If a chain needs more than all tensors hold.
    """
    if not isinstance(parameters, Mapping) or not all(isinstance(one, str) for one in parameters):
        raise TypeError("parameters must be there, each by its name")
    held = sum(each.numel() for each in parameters.values() if isinstance(each, Tensor))
    for chain in chains:
        needed = sum(one * other for one, other in itertools.pairwise(chain))
        if needed > held:
            raise ValueError(f"a network of {needed} weights or more, with {held} parameters")


def _canonical(value: object, where: str) -> object:
    """Copy in which nothing is shared but equal strings, because pickle marks shared objects."""
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str:
        return sys.intern(value)
    if isinstance(value, Tensor):
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    if isinstance(value, Mapping):
        return {
            _canonical(key, f"{where} key"): _canonical(entry, f"{where}[{key!r}]")
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple):
        entries = [_canonical(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
        return entries if isinstance(value, list) else tuple(entries)
    raise ValueError(
        f"checkpoint: {where} must be None, bool, int, float, str, list, tuple, dict or Tensor, "
        f"got {type(value).__name__}"
    )


def remade_policy(
    payload: Mapping[str, object],
    *,
    source: Path,
    expected: Mapping[str, object],
    make: Callable[[Mapping[str, Any], Mapping[str, Tensor]], MadePolicy],
) -> MadePolicy:
    """Make a policy of plain content again, with its ``architecture`` and ``parameters``.

    Parameters
    ----------
    expected
        What other fields must be, ``kind`` among them.
    make
        Makes the policy from the fields of its architecture; its parameters are there to be looked
        at first.

    Raises
    ------
    CheckpointError
        If the content is of another kind, or one that reads or chooses something else.
    """
    for name, allowed in expected.items():
        if payload.get(name) != allowed:
            raise CheckpointError(
                f"checkpoint {source}: {name} must be {allowed!r}, got {payload.get(name)!r}"
            )
    sizes, parameters = payload.get("architecture"), payload.get("parameters")
    try:
        if not isinstance(sizes, Mapping) or not isinstance(parameters, Mapping):
            raise TypeError("architecture and parameters must be there")
        policy = make(sizes, parameters)
        policy.load_state_dict(parameters)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = str(expected["kind"]).replace("_", " ")
        raise CheckpointError(
            f"checkpoint {source}: {kind} must hold an architecture and parameters of its sizes, "
            f"got {sizes!r} ({type(error).__name__}: {error})"
        ) from error
    return policy.eval()
