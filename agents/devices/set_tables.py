"""Figures of all sets of at most 16 GPUs at once, one item a set.

GPU ``i`` of ``n`` is bit ``n - 1 - i`` of a set, so of two sets of one size the greater number is
the one that comes first in the order of the GPUs.
"""

from collections.abc import Sequence

import numpy as np

from des.base.jit import kernel
from des.devices.rings import NO_KEY, Whole

MOST_IN_SETS = 16
"""Most GPUs of which all sets are looked at."""

NVLINKS, DISTANCES, CARDS = 40, 24, 8
"""First bits of the parts of `set_sums`; the lowest part counts the GPUs of a set."""

KEY_NVLINKS = 47
"""First bit of the NVLinks inside in what `set_keys` returns."""


def set_members(places: Sequence[int], mask: int) -> tuple[int, ...]:
    """Places of the GPUs of a set."""
    last = len(places) - 1
    return tuple(place for bit, place in enumerate(places) if mask >> last - bit & 1)


@kernel
def set_sums(pairs: Whole, singles: Whole) -> Whole:
    """Sum of the figures of pairs (n, n) and of GPUs (n,) of every set, (2**n,).

    Pairs of a set with two of its GPUs taken out are counted as sets are united: those without the
    one, those without the other, less those without both.
    """
    num_gpus = singles.shape[0]
    sums = np.zeros(1 << num_gpus, dtype=np.int64)
    for high in range(num_gpus):
        one, gpu = 1 << high, num_gpus - 1 - high
        sums[one] = singles[gpu]
        for second in range(high):
            other, figure = 1 << second, pairs[gpu, num_gpus - 1 - second]
            for rest in range(other):
                sums[one | other | rest] = (
                    sums[one | rest] + sums[other | rest] - sums[rest] + figure
                )
    return sums


@kernel
def set_maxima(pairs: Whole) -> Whole:
    """Greatest figure of a pair (n, n) in every set, (2**n,); 0 of a single GPU."""
    num_gpus = pairs.shape[0]
    found = np.zeros(1 << num_gpus, dtype=np.int64)
    for high in range(num_gpus):
        one, gpu = 1 << high, num_gpus - 1 - high
        for second in range(high):
            other, figure = 1 << second, pairs[gpu, num_gpus - 1 - second]
            for rest in range(other):
                most = max(found[one | rest], found[other | rest])
                found[one | other | rest] = max(most, figure)
    return found


@kernel
def set_keys(sums: Whole, maxima: Whole, size: int) -> Whole:
    """Goodness of every set of a size as one number, the greater the better; else `NO_KEY`.

    From the highest bit: NVLinks inside (14 bits), closeness of pairs without NVLink (10), of the
    farthest pair (3), of network cards (7), then NVLinks (14), closeness (10) and farthest pair (3)
    of the GPUs that are left.
    """
    everything = sums.shape[0] - 1
    keys = np.full(sums.shape[0], NO_KEY, dtype=np.int64)
    for chosen in range(sums.shape[0]):
        own, rest = sums[chosen], sums[everything ^ chosen]
        if own & 0xFF != size:
            continue
        key = own >> 40
        key = key << 10 | 1023 - (own >> 24 & 0xFFFF)
        key = key << 3 | 7 - maxima[chosen]
        key = key << 7 | 127 - (own >> 8 & 0xFFFF)
        key = key << 14 | rest >> 40
        key = key << 10 | 1023 - (rest >> 24 & 0xFFFF)
        keys[chosen] = key << 3 | 7 - maxima[everything ^ chosen]
    return keys


@kernel
def least_covers(near: Whole, num_gpus: int) -> Whole:
    """Least number of NUMA nodes that every set of GPUs is near to, (2**n,).

    ``near`` (nodes,) are the sets of GPUs near each node; every GPU must be near one. Some node of
    the lowest GPU of a set is among them: the least over its nodes of what is left without it.
    """
    covers = np.zeros(1 << num_gpus, dtype=np.int64)
    for chosen in range(1, 1 << num_gpus):
        lowest = chosen & -chosen
        least = num_gpus
        for gpus in near:
            if gpus & lowest:
                least = min(least, covers[chosen & ~gpus])
        covers[chosen] = least + 1
    return covers


@kernel
def most_by_size(sums: Whole, num_gpus: int) -> Whole:
    """Most NVLinks inside a set of 0, 1, ... n GPUs, (n + 1,)."""
    most = np.zeros(num_gpus + 1, dtype=np.int64)
    for chosen in range(sums.shape[0]):
        size = sums[chosen] & 0xFF
        most[size] = max(most[size], sums[chosen] >> 40)
    return most
