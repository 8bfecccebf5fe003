"""Presets of GPU topologies, and random ones of their kinds."""

from functools import lru_cache

import numpy as np

from des.devices.gpus import GpuTopology
from des.devices.patterns import hybrid_cube_mesh, nvswitch, pcie_pairs, pcie_two_numa
from des.devices.presets import simulated

_NUMA = (0, 0, 0, 0, 1, 1, 1, 1)


def server(name: str) -> GpuTopology:
    """Return the GPUs of a kind of server, all of them free.

    Raises
    ------
    ValueError
        If there is no such kind; the message hints at one, or lists all.

    Examples
    --------
    >>> server("pcie_two_numa").best_groups[0][1, :5] / 1e9
    array([inf, 24., 24., 24., 24.])
    """
    return GpuTopology.of_server(simulated(name))


def draw_server(rng: np.random.Generator, *, most_taken: int = 4) -> GpuTopology:
    """Draw a kind, the numbers of the GPUs, and which of them others have taken.

    Half of the servers are free; of the others 1 to ``most_taken`` GPUs are gone. Counts of NVLinks
    are those of products: 12 or 18 at a switch, 2 to 4 over a bridge.
    """
    if not 1 <= most_taken < len(_NUMA):
        raise ValueError(
            f"draw_server: most_taken must be from 1 to {len(_NUMA) - 1}, got {most_taken!r}"
        )
    at_switch, over_bridge = int(rng.choice((12, 18))), int(rng.integers(2, 5))
    kind = int(rng.integers(4))
    classes = _classes_of(kind, at_switch if kind == 0 else over_bridge if kind == 3 else 0)
    order = rng.permutation(len(classes)).tolist()
    num_taken = int(rng.integers(1, most_taken + 1)) if rng.random() < 0.5 else 0
    free = sorted(rng.permutation(len(classes))[num_taken:].tolist())
    return GpuTopology.of_classes(
        [[classes[one][other] for other in order] for one in order],
        numa_of_gpu=[_NUMA[one] for one in order],
        free=free,
    )


@lru_cache(maxsize=64)
def _classes_of(kind: int, num_nvlinks: int) -> list[list[str]]:
    """Matrix of a kind of server that is drawn."""
    if kind == 0:
        return nvswitch(num_nvlinks=num_nvlinks)
    if kind == 1:
        return hybrid_cube_mesh()
    return pcie_two_numa() if kind == 2 else pcie_pairs(num_nvlinks=num_nvlinks)
