"""Trained networks as they answer, in numpy: an architecture, and its numbers by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from agents.ppo.checkpoint import Array, CheckpointError

Numbers = Mapping[str, Array]
"""Parameters and buffers by the names that a module of torch gives them."""

ArchitectureT = TypeVar("ArchitectureT")
ArchitectureT_co = TypeVar("ArchitectureT_co", covariant=True)


class TrainedNet(Protocol[ArchitectureT_co]):
    """A network that answers: one of a file, or a module of torch in training."""

    @property
    def architecture(self) -> ArchitectureT_co:
        """All that decides what the network computes, but its numbers."""

    @property
    def numbers(self) -> Numbers:
        """The numbers as they are now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedNet(Generic[ArchitectureT]):
    """A network of a file."""

    architecture: ArchitectureT
    numbers: Numbers


def load_net(
    payload: Mapping[str, object],
    *,
    source: Path,
    expected: Mapping[str, object],
    shapes_of: Callable[[Mapping[str, Any], Numbers], tuple[ArchitectureT, Mapping[str, Any]]],
) -> LoadedNet[ArchitectureT]:
    """Return the network of plain content, with its ``architecture`` and ``parameters``.

    Parameters
    ----------
    expected
        What other fields must be, ``kind`` among them.
    shapes_of
        Makes the architecture of its fields, and the shape of each of its numbers.

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
        architecture, shapes = shapes_of(sizes, parameters)
        return LoadedNet(architecture=architecture, numbers=shape_numbers(parameters, shapes))
    except (TypeError, ValueError) as error:
        kind = str(expected["kind"]).replace("_", " ")
        raise CheckpointError(
            f"checkpoint {source}: {kind} must hold an architecture and parameters of its sizes, "
            f"got {sizes!r} ({type(error).__name__}: {error})"
        ) from error


def shape_numbers(parameters: Mapping[str, Any], shapes: Mapping[str, Any]) -> Numbers:
    """Return the numbers as arrays of numpy, if they have these shapes and names.

    Raises
    ------
    ValueError
        If a name is missing or too many, or a shape is another.
    """
    for name in [*shapes, *parameters]:
        found = tuple(getattr(parameters.get(name), "shape", ())) if name in parameters else None
        if name not in shapes or name not in parameters or found != tuple(shapes[name]):
            raise ValueError(f"{name} must be of shape {shapes.get(name)}, got {found}")
    return {name: np.asarray(array) for name, array in parameters.items()}


def linear_shapes(name: str, num_outputs: int, num_inputs: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the numbers of a layer.

    Examples
    --------
    >>> linear_shapes("node", 64, 27)
    {'node.weight': (64, 27), 'node.bias': (64,)}
    """
    return {f"{name}.weight": (num_outputs, num_inputs), f"{name}.bias": (num_outputs,)}


def linear_forward(numbers: Numbers, name: str, inputs: Array) -> Array:
    """Outputs of a layer, (..., N)."""
    flat = inputs.reshape(-1, inputs.shape[-1])
    outputs: Array = flat @ numbers[f"{name}.weight"].T
    bias = numbers.get(f"{name}.bias")
    if bias is not None:
        outputs += bias
    return outputs.reshape(*inputs.shape[:-1], -1)
