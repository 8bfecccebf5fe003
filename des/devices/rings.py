"""Best rings of groups of GPUs, in compiled code: of every subset, and of disjoint groups."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from des.base.jit import kernel

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]

NO_RING = 1 << 30
"""Rank of what cannot be."""


class Wires(NamedTuple):
    """Bandwidths of pairs and groups of ``n`` GPUs.

    ``bandwidth_bytes_per_s`` and ``latency_s`` (n, n) are those of pairs. ``ring_...`` (2**n,) are
    those of the slowest hop in the best ring of the GPUs of a set, whose bits are their numbers;
    of a single GPU or none, infinite and 0.
    """

    bandwidth_bytes_per_s: Real
    latency_s: Real
    ring_bandwidth_bytes_per_s: Real
    ring_latency_s: Real


@kernel
def bits(mask: int) -> int:
    """Number of GPUs of a set."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@kernel
def ring_ranks(ranks: Whole) -> Whole:
    """Rank of the slowest hop in the best ring of every set, (2**n,), from those of pairs (n, n).

    Lower is faster. A ring of two goes there and back. Of three or more it is the Hamiltonian cycle
    whose slowest hop is fastest: paths from the lowest GPU of a set, by their set and last GPU
    (M. Held and R. Karp, "A dynamic programming approach to sequencing problems", J. SIAM 10(1),
    1962, with maxima for sums). A single GPU has rank -1.
    """
    num_gpus = ranks.shape[0]
    found = np.full(1 << num_gpus, -1, dtype=np.int64)
    path = np.full((1 << num_gpus, num_gpus), NO_RING, dtype=np.int64)
    for first in range(num_gpus):
        path[1 << first, first] = -1
    for mask in range(1, 1 << num_gpus):
        first = 0
        while not mask >> first & 1:
            first += 1
        best = NO_RING
        for last in range(first, num_gpus):
            so_far = path[mask, last]
            if so_far == NO_RING:
                continue
            if last != first:
                best = min(best, max(so_far, ranks[last, first]))
            for onward in range(first + 1, num_gpus):
                if not mask >> onward & 1:
                    longer = mask | 1 << onward
                    slowest = max(so_far, ranks[last, onward])
                    path[longer, onward] = min(path[longer, onward], slowest)
        if mask != 1 << first:
            found[mask] = best
    return found


@kernel
def partition_ranks(of_sets: Whole, free: int, size: int, num_gpus: int) -> Whole:
    """Rank of the slowest ring where 1, 2, ... disjoint groups of a size are wanted at once.

    Item ``k`` (n + 1,) is the least that any ``k`` groups of free GPUs can have; `NO_RING` where
    there are not as many GPUs. ``of_sets`` are those of `ring_ranks`.
    """
    least = np.full(num_gpus + 1, NO_RING, dtype=np.int64)
    within = np.full(1 << num_gpus, NO_RING, dtype=np.int64)
    within[0] = -1
    least[0] = -1
    for mask in range(1, 1 << num_gpus):
        count = bits(mask)
        if mask & ~free or count % size:
            continue
        lowest = mask & -mask
        group = mask
        while group:
            if group & lowest and bits(group) == size:
                slowest = max(of_sets[group], within[mask ^ group])
                within[mask] = min(within[mask], slowest)
            group = (group - 1) & mask
        least[count // size] = min(least[count // size], within[mask])
    return least
