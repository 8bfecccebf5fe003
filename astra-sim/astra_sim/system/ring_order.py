"""The order of events of one time in a ring whose times are known.

Of two events of one time the one that was set earlier runs first, and of two that were set at one
time that whose setting event ran first.
"""

from bisect import bisect_left
from operator import le

from astra_sim.system.ring_times import (
    ARRIVAL,
    LATE,
    MOVE,
    REDUCTION,
    RELEASE,
    RingTimes,
    Step,
)


class StepOrder:
    """Comparison of events of a ring."""

    def __init__(self, times: RingTimes) -> None:
        self._times = times
        self._found: dict[tuple[Step, Step], int] = {}

    def compare(self, one: Step, other: Step) -> int:
        """Negative if an event runs before another: at one time, if what has set it has."""
        turn, other_turn, order, begins = 0, 0, self._times.order, self._times.begins
        pairs, sooner = list[tuple[Step, Step]](), 0
        while not sooner and one != other:
            sooner = self._found.get((one, other), 0) or (
                self._times.time_ns(one) - self._times.time_ns(other)
                or order.get(one, len(order)) - order.get(other, len(order))
                or self._times.set_ns(one) - self._times.set_ns(other)
                or begins.get(one, len(begins)) - begins.get(other, len(begins))
            )
            if not sooner:
                pairs.append((one, other))
                if (passed := self._times.num_passed(one, other)) > 0:
                    one, other = (self._times.posting_back(step, passed) for step in (one, other))
                else:
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
            return self._times.posting(place, number), 2
        if kind is MOVE:
            if not number % self._times.num_steps:
                return self._times.posting(place, number - 1), 0
            if self._is_late(place, number - 1):
                return (LATE, place, number - 1), 0
            return (ARRIVAL, self._times.before(place), number - 1), 0
        before = number - 1 - self._times.is_end(number - 1)
        posting, release = self._times.posting(place, number), (RELEASE, place, before)
        if (before := place - len(self._times.members)) >= 0:
            posting = ARRIVAL, before, number
        waits = bool(self._times.links) and self.compare(posting, release) < 0
        return (release if waits else posting), kind is RELEASE

    def _is_late(self, place: int, number: int) -> bool:
        """Whether a place posts the receive of a message when it is there already."""
        arrival = ARRIVAL, self._times.before(place), number
        return self.compare(arrival, self._times.posting(place, number)) < 0

    def num_late(self, until_ns: int) -> int:
        """Receives that are posted before a time with their messages there already."""
        times, total = self._times, 0
        for place, posts in enumerate(times.posts):
            arrivals = [start + times.delay_ns for start in times.starts[times.before(place)]]
            past = posts[: bisect_left(posts, until_ns)]
            total += sum(map(le, arrivals, past))
            ends = slice(times.num_sends, None, times.num_steps)
            total -= sum(map(le, arrivals[ends], past[ends]))
        for kind, place, number in times.order:
            arrival = ARRIVAL, times.before(place), number
            if (kind, place, number) == times.posting(place, number) and (
                times.time_ns(arrival) == times.post_ns(place, number) < until_ns
            ):
                total -= not self._is_late(place, number)
        return total
