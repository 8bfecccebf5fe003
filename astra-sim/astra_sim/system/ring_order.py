"""The order of events of one time in a ring whose times are known, and what is due of it.

Of two events of one time the one that was set earlier runs first, and of two that were set at one
time that whose setting event ran first.
"""

from bisect import bisect_left
from collections import Counter
from operator import le

from astra_sim.core.events import Event, Timers
from astra_sim.network.links import NetworkLink, Transit
from astra_sim.system.ring_times import (
    ARRIVAL,
    LATE,
    MOVE,
    PAST,
    REDUCTION,
    RELEASE,
    RingTimes,
    Step,
)


class MixedError(Exception):
    """A timer of a ring is due in one batch with another, or a link carries something else."""


def read(times: RingTimes) -> None:
    """Take out of the queue what is due of a ring whose members are all there.

    Raises
    ------
    MixedError
        If a time, a timer or a link has something else, too.
    """
    reading = _Reading(times)
    due_ns = dict[Step, int]()
    for time_ns in sorted(times.queue.due):
        steps = [reading.step_of(event) for event in times.queue.due[time_ns]]
        due_ns.update({step: time_ns for step in steps if step})
        if None in steps and (any(steps) or time_ns == times.queue.now):
            raise MixedError
    for (kind, place, number), time_ns in due_ns.items():
        arrives_ns = due_ns.get((ARRIVAL, place, number), PAST)
        if kind is RELEASE and arrives_ns - times.delay_ns != time_ns - times.wire_ns:
            raise MixedError
    times.take_over(due_ns, sent=reading.sent, started=reading.started)


class _Reading:
    """Messages that a ring has sent, and the steps that its events are."""

    def __init__(self, times: RingTimes) -> None:
        self._times = times
        self.sent = [times.num_sends - one.counts[0] for one in times.members]
        self.started, self._crossed = self._count()
        self._places: dict[object, int] = {one: place for place, one in enumerate(times.members)}
        self._places |= {link: place for place, link in enumerate(times.links)}
        n, sends = len(times.members), times.messages.sends
        self._landing = {
            id(message): (ARRIVAL, times.last + place, self.sent[(place + 1) % n] + more)
            for place, key in enumerate(times.keys[0])
            for more, message in enumerate(sends.get(key, ()))
        }

    def _count(self) -> tuple[list[int], list[int]]:
        """Messages that each link has begun, and those that it has forwarded to the next."""
        due = (event for events in self._times.queue.due.values() for event in events)
        owners = (getattr(action, "__self__", None) for action, _ in due)
        crossing = Counter(one.links[one.number - 1] for one in owners if isinstance(one, Transit))
        started, crossed, offered = list[int](), list[int](), self.sent.copy()
        for link in self._times.links:
            started.append(offered[len(started)] - len(link.waiting or ()))
            crossed.append(started[-1] - crossing[link])
            offered.append(crossed[-1])
        return started or offered, crossed

    def step_of(self, event: Event) -> Step | None:
        """Step that an event is; None if it is another's."""
        transit = getattr(event[0], "__self__", None)
        arrival = transit.arrival if isinstance(transit, Transit) else event
        step = self._landing.get(id(arrival)) or self._other_step_of(arrival)
        if step and isinstance(transit, Transit):
            place = self._places[transit.links[transit.number - 1]]
            step = ARRIVAL, place, self._crossed[place]
            self._crossed[place] += 1
        return step

    def _other_step_of(self, event: Event) -> Step | None:
        owner = getattr(event[0], "__self__", None)
        if isinstance(owner, Timers):
            owners = [getattr(action, "__self__", None) for action, _ in event[1]]
            place = next((self._places[one] for one in owners if one in self._places), None)
            if place is None:
                return None
            if len(owners) > 1:
                raise MixedError
            number = self.sent[place]
            is_second = event[1][0][0].__name__ != "_reduce" and self._times.reduction_ns(number)
            return (REDUCTION if is_second else MOVE), place, number
        if owner not in self._places:
            return None
        place = self._places[owner]
        if isinstance(owner, NetworkLink):
            return RELEASE, place, self.started[place] - 1
        return ARRIVAL, self._times.before(place), self.sent[place] - 1


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
            arrivals = times.arrivals[times.before(place)]
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
