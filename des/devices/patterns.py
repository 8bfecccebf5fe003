"""Patterns by which the GPUs of servers are joined, as matrices of tokens."""

from collections.abc import Callable

_CUBE_MESH = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip
"""NVLinks of the DGX-1 with V100: two GPUs and how many join them (NVIDIA, DGX-1 white paper)."""


def nvswitch(num_gpus: int = 8, num_nvlinks: int = 12) -> list[list[str]]:
    """Every GPU reaches each other over all its NVLinks, as in the DGX A100: 12 of them."""
    return square(num_gpus, lambda one, other: f"NV{num_nvlinks}")


def hybrid_cube_mesh(*, is_single: bool = False) -> list[list[str]]:
    """Two squares of GPUs with diagonals, joined corner by corner; SYS where no NVLink is.

    ``is_single`` is the DGX-1 with P100: one NVLink wherever that with V100 has one or two.
    """
    links = {(one, other): 1 if is_single else count for one, other, count in _CUBE_MESH}

    def joined(one: int, other: int) -> str:
        return f"NV{links[one, other]}" if (one, other) in links else "SYS"

    return square(8, joined)


def pcie_two_numa(num_gpus: int = 8) -> list[list[str]]:
    """Half of the GPUs at each processor, two and two at a PCIe switch."""

    def joined(one: int, other: int) -> str:
        if one // (num_gpus // 2) != other // (num_gpus // 2):
            return "SYS"
        return "PIX" if one // 2 == other // 2 else "NODE"

    return square(num_gpus, joined)


def pcie_pairs(num_gpus: int = 8, num_nvlinks: int = 4) -> list[list[str]]:
    """NVLink bridges join two and two (4 links of 25 GB/s, an RTX A6000's); else as above."""
    plain = pcie_two_numa(num_gpus)
    return square(
        num_gpus,
        lambda one, other: f"NV{num_nvlinks}" if one // 2 == other // 2 else plain[one][other],
    )


def square(count: int, joined: Callable[[int, int], str]) -> list[list[str]]:
    """Fill a matrix from the token of each two devices, the lower one first; X on the diagonal."""
    return [
        [
            "X" if one == other else joined(min(one, other), max(one, other))
            for other in range(count)
        ]
        for one in range(count)
    ]
