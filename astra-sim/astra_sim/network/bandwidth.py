"""Rates that change at known times, and how long a transmission takes across the changes.

A link sends at the rate of the moment. What starts at ``t`` is through when the integral of the
rate from ``t`` on reaches its size, whatever changes fall in between. A transmission that no change
falls into takes ``bytes / rate``, the very float it would take if there were no changes at all.
Changes insert no events: they are known in advance, so they are integrated when a message starts.

A change belongs to a dimension. If it names two places that a link joins, it holds for the link
from the one to the other, else for every link of the dimension; in a dimension that exists several
times (the inside of every domain, say) it holds for all its copies.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from astra_sim.base.values import dataclass
from astra_sim.files.network_config import NetworkConfig
from astra_sim.network.routes import links_within

_Change = tuple[int, int, float]
"""Position in the list of the configuration, time, rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateProfile:
    """Piecewise constant rate: ``bytes_per_ns[i]`` holds until ``ends_ns[i]``, the last for ever.

    Ends ascend and are after 0, and neighbouring rates differ; ``rate_profile`` makes it so.

    Examples
    --------
    >>> profile = rate_profile(4.0, [(10, 1.0), (30, 2.0)])
    >>> profile.transmission_ns(0, 40)  # done as the change comes
    10.0
    >>> profile.transmission_ns(5, 50)  # 20 bytes until 10, 20 until 30, then 10 at 2 bytes/ns
    30.0
    """

    bytes_per_ns: tuple[float, ...]
    ends_ns: tuple[int, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether no change ever comes."""
        return not self.ends_ns

    def at(self, time_ns: int) -> float:
        """Rate from a time on. [bytes/ns]"""
        return self.bytes_per_ns[bisect_right(self.ends_ns, time_ns)]

    def transmission_ns(self, start_ns: int, num_bytes: int) -> float:
        """Time that bytes take from a start on, until the last has been sent."""
        rates, ends = self.bytes_per_ns, self.ends_ns
        piece = bisect_right(ends, start_ns)
        remaining_bytes: float = num_bytes
        now = start_ns
        while piece < len(ends) and remaining_bytes / rates[piece] > ends[piece] - now:
            remaining_bytes -= rates[piece] * (ends[piece] - now)
            now = ends[piece]
            piece += 1
        return now - start_ns + remaining_bytes / rates[piece]


def rate_profile(bytes_per_ns: float, changes: Iterable[tuple[int, float]]) -> RateProfile:
    """Rate of one link from its first rate and ``(time, rate)`` changes.

    Of several changes at one time the last given counts. Changes that change nothing leave no
    trace, so that they cannot move a result by rounding.
    """
    last_at = {0: bytes_per_ns} | dict(changes)
    times = sorted(last_at)
    steps = [(0, last_at[0])]
    for time_ns in times[1:]:
        if last_at[time_ns] != steps[-1][1]:
            steps.append((time_ns, last_at[time_ns]))
    return RateProfile(
        bytes_per_ns=tuple(rate for _, rate in steps),
        ends_ns=tuple(time_ns for time_ns, _ in steps[1:]),
    )


def slowest(profiles: Sequence[RateProfile]) -> RateProfile:
    """Rate of the slowest of several links at every moment.

    Examples
    --------
    >>> slowest([rate_profile(2.0, [(10, 5.0)]), rate_profile(3.0, [(20, 1.0)])])
    RateProfile(bytes_per_ns=(2.0, 3.0, 1.0), ends_ns=(10, 20))
    """
    times = sorted({0}.union(*(profile.ends_ns for profile in profiles)))
    rates = [(time_ns, min(profile.at(time_ns) for profile in profiles)) for time_ns in times]
    return rate_profile(rates[0][1], rates[1:])


class LinkRates:
    """Rates of the links of a network."""

    def __init__(self, config: NetworkConfig) -> None:
        self._dimensions = config.dimensions
        self._changing = {change.dimension for change in config.bandwidth_changes}
        self._changes: dict[tuple[int, int | None, int | None], list[_Change]] = {}
        self._steady: dict[float, RateProfile] = {}
        """Profiles of rates that never change, as most links have the same."""
        for position, change in enumerate(config.bandwidth_changes):
            key = change.dimension, change.source, change.target
            step = position, change.time_ns, change.bytes_per_ns
            self._changes.setdefault(key, []).append(step)

    def of_link(self, dimension: int, source: int, target: int) -> RateProfile:
        """Rate of the link between two places that it joins."""
        first = self._dimensions[dimension].link_bytes_per_ns(source, target)
        if dimension not in self._changing:
            if first not in self._steady:
                self._steady[first] = rate_profile(first, [])
            return self._steady[first]
        for_all = self._changes.get((dimension, None, None), [])
        for_this = self._changes.get((dimension, source, target), [])
        return rate_profile(first, [step[1:] for step in sorted(for_all + for_this)])

    def of_way(self, dimension: int, here: int, there: int) -> RateProfile:
        """Rate of the slowest link on the way between two places, at every moment."""
        figures = self._dimensions[dimension]
        if dimension not in self._changing:
            return self.of_link(dimension, here, there)
        return slowest(
            [self.of_link(dimension, *ends) for ends in links_within(figures, here, there)]
        )
