"""Partitions of at most 16 GPUs into groups of one size, by the keys of all sets."""

import numpy as np

from des.base.jit import kernel
from des.devices.rings import NO_KEY, Whole, bits


@kernel
def group_sums(keys: Whole, size: int, least: int) -> Whole:
    """Greatest sum of the keys of groups that fill a set, none below ``least``, (2**n,).

    `NO_KEY` where there are no such groups.
    """
    sums = np.full(keys.shape[0], NO_KEY, dtype=np.int64)
    sums[0] = 0
    for chosen in range(1, keys.shape[0]):
        if bits(chosen) % size:
            continue
        lowest = chosen & -chosen
        others = chosen ^ lowest
        part = others
        while True:
            group = part | lowest
            if keys[group] >= least and sums[chosen ^ group] != NO_KEY:
                sums[chosen] = max(sums[chosen], keys[group] + sums[chosen ^ group])
            if part == 0:
                break
            part = (part - 1) & others
    return sums


@kernel
def inner_keys(sums: Whole, maxima: Whole, size: int) -> Whole:
    """Goodness of every set of a size by its own GPUs alone, so that keys can be added; else -1.

    From the highest bit: NVLinks (18 bits), closeness of pairs without NVLink (14), of the farthest
    pair (8), of network cards (12).
    """
    keys = np.full(sums.shape[0], NO_KEY, dtype=np.int64)
    for chosen in range(sums.shape[0]):
        own = sums[chosen]
        if own & 0xFF == size:
            key = (own >> 40) << 14 | 1023 - (own >> 24 & 0xFFFF)
            key = key << 8 | 7 - maxima[chosen]
            keys[chosen] = key << 12 | 127 - (own >> 8 & 0xFFFF)
    return keys
