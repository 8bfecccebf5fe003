"""Servers people have: presets of GPU topologies, and random ones of their kinds."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from des.devices.gpus import GpuTopology

_CUBE_MESH = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip
"""NVLinks of the DGX-1 with V100: two GPUs and how many join them (NVIDIA, DGX-1 white paper)."""


def nvswitch(num_gpus: int = 8, num_nvlinks: int = 12) -> list[list[str]]:
    """Every GPU reaches each other over all its NVLinks, as in the DGX A100: 12 of them."""
    return _square(num_gpus, lambda one, other: f"NV{num_nvlinks}")


def hybrid_cube_mesh() -> list[list[str]]:
    """Two squares of GPUs with diagonals, joined corner by corner; SYS where no NVLink is."""
    links = {(one, other): count for one, other, count in _CUBE_MESH}

    def joined(one: int, other: int) -> str:
        return f"NV{links[one, other]}" if (one, other) in links else "SYS"

    return _square(8, joined)


def pcie_two_numa(num_gpus: int = 8) -> list[list[str]]:
    """Half of the GPUs at each processor, two and two at a PCIe switch."""

    def joined(one: int, other: int) -> str:
        if one // (num_gpus // 2) != other // (num_gpus // 2):
            return "SYS"
        return "PIX" if one // 2 == other // 2 else "NODE"

    return _square(num_gpus, joined)


def pcie_pairs(num_gpus: int = 8, num_nvlinks: int = 4) -> list[list[str]]:
    """NVLink bridges join two and two (4 links of 25 GB/s, an RTX A6000's); else as above."""
    plain = pcie_two_numa(num_gpus)
    return _square(
        num_gpus,
        lambda one, other: f"NV{num_nvlinks}" if one // 2 == other // 2 else plain[one][other],
    )


SERVERS: Mapping[str, Callable[[], list[list[str]]]] = MappingProxyType(
    {
        "nvswitch": nvswitch,
        "hybrid_cube_mesh": hybrid_cube_mesh,
        "pcie_two_numa": pcie_two_numa,
        "pcie_pairs": pcie_pairs,
    }
)
"""Matrices of link classes of 8 GPUs by name."""

_NUMA = (0, 0, 0, 0, 1, 1, 1, 1)


def server(name: str) -> GpuTopology:
    """Return the preset of that name, all of its 8 GPUs free.

    Raises
    ------
    ValueError
        If there is none; the message lists those there are.

    Examples
    --------
    >>> server("pcie_two_numa").best_groups[0][1, :5] / 1e9
    array([inf, 24., 24., 24., 24.])
    """
    if name not in SERVERS:
        raise ValueError(f"GPU topology: must be one of {', '.join(SERVERS)}; got {name!r}")
    return GpuTopology.of_classes(SERVERS[name](), numa_of_gpu=_NUMA)


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


def _square(count: int, joined: Callable[[int, int], str]) -> list[list[str]]:
    return [
        [
            "X" if one == other else joined(min(one, other), max(one, other))
            for other in range(count)
        ]
        for one in range(count)
    ]
