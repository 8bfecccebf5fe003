"""All local plans of some GPUs before memory counts: shapes, microbatches and recomputation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, product
from typing import Final, NamedTuple

import numpy as np

from agents.decision.training_job import MICROBATCH_SIZES
from agents.hi_ppo.local.case import RECOMPUTATIONS
from des import Nodes, Parallelism
from des.costs.memory import bytes_per_parameter
from des.devices.gpus import GROUP_SIZES
from des.plan.parallelism import Sharding

_SHARDED: Final[tuple[Sharding, ...]] = ("none", "optimiser")
"""Levels of sharding to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOption:
    """A local plan without the binding."""

    parallelism: Parallelism
    microbatch_size: int
    recomputation: str

    def __str__(self) -> str:
        return (
            f"{self.parallelism}, {self.microbatch_size} sequences a microbatch, "
            f"{self.recomputation} recomputation"
        )


class Rows(NamedTuple):
    """All N options of some GPUs; arrays (N,), flags as 0 and 1.

    ``per_parameter_bytes`` is the model state of a parameter, all GPUs of a device together.
    """

    options: tuple[LocalOption, ...]
    tensor: np.ndarray
    data: np.ndarray
    pipeline: np.ndarray
    microbatch_size: np.ndarray
    is_full: np.ndarray
    is_sharded: np.ndarray
    per_parameter_bytes: np.ndarray

    def taken(self, chosen: np.ndarray) -> "Rows":
        """Return some of the rows, by a flag each."""
        options = tuple(compress(self.options, chosen.tolist()))
        return Rows(options, *(each[chosen] for each in self[1:]))


@lru_cache(maxsize=256)
def rows_of(num_gpus: int, nodes: Nodes | None = None, *, most_devices: int | None = None) -> Rows:
    """All options of a number of free GPUs, also those that exceed the memory.

    A replica works on whole sequences, so ``data`` divides the microbatch. ``tensor`` is a power of
    two, which divides the heads of all presets. One optimiser for several replicas is an option
    where there are several. Of one server the smallest tensor groups come first. Of GPUs on
    several, or of more than a server that is known has, the largest do: pipelines have at most some
    devices, and those of which `is_worth_while` is false have the time of others.
    """
    options = []
    for size, name in product(MICROBATCH_SIZES, RECOMPUTATIONS):
        shapes = shapes_over(num_gpus, size, nodes, most_devices or num_gpus)
        if most_devices is None:
            shapes = tuple(sorted(shapes, key=lambda shape: shape.tensor))
        options += [
            LocalOption(parallelism=shape, microbatch_size=size, recomputation=name)
            for shape in shapes
        ]
    return _rows(options)


def is_worth_while(num_devices: np.ndarray, num_layers: int) -> np.ndarray:
    """Whether fewer devices would have more layers on the fullest one; of no more than layers (N,).

    Examples
    --------
    >>> is_worth_while(np.arange(1, 9), 7)
    array([ True,  True,  True,  True, False, False,  True, False])
    """
    fullest = -(-num_layers // num_devices)
    of_fewer = -(-num_layers // np.maximum(1, num_devices - 1))
    is_first = num_devices == 1
    return np.asarray((num_devices <= num_layers) & (is_first | (fullest < of_fewer)))


@lru_cache(maxsize=256)
def shapes_over(
    num_gpus: int, microbatch_size: int, nodes: Nodes | None, most_devices: int
) -> tuple[Parallelism, ...]:
    """Ways to share layers over GPUs, the largest tensor groups and fewest devices first."""
    found = list[Parallelism]()
    for tensor, data in product(sorted(GROUP_SIZES, reverse=True), GROUP_SIZES):
        if microbatch_size % data:
            continue
        for pipeline in range(1, min(most_devices, num_gpus // (tensor * data)) + 1):
            for sharding in _SHARDED if data > 1 else _SHARDED[:1]:
                shape = Parallelism(tensor=tensor, data=data, pipeline=pipeline, sharding=sharding)
                if nodes is None or nodes.allows_tensor(tensor, shape.num_gpus):
                    found.append(shape)
    return tuple(found)


def _rows(options: Sequence[LocalOption]) -> Rows:
    shapes = [option.parallelism for option in options]
    return Rows(
        options=tuple(options),
        tensor=np.array([each.tensor for each in shapes]),
        data=np.array([each.data for each in shapes]),
        pipeline=np.array([each.pipeline for each in shapes]),
        microbatch_size=np.array([option.microbatch_size for option in options]),
        is_full=np.array([int(option.recomputation == "full") for option in options]),
        is_sharded=np.array([int(each.shards("optimiser")) for each in shapes]),
        per_parameter_bytes=np.array([float(sum(bytes_per_parameter(each))) for each in shapes]),
    )
