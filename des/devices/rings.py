"""Best rings of groups of GPUs, in compiled code: of every subset, and of disjoint groups."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from des.base.jit import kernel

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]

NO_RING = 1 << 30
"""Rank of what cannot be."""

NO_KEY = -1
"""Goodness of what cannot be."""


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


def partition_ranks(of_sets: Whole, free: int, size: int, num_gpus: int) -> Whole:
    """Rank of the slowest ring where 1, 2, ... disjoint groups of a size are wanted at once.

    Item ``k`` (n + 1,) is the least that any ``k`` groups of free GPUs can have; `NO_RING` where
    there are not as many GPUs. ``of_sets`` are those of `ring_ranks`.
    """
    masks = np.arange(of_sets.size)
    counts = np.bitwise_count(masks)
    is_group = (counts == size) & (masks & ~free == 0)
    worst = worst_groups(np.where(is_group, NO_RING - of_sets, NO_KEY), size)
    least = np.full(num_gpus + 1, NO_RING, dtype=np.int64)
    least[0] = -1
    for count in range(1, free.bit_count() // size + 1):
        least[count] = NO_RING - worst[counts == count * size].max()
    return least


@kernel
def worst_groups(keys: Whole, size: int) -> Whole:
    """Greatest key that the worst group can have, for every set that groups fill, (2**n,).

    ``keys`` (2**n,) are those of sets of the size, `NO_KEY` of others. The lowest GPU of a set is
    in some group: the best over those groups of the worse of the group and of what is left. Sets
    that groups do not fill have `NO_KEY`.
    """
    worst = np.full(keys.shape[0], NO_KEY, dtype=np.int64)
    worst[0] = np.iinfo(np.int64).max
    for chosen in range(1, keys.shape[0]):
        if bits(chosen) % size:
            continue
        lowest = chosen & -chosen
        others = chosen ^ lowest
        part = others
        while True:
            group = part | lowest
            if keys[group] > worst[chosen]:
                worst[chosen] = max(worst[chosen], min(keys[group], worst[chosen ^ group]))
            if part == 0:
                break
            part = (part - 1) & others
    return worst
