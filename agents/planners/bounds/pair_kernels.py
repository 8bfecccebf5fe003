"""Compiled test of two groups of domains, over the links between them alone."""

from typing import NamedTuple

import numpy as np

from agents.planners.bounds.count_kernels import SetJob, count_of_set
from agents.planners.bounds.due_exchanges import DueExchange, ExchangeWay, exchange_s
from agents.planners.bounds.set_kernels import Real, Whole
from des.base.jit import inlined, kernel

_MOST_TRIED = 4_000
"""Pairs of sets that are tried for a time; sets left behind them do what they can at best."""


class PairLinks(NamedTuple):
    """Exchange of two groups, for compiled code.

    ``sent_bytes_per_s`` is each link, ``both_bytes_per_s`` the slower of two ways, or the quicker
    one of more than two groups, (K, K). ``due``
    (D, 5) are exchanges after steps: how many of them are over within a period, how many have
    steps to themselves, the layers, the bytes and the least bytes of a layer of each.
    """

    is_behind: bool
    sent_bytes_per_s: Real
    both_bytes_per_s: Real
    way: ExchangeWay
    due: Real
    period_steps: int
    num_steps: int
    sent_bytes: float
    sent_share: float
    hidden_share: float
    late_s: Real
    sent_late_s: Real
    alone_late_s: Real
    alone_hidden_s: Real
    alone_first_s: float


@inlined
def _passes_s(
    pair: PairLinks, here: int, there: int, time_s: float, links: Real, held: Real
) -> float:
    """Most time of a step without what it waits for exchanges; negative where they take more."""
    if not pair.is_behind:
        return time_s
    waited_s, alone_s = 0.0, 0.0
    num_links = _links_between(pair.both_bytes_per_s, here, there, links)
    for place in range(pair.due.shape[0]):
        due = DueExchange(int(pair.due[place, 2]), pair.due[place, 3], pair.due[place, 4])
        taken_s = exchange_s(links, num_links, due, pair.way, held)
        if pair.due[place, 0] > 0.0:
            waited_s += pair.due[place, 0] * taken_s
        if pair.due[place, 1] > 0.0:
            alone_s += pair.due[place, 1] * taken_s
    if waited_s > time_s * pair.period_steps:
        return -1.0
    others = pair.period_steps - pair.num_steps
    if others <= 0 or pair.num_steps == 0:
        return time_s
    return min(time_s, (pair.period_steps * time_s - alone_s) / others)


@inlined
def _links_between(rate: Real, here: int, there: int, links: Real) -> int:
    """Write the quickest links from one set to another, in order, that take layers in parallel."""
    size, found, num_domains = rate.shape[0], 0, 0
    for source in range(size):
        num_domains += (here >> source & 1) + (there >> source & 1)
        if not here >> source & 1:
            continue
        for target in range(size):
            if not there >> target & 1 or rate[source, target] <= 0.0:
                continue
            place = found
            while place > 0 and links[place - 1] < rate[source, target]:
                links[place] = links[place - 1]
                place -= 1
            links[place] = rate[source, target]
            found += 1
    return min(found, num_domains - 1)


@inlined
def _count_beside(
    job: SetJob, pair: PairLinks, here: int, there: int, time_s: float, passes_s: float, links: Real
) -> float:
    """Most microbatches of a set whose exchange is with another set."""
    size, sent_longer = pair.alone_late_s.size, 0.0
    rate = 0.0
    if not pair.is_behind:
        num_links = _links_between(pair.sent_bytes_per_s, here, there, links)
        for place in range(num_links):
            rate += links[place]
        if pair.sent_bytes > 0.0 and rate == 0.0:
            return 0.0
        work = job.rates[0, here].sum()
        sent_longer = -pair.hidden_share
        if pair.sent_share > 0.0:
            sent_longer += pair.sent_share * work / rate
    late_s = pair.late_s[here]
    if here & (here - 1) == 0:
        for domain in range(size):
            if here >> domain & 1:
                late_s = pair.alone_late_s[domain]
                if not pair.is_behind:
                    sent_s = pair.way.latency_s - pair.alone_hidden_s[domain]
                    if pair.sent_bytes > 0.0:
                        sent_s += pair.sent_bytes / rate
                    late_s += max(sent_s, pair.alone_first_s) / pair.period_steps
    return count_of_set(job, here, time_s, passes_s - late_s, pair.sent_late_s[here], sent_longer)


@kernel
def two_groups_hold(job: SetJob, pair: PairLinks, time_s: float, counts: Real) -> int:
    """Two groups, one of several domains, that may do all microbatches in a time; -1: none.

    Times the number of sets, the first of two sets, and the second. ``counts`` (2^K,) are the most
    microbatches of each set over its best links.
    """
    size, most = pair.alone_late_s.size, job.num_microbatches
    links, held = np.empty(size * size), np.empty(size * size)
    everything = counts.size - 1
    for here in range(1, counts.size):
        if counts[here] < 1.0:
            continue
        there = rest = everything ^ here
        while there > here:
            is_single = here & (here - 1) == 0 and there & (there - 1) == 0
            if counts[there] >= 1.0 and counts[here] + counts[there] >= most and not is_single:
                passes_s = _passes_s(pair, here, there, time_s, links, held)
                own = _count_beside(job, pair, here, there, time_s, passes_s, links)
                if own >= 1.0 and own + counts[there] >= most:
                    own = min(own, counts[here])
                    other = _count_beside(job, pair, there, here, time_s, passes_s, links)
                    if other >= 1.0 and own + min(other, counts[there]) >= most:
                        return here * counts.size + there
            there = (there - 1) & rest
    return -1


@kernel
def counts_beside(job: SetJob, pair: PairLinks, time_s: float, counts: Real, rests: Real) -> Real:
    """Most microbatches of each set with a set that it exchanges with, of three or more groups.

    Only where both and the most of all further groups, ``rests``, may do all of them. (2^K,)
    """
    size, most = pair.alone_late_s.size, job.num_microbatches
    links, held = np.empty(size * size), np.empty(size * size)
    found = np.zeros(counts.size)
    everything, num_tried = counts.size - 1, 0
    for here in range(1, counts.size):
        if counts[here] < 1.0:
            continue
        if num_tried >= _MOST_TRIED:
            found[here] = counts[here]
            continue
        there = rest = everything ^ here
        while there:
            left = rests[rest ^ there] + counts[there]
            if counts[there] >= 1.0 and counts[here] > found[here] and counts[here] + left >= most:
                num_tried += 1
                passes_s = _passes_s(pair, here, there, time_s, links, held)
                own = _count_beside(job, pair, here, there, time_s, passes_s, links)
                if own + left >= most:
                    own, other = min(own, counts[here]), counts[there]
                    if pair.is_behind:  # else it may send to further groups
                        both = _count_beside(job, pair, there, here, time_s, passes_s, links)
                        other = min(other, both)
                    if other >= 1.0 and own + other + rests[rest ^ there] >= most:
                        found[here] = max(found[here], own)
            there = (there - 1) & rest
    return found


@kernel
def groups_hold(job: SetJob, pair: PairLinks, time_s: float, counts: Real, groups: Whole) -> bool:
    """Whether some groups, each with its best neighbour, may do all microbatches."""
    size = pair.alone_late_s.size
    links, held = np.empty(size * size), np.empty(size * size)
    total = 0.0
    for here in groups:
        best = 0.0
        for there in groups:
            if there != here:
                passes_s = _passes_s(pair, here, there, time_s, links, held)
                own = _count_beside(job, pair, here, there, time_s, passes_s, links)
                if own > best:
                    other = _count_beside(job, pair, there, here, time_s, passes_s, links)
                    if other >= counts[there]:
                        best = min(own, counts[here])
        total += best
    return total >= job.num_microbatches
