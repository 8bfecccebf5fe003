"""The order of events of one time in a ring whose times are known.

Of two events of one time the one that was set earlier runs first, and of two that were set at one
time that whose setting event ran first.
"""

from operator import eq

from astra_sim.system.ring_times import (
    ARRIVAL,
    LATE,
    MOVE,
    REDUCTION,
    RELEASE,
    RingTimes,
    Step,
)

MOST_COMPARED = 20_000
"""Pairs of events of one time that are looked at; where there are more, events go on."""


class TooManyTiesError(RecursionError):
    """Too many events of one time to find their order."""


class StepOrder:
    """Comparison of events of a ring."""

    def __init__(self, times: RingTimes) -> None:
        self._times = times
        self._found: dict[tuple[Step, Step], int] = {}
        self._num_compared = 0

    def compare(self, one: Step, other: Step) -> int:
        """Negative if an event runs before another: at one time, if what has set it has."""
        turn, other_turn, order = 0, 0, self._times.order
        pairs, sooner = list[tuple[Step, Step]](), 0
        while not sooner and one != other:
            sooner = self._found.get((one, other), 0) or (
                self._times.time_ns(one) - self._times.time_ns(other)
                or order.get(one, len(order)) - order.get(other, len(order))
                or self._times.set_ns(one) - self._times.set_ns(other)
            )
            if not sooner:
                pairs.append((one, other))
                self._num_compared += 1
                if self._num_compared > MOST_COMPARED:
                    raise TooManyTiesError
                (one, turn), (other, other_turn) = self._cause(one), self._cause(other)
        sooner = sooner or turn - other_turn
        self._found.update(dict.fromkeys(pairs, sooner))  # what sets them decides for each
        return sooner

    def _cause(self, step: Step) -> tuple[Step, int]:
        """Event that sets another, and the turn of that among all that it sets."""
        kind, place, number = step
        if kind is REDUCTION:
            return (MOVE, place, number), 0
        if kind is LATE:
            return self._posting(place, number), 2
        if kind is MOVE:
            if self._is_late(place, number - 1):
                return (LATE, place, number - 1), 0
            return (ARRIVAL, self._times.before(place), number - 1), 0
        posting, release = self._posting(place, number), (RELEASE, place, number - 1)
        if (before := place - len(self._times.members)) >= 0:
            posting = ARRIVAL, before, number
        waits = bool(self._times.links) and self.compare(posting, release) < 0
        return (release if waits else posting), kind is RELEASE

    def _posting(self, place: int, number: int) -> Step:
        return (REDUCTION if self._times.reduction_ns(number) else MOVE), place, number

    def _is_late(self, place: int, number: int) -> bool:
        """Whether a place posts the receive of a message when it is there already."""
        arrival = ARRIVAL, self._times.before(place), number
        return self.compare(arrival, self._posting(place, number)) < 0

    def num_late(self, until_ns: int) -> int:
        """Receives that are posted before a time with their messages there already."""
        times, total = self._times, 0
        for number, (posts, starts) in enumerate(
            zip(times.posts, times.starts, strict=True), start=times.first
        ):
            arrivals = [start + times.delay_ns for start in (starts[-1], *starts[times.last : -1])]
            total += sum(a < post < until_ns for a, post in zip(arrivals, posts, strict=True))
            if any(map(eq, arrivals, posts)):
                lag_ns = times.reduction_ns(number) or times.shape.move_ns
                for place, (arrival, post) in enumerate(zip(arrivals, posts, strict=True)):
                    if arrival == post < until_ns:
                        steps = (ARRIVAL, times.before(place), number), self._posting(place, number)
                        is_plain = times.delay_ns > lag_ns and times.order.keys().isdisjoint(steps)
                        total += is_plain or self._is_late(place, number)
        return total
