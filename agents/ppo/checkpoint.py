"""Checkpoint files: written whole or not at all, the same bytes for the same content."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from agents.ppo.checkpoint_bytes import MOST_BYTES, packed_content, unpacked_content
from des.base.atomic_write import write_atomically
from des.base.bounded_files import read_at_most
from des.base.names import one_line

_FORMAT, _VERSION = "eastwest-checkpoint", "3"


class CheckpointError(ValueError):
    """A file or a payload is not a checkpoint that can be used here."""


def save_checkpoint(path: Path, payload: Mapping[str, object]) -> None:
    """Write a checkpoint, replacing an old one at once: a failure leaves the old file in place.

    Parameters
    ----------
    path
        The file; its folder must exist.
    payload
        See `agents.ppo.checkpoint_bytes.packed_content`; dicts in equal order give equal bytes.

    Raises
    ------
    ValueError
        If the payload holds anything else.
    """
    write_atomically(path, packed_content(payload, {"format": _FORMAT, "version": _VERSION}))


def load_checkpoint(path: Path) -> dict[str, object]:
    """Payload of a checkpoint, with arrays of numpy; no code in the file is run.

    Raises
    ------
    CheckpointError
        If the file is missing, damaged, of another kind or of another version, or holds a number
        that is infinite or none.
    """
    allowed = f"an intact {_FORMAT} file of version {_VERSION}"
    try:
        packed = read_at_most(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got {error}") from error
    if packed.startswith(b"PK"):
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got one of torch, as before")
    try:
        metadata, payload = unpacked_content(packed)
        found, version = metadata.get("format"), metadata.get("version")
    except Exception as error:  # on damaged bytes, almost anything is raised
        raise CheckpointError(
            f"checkpoint {path}: must be {allowed}, got {len(packed)} bytes of something else "
            f"({type(error).__name__}: {one_line(str(error), 300)})"
        ) from error
    if found != _FORMAT:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got another safetensors file")
    if version != _VERSION:
        raise CheckpointError(f"checkpoint {path}: must be {allowed}, got version {version!r}")
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
    elif isinstance(value, np.ndarray) and not np.isfinite(value).all():
        raise CheckpointError(
            f"checkpoint {path}: {'.'.join(where)} must hold finite numbers, got "
            f"{int((~np.isfinite(value)).sum())} of {value.size} that are not"
        )


def require_held(parameters: object, *chains: Sequence[int]) -> None:
    """Refuse sizes of a network beyond its parameters, before any of them is allocated.

    Parameters
    ----------
    parameters
        Arrays or tensors by name, which are there.
    chains
        Widths of layers that follow each other: each has as many weights as the product of two.

    Raises
    ------
    TypeError
        If there are no parameters by name.
    ValueError
        If a chain needs more than all of them hold.
    """
    if not isinstance(parameters, Mapping) or not all(isinstance(one, str) for one in parameters):
        raise TypeError("parameters must be there, each by its name")
    held = sum(math.prod(each.shape) for each in parameters.values() if hasattr(each, "shape"))
    for chain in chains:
        needed = sum(one * other for one, other in itertools.pairwise(chain))
        if needed > held:
            raise ValueError(f"a network of {needed} weights or more, with {held} parameters")
