"""Compiled parts of bounds over sets of domains; sets are numbers whose bits are domains."""

import numpy as np
import numpy.typing as npt

from des.base.jit import kernel

Real = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

_REFINEMENTS = 4
_ROUNDING = 1e-9


@kernel
def least_paths(cost: Real, is_bottleneck: bool) -> Real:
    """Least cost of a path through ``k + 1`` domains of every set, shaped (2^K, K).

    The cost of a path is the sum of its hops or, as a bottleneck, the largest of them; ``inf``
    where a set has too few domains or no path.
    """
    size = cost.shape[0]
    num_sets = 1 << size
    ending = np.full((num_sets, size), np.inf)
    found = np.full((num_sets, size), np.inf)
    for last in range(size):
        ending[1 << last, last] = 0.0
    for members in range(1, num_sets):
        count = 0
        for last in range(size):
            if not members >> last & 1:
                continue
            count += 1
            here = ending[members, last]
            without = members & ~(1 << last)
            for shorter in range(size):
                found[members, shorter] = min(found[members, shorter], found[without, shorter])
            if here == np.inf:
                continue
            for after in range(size):
                if members >> after & 1:
                    continue
                hop = cost[last, after]
                there = max(here, hop) if is_bottleneck else here + hop
                both = members | 1 << after
                ending[both, after] = min(ending[both, after], there)
        found[members, count - 1] = ending[members].min()
    return found


@kernel
def capacity(time_s: float, rates: Real, path_s: Real, weight: float, share: float) -> float:
    """Most work, times ``weight``, of a pipeline whose stages all end by a time.

    Stage ``k`` works for ``weight`` times its time of a microbatch, after ``share`` of the
    microbatch in each stage before it and after ``path_s[k]`` of messages. The rates descend.
    """
    count = rates.size
    if count > 1:
        share = min(share, weight / (count - 1))
    kept = 1.0 - share / weight
    left_s, total = time_s, 0.0
    for stage in range(count):
        if stage > 0:
            left_s = kept * left_s - (path_s[stage] - path_s[stage - 1])
        if left_s <= 0.0:
            break
        total += rates[stage] * left_s
    return total


@kernel
def most_microbatches(
    time_s: float,
    most: int,
    work: float,
    rates: Real,
    path_s: Real,
    share: float,
    longer: float,
) -> float:
    """Microbatches that a pipeline can do at most in a time, each ``work``; at most ``most``.

    ``longer`` is the additional time of each stage, in its time of a microbatch.
    """
    count = float(most)
    for _ in range(_REFINEMENTS):
        if count <= 0.0:
            return 0.0
        found = capacity(time_s, rates, path_s, count + longer, share) / work - longer
        if found >= count:
            return count
        count = found
    return max(count, 0.0)


@kernel
def best_rests(counts: Real, num_groups: int) -> Real:
    """Most microbatches of disjoint sets within each set: one, two or, from three on, any number.

    Shaped (2^K,).
    """
    num_sets = counts.size
    rest = counts.copy()
    rest[0] = 0.0
    for members in range(1, num_sets):
        part = members
        while part:
            without = members & ~(part & -part)
            rest[members] = max(rest[members], rest[without])
            part &= part - 1
    if num_groups > 1:
        others = rest if num_groups > 2 else rest.copy()
        for members in range(1, num_sets):
            part = members
            while part:
                if counts[part] > 0.0:
                    rest[members] = max(rest[members], counts[part] + others[members ^ part])
                part = (part - 1) & members
    return rest


@kernel
def best_packing(counts: Real, rests: Real) -> float:
    """Most microbatches of a set of several domains and its `best_rests`.

    -1 where there are too few sets.
    """
    everything = counts.size - 1
    best = -1.0
    for members in range(1, counts.size):
        left = rests[everything ^ members]
        is_single = members & (members - 1) == 0
        if counts[members] > 0.0 and left > 0.0 and not is_single:
            best = max(best, counts[members] + left)
    return best
