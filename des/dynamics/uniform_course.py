"""Compiled course of links under the uniform law: the segment that rules, and its factors."""

import numpy as np

from des.base.arithmetic import segment_at
from des.base.jit import inlined, kernel
from des.base.random_numbers import uniform_pair


@inlined
def uniform_factors(
    seed: int, link: int, segment: int, bandwidth_fluctuation: float, latency_jitter: float
) -> tuple[float, float]:
    """Bandwidth and latency factor of a link in a segment, uniform around 1."""
    bandwidth_eps, latency_eps = uniform_pair(seed, link, segment)
    return 1.0 + bandwidth_fluctuation * bandwidth_eps, 1.0 + latency_jitter * latency_eps


@kernel
def uniform_factors_of_links(
    seed: int, num_links: int, segment: int, bandwidth_fluctuation: float, latency_jitter: float
) -> np.ndarray:
    """Bandwidth and latency factors of all links in a segment, shaped (2, num_links)."""
    factors = np.empty((2, num_links))
    for link in range(num_links):
        factors[0, link], factors[1, link] = uniform_factors(
            seed, link, segment, bandwidth_fluctuation, latency_jitter
        )
    return factors


@kernel
def segment_ruling(start_s: float, time_s: float, interval_s: float) -> int:
    """Segment that rules at a time of an iteration which began at ``start_s`` of the course.

    The first whose end, seen from the start of the iteration, is after the time.
    """
    segment = segment_at(start_s + time_s, interval_s)
    while (segment + 1) * interval_s - start_s <= time_s:  # the sum was rounded down
        segment += 1
    while segment * interval_s - start_s > time_s:  # or up
        segment -= 1
    return segment
