"""Simulated time: a SimPy environment whose events happen at computed times, and arrivals."""

from heapq import heappush

import simpy
from simpy.events import NORMAL


class Clock(simpy.Environment):
    """Lets events happen at a time, where SimPy adds a delay to the present and rounds.

    So ``now`` is exactly the time that was computed, and what was computed to happen at the same
    time, or in an order, does.
    """

    def at(self, time_s: float, event: simpy.Event | None = None) -> simpy.Event:
        """Schedule an event, by default a new one, for a time that is not yet past."""
        event = simpy.Event(self) if event is None else event
        assert time_s >= self._now, f"{time_s!r} is past, it is {self._now!r}"
        event._ok, event._value = True, None
        heappush(self._queue, (time_s, NORMAL, next(self._eid), event))
        return event


class Message(simpy.Event):
    """An activation or gradient on its way to a stage; the event is its arrival."""

    arrival_s: float

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._clock = clock

    def arrive_at(self, time_s: float) -> None:
        """Let the event happen at a time; called once."""
        self.arrival_s = time_s
        self._clock.at(time_s, self)
