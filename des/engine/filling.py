"""Max-min fair rates of messages that share links and gates."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Group(NamedTuple):
    """Messages of equal rate: their number, the most that one can use, and what they share."""

    num: int
    most_bytes_per_s: float
    shares: tuple[str, ...]


def max_min_rates(groups: Sequence[Group], rates_bytes_per_s: Mapping[str, float]) -> list[float]:
    """Rate of a message of each group, where no message can get more without another getting less.

    Parameters
    ----------
    rates_bytes_per_s
        Of everything shared. [bytes/s]

    Notes
    -----
    Progressive filling [1]_: all rates rise together; when something is full, or a message has the
    most that it can use, those concerned keep what they have.

    References
    ----------
    .. [1] D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2.

    Examples
    --------
    An uplink of 10 on which links of 2 and 20 lead away, with one message and two:

    >>> max_min_rates([Group(1, 2.0, ("up",)), Group(2, 20.0, ("up",))], {"up": 10.0})
    [2.0, 4.0]
    """
    found = [-1.0] * len(groups)
    level = 0.0
    while -1.0 in found:
        left, num_open = dict(rates_bytes_per_s), dict.fromkeys(rates_bytes_per_s, 0)
        for group, rate in zip(groups, found, strict=True):
            for each in group.shares:
                if rate < 0.0:
                    num_open[each] += group.num
                else:
                    left[each] -= group.num * rate
        limits = [
            min([group.most_bytes_per_s, *(left[each] / num_open[each] for each in group.shares)])
            if rate < 0.0
            else math.inf
            for group, rate in zip(groups, found, strict=True)
        ]
        level = max(level, min(limits))
        for index, limit in enumerate(limits):
            if found[index] < 0.0 and limit <= level:
                found[index] = level
    return found
