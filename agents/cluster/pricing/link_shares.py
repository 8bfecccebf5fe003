"""Shares of links for jobs that run at the same time, as a fixed point of shares and use."""

import math
from collections.abc import Mapping, Sequence

from agents.cluster.pricing.iteration_prices import (
    GRID,
    IterationPrice,
    IterationPrices,
    LinkName,
    PlacedJob,
    on_grid,
)
from agents.cluster.pricing.link_rules import LinkRule

_MOST_STEPS = 20
_CLOSE = 1.0 / 128


def price_together(
    jobs: Sequence[PlacedJob], prices: IterationPrices, rule: LinkRule
) -> tuple[IterationPrice, ...]:
    """Prices of jobs that run at the same time over the same links.

    Each job's shares follow from how long the others' messages are on its links, and that from
    their shares: both are found by damped iteration.

    Notes
    -----
    On a link whose messages get equal parts, a job alternates between time with messages and time
    without. The job, and the others, as customers of a processor-sharing queue with thinking times
    have states in product form, whatever the distributions [1]_: a set of jobs is active with a
    weight of ``n! * product(work) * product(idle)``. The mean part of an active job is its share.
    A job with several messages counts as several in its part and, by the square root of their
    number, in ``n!``: an approximation, chosen on mixes of jobs other than those measured. Where
    all are always active the shares are those of max-min fairness.

    By priority, higher jobs leave what they do not need, and equal ones share that. Nothing is
    shared where the transport of the jobs says so. The directions of a link count as two links.

    References
    ----------
    .. [1] F. Baskett et al., "Open, closed, and mixed networks of queues with different classes of
       customers", J. ACM 22(2), 1975.
    """
    shares: list[dict[LinkName, float]] = [{} for _ in jobs]
    found = tuple(prices.price(job, {}) for job in jobs)
    if all(job.topology.transport.sharing == "none" for job in jobs):
        return found
    for step in range(_MOST_STEPS):
        wanted = [_shares(jobs, found, shares, own, rule) for own in range(len(jobs))]
        moved = max(
            (abs(each[link] - old.get(link, 1.0)) for each, old in zip(wanted, shares, strict=True)
             for link in each), default=0.0,
        )  # fmt: skip
        if moved < _CLOSE:
            break
        part = 1.0 if step == 0 else 0.5
        for new, old in zip(wanted, shares, strict=True):
            for link, share in new.items():
                old[link] = part * share + (1 - part) * old.get(link, 1.0)
        found = tuple(prices.price(job, each) for job, each in zip(jobs, shares, strict=True))
    return found


def _shares(
    jobs: Sequence[PlacedJob],
    found: Sequence[IterationPrice],
    shares: Sequence[Mapping[LinkName, float]],
    own: int,
    rule: LinkRule,
) -> dict[LinkName, float]:
    """Shares of a job, as the others are now."""
    wanted = {}
    for link, use in found[own].links.items():
        left, others = 1.0, []
        for other, price in enumerate(found):
            theirs = price.links.get(link)
            if other == own or theirs is None:
                continue
            work = theirs.busy_fraction * on_grid(shares[other].get(link, 1.0)) / GRID
            ahead = jobs[other].priority - jobs[own].priority if rule == "priority" else 0
            if ahead > 0:
                left -= work
            elif ahead == 0:
                others.append((work, 1.0 - theirs.busy_fraction, theirs.num_messages))
        wanted[link] = max(1.0 / GRID, left * fair_share(use.num_messages, others))
    return wanted


def fair_share(num_messages: float, others: Sequence[tuple[float, float, float]]) -> float:
    """Mean part of a link that an active job has.

    Parameters
    ----------
    num_messages
        Messages that it has on the link while it is active.
    others
        Work of each other job on the link (share of time that it would take alone), its time
        without messages, in the same unit, and its messages while it is active.

    Examples
    --------
    With one other job that always sends, and with one that never does:

    >>> fair_share(1.0, [(0.5, 0.0, 1.0)]), fair_share(1.0, [(0.0, 1.0, 1.0)])
    (0.5, 1.0)

    With one that works and thinks for equal times, which is then there two times in three:

    >>> round(fair_share(1.0, [(0.5, 0.5, 1.0)]), 6)
    0.666667
    """
    # States of the others by (messages, roots of messages): weight of each, merged where equal.
    own_root = _root(num_messages)
    states = {(0.0, 0.0): 1.0}
    for work, idle, messages in others:
        root = _root(messages)
        factor = work / math.gamma(1.0 + root)
        grown: dict[tuple[float, float], float] = {}
        for (count, roots), weight in states.items():
            for key, part in (((count, roots), idle), ((count + root**2, roots + root), factor)):
                grown[key] = grown.get(key, 0.0) + weight * part
        states = grown
    most = max(roots for _, roots in states)
    total = used = 0.0
    for (count, roots), part in states.items():
        orders = math.lgamma(1.0 + own_root + roots) - math.lgamma(1.0 + own_root + most)
        weight = part * math.exp(orders)
        total += weight
        used += weight * own_root**2 / (own_root**2 + count)
    return used / total


def _root(num_messages: float) -> float:
    """Square root to a quarter, so that few states differ."""
    return max(1.0, round(4.0 * math.sqrt(num_messages)) / 4.0)
