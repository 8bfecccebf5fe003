"""Orderings of Tiresias (NSDI'19): discretised two-dimensional LAS and Gittins index."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from agents.cluster.key_orderings import KeyOrdering
from des.cluster.live_job import LiveJob

LIMITS_GPU_S = (3600.0, 7200.0, 18000.0)
"""Limits of attained service between queues, as the public simulator of Tiresias has them."""

_QUEUE = 1e12
"""Key of a queue: more than any time of arrival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues2dLas(KeyOrdering):
    """Queues by attained GPU seconds, lowest first; first come, first served inside each."""

    limits_gpu_s: tuple[float, ...] = LIMITS_GPU_S

    def __post_init__(self) -> None:
        KeyOrdering.__post_init__(self)
        _check_limits(self.limits_gpu_s)

    def key(self, job: LiveJob, now_s: float) -> float:
        """Queue, then arrival."""
        attained = job.attained_by(now_s) * job.width
        return bisect_right(self.limits_gpu_s, attained) * _QUEUE + job.job.arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesGittins(KeyOrdering):
    """Queues by the Gittins index of attained GPU seconds, highest index first.

    ``sample_gpu_s`` is a sample of the GPU seconds of whole jobs, from which the index is taken at
    the lower end of each queue.
    """

    sample_gpu_s: tuple[float, ...]
    limits_gpu_s: tuple[float, ...] = LIMITS_GPU_S

    def __post_init__(self) -> None:
        KeyOrdering.__post_init__(self)
        _check_limits(self.limits_gpu_s)
        if not self.sample_gpu_s or min(self.sample_gpu_s) <= 0:
            raise ValueError(
                "ordering gittins: sample_gpu_s must be at least one positive number, "
                f"got {len(self.sample_gpu_s)} of them"
            )

    def key(self, job: LiveJob, now_s: float) -> float:
        """Rank of the queue by its index, then arrival."""
        attained = job.attained_by(now_s) * job.width
        return _ranks(self)[bisect_right(self.limits_gpu_s, attained)] * _QUEUE + job.job.arrival_s


def gittins_index(sample: Sequence[float], attained: float, ends: Sequence[float]) -> float:
    """Gittins index of a job of unknown size that has attained some service.

    Parameters
    ----------
    sample
        Sizes of other jobs, in the unit of ``attained``.
    ends
        Attained services up to which a job may be served before the next choice; the largest size
        is one, too.

    Returns
    -------
    float
        Largest ratio, over these ends, of the probability that a job ends by then to the expected
        service spent; 0 where no size of the sample is larger than ``attained``.

    Notes
    -----
    ``max_d P(S - a <= d | S > a) / E[min(S - a, d) | S > a]`` over the empirical distribution [1]_.
    A finer choice of ends would follow the gaps between the sizes of the sample.

    References
    ----------
    .. [1] S. Aalto, U. Ayesta and R. Righter, "On the Gittins index in the M/G/1 queue", Queueing
       Systems 63, 2009.

    Examples
    --------
    >>> gittins_index([1.0, 1.0, 10.0], 0.0, ends=[1.0])
    0.6666666666666666
    >>> gittins_index([1.0, 1.0, 10.0], 2.0, ends=[1.0])
    0.125
    """
    left = np.asarray(sample, dtype=float) - attained
    left = left[left > 0]
    if not left.size:
        return 0.0
    spans = [end - attained for end in ends if end > attained] + [float(left.max())]
    return max(float((left <= span).sum() / np.minimum(left, span).sum()) for span in spans)


@lru_cache(maxsize=64)
def _ranks(ordering: QueuesGittins) -> tuple[int, ...]:
    """Place of each queue in the order of the indices at the lower ends of the queues."""
    limits = (0.0, *ordering.limits_gpu_s)
    indices = [
        gittins_index(ordering.sample_gpu_s, lower, ordering.limits_gpu_s) for lower in limits
    ]
    order = sorted(range(len(indices)), key=lambda queue: (-indices[queue], queue))
    return tuple(order.index(queue) for queue in range(len(indices)))


def _check_limits(limits: tuple[float, ...]) -> None:
    if not limits or any(one >= other for one, other in pairwise(limits)):
        raise ValueError(f"ordering: limits_gpu_s must rise, got {limits}")
