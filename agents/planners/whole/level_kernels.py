"""Times at which groups of domains that share the microbatches of a step end together."""

import math

from des.base.jit import lean_kernel
from des.compiled.many.layout import Real, Whole


@lean_kernel
def write_levels(
    times_s: Real,
    beats_s: Real,
    index: Whole,
    sizes: Whole,
    counts: Whole,
    total: int,
    levels_s: Real,
) -> None:
    """Write times at which all groups of N partitions end under each of S schedules, (N, S). [s]

    A group's time is taken as a line in its microbatches; a partition with a group that does not
    fit has ``inf``.

    Parameters
    ----------
    times_s, beats_s
        Of G groups, each on a count of microbatches and for each further one, (G, S); ``inf`` where
        one does not fit. [s]
    index, sizes
        Groups of each partition, (N, R), and how many they are, (N,).
    counts
        Microbatches on which its groups' times are known, (N,).
    total
        Microbatches that the groups share.
    """
    for partition in range(sizes.size):
        for schedule in range(times_s.shape[1]):
            fits, fixed, rates = True, 0.0, 0.0
            for place in range(sizes[partition]):
                group = index[partition, place]
                time_s, beat_s = times_s[group, schedule], beats_s[group, schedule]
                fits = fits and math.isfinite(time_s) and math.isfinite(beat_s)
                rate = 1.0 / beat_s
                fixed += time_s * rate - counts[partition]
                rates += rate
            levels_s[partition, schedule] = (total + fixed) / rates if fits else math.inf
