"""Compiled counts of the microbatches that sets of domains do as groups in a time."""

from typing import NamedTuple

import numpy as np

from agents.planners.bounds.set_kernels import Real, most_microbatches
from des.base.jit import inlined, kernel

_ROUNDING = 1e-9


class SetJob(NamedTuple):
    """Job on all sets of domains, for compiled code.

    ``rates`` and ``paths_s`` are shaped (rules, 2^K, K), ``works`` and ``shares`` (rules,);
    ``trip_s`` and ``wire_s`` (2^K,). Of each domain: ``alone_s``, a microbatch in it alone,
    ``layer_s``, its quickest layer, and ``most_layers`` in its memory, (K,). Every stage takes
    ``longer`` microbatches more, and waits for ``forward_s`` and a message if it is not the first.
    """

    num_microbatches: int
    num_layers: int
    works: Real
    shares: Real
    rates: Real
    paths_s: Real
    trip_s: Real
    wire_s: Real
    alone_s: Real
    layer_s: Real
    most_layers: Real
    forward_s: float
    longer: float


@inlined
def _hold_layers(job: SetJob, members: int, count: float, left_s: float) -> bool:
    """Whether stages of whole layers may do microbatches in a time, all but the first later."""
    later_s = left_s - job.forward_s - job.paths_s[0, members, 1]
    total, more = 0.0, 0.0
    for domain in range(job.alone_s.size):
        if members >> domain & 1:
            each_s = (count + job.longer) * job.layer_s[domain] * (1.0 - _ROUNDING)
            first = min(job.most_layers[domain], np.floor(left_s / each_s))
            after = min(job.most_layers[domain], np.floor(max(later_s, 0.0) / each_s))
            total += after
            more = max(more, first - after)
    return total + more >= job.num_layers


@kernel
def count_of_set(
    job: SetJob,
    members: int,
    time_s: float,
    left_s: float,
    sent_late_s: float,
    sent_longer: float,
) -> float:
    """Whole microbatches that a set can do as one group, 0 where it cannot.

    All end after ``left_s``. Where all domains of a set only work and exchange in a ``time_s``,
    that takes ``sent_longer`` microbatches more and ``sent_late_s``.
    """
    size, first = 0, -1
    for domain in range(job.alone_s.size):
        if members >> domain & 1:
            size += 1
            first = domain
    found = float(job.num_microbatches)
    if size == 1:
        found = min(found, left_s / job.alone_s[first])
        return float(max(np.floor(found * (1.0 + _ROUNDING) + _ROUNDING), 0.0))
    if job.wire_s[members] > 0.0:
        found = min(found, 1.0 + (left_s - job.trip_s[members]) / job.wire_s[members])
    elif left_s < job.trip_s[members]:
        return 0.0
    work_rate = job.rates[0, members].sum() / job.works[0]
    found = min(found, (time_s - sent_late_s) * work_rate - sent_longer)
    for rule in range(job.works.size):
        if found < 1.0:
            return 0.0
        own = most_microbatches(
            left_s,
            job.num_microbatches,
            job.works[rule],
            job.rates[rule, members, :size],
            job.paths_s[rule, members, :size],
            job.shares[rule],
            job.longer,
        )
        found = min(found, own)
    low, high = 0.0, np.floor(found * (1.0 + _ROUNDING) + _ROUNDING)
    middle = high
    while low < high:
        if _hold_layers(job, members, middle, left_s):
            low = middle
        else:
            high = middle - 1.0
        middle = np.ceil(0.5 * (low + high))
    return low


@kernel
def counts_of_sets(
    job: SetJob,
    time_s: float,
    passes_s: Real,
    late_s: Real,
    least_s: Real,
    sent_late_s: Real,
    sent_longer: Real,
    counts: Real,
) -> None:
    """Write how many whole microbatches every set can do as one group, see `count_of_set`.

    All arrays are (2^K,). No set does any before its ``least_s``, and all end ``late_s`` before
    ``passes_s``.
    """
    for members in range(1, counts.size):
        counts[members] = 0.0
        if time_s >= least_s[members]:
            counts[members] = count_of_set(
                job,
                members,
                time_s,
                passes_s[members] - late_s[members],
                sent_late_s[members],
                sent_longer[members],
            )
