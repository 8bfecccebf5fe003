"""Simulated time: a SimPy environment whose events happen at computed times, in one fixed order.

A process of SimPy's manual says ``yield env.timeout(delay)``; here it says ``yield clock.at(time,
rank)``. There are two reasons. A delay is added to the present, which rounds; a time that was
computed is kept to the last bit. And SimPy orders events of equal times by who queued first; here
they go by rank: a class, then a number within the class. A rank of its own for everything that can
happen makes the order of a simulation a matter of its rules, not of how it is written.

This is the only module that touches protected members of SimPy: its queue and serial numbers, and
the outcome of an event, as `simpy.Timeout` does.
"""

from heapq import heappush
from typing import cast

import simpy
from simpy.events import NORMAL

MESSAGE, WORKER, MEMBER, MEDIUM = (class_number << 50 for class_number in (1, 2, 3, 4))
"""Ranks of number 0, in order: a message ends a phase of its way, a worker its operation, a member
of a gradient exchange what it did alone; a medium is divided again. All are above SimPy's own,
so processes begin, end and wake each other up before anything else of the same time.
"""

NUMBERS_PER_JOB = 1 << 32
"""Numbers of each event class per job, where several jobs run on a clock."""


class Clock(simpy.Environment):
    """Environment in which events happen at a time and rank, from time 0 on."""

    def __init__(self) -> None:
        super().__init__(initial_time=0.0)

    def at(self, time_s: float, rank: int = NORMAL) -> simpy.Event:
        """Return an event that happens at a time that is not yet past."""
        event = self.event()
        self.schedule_at(event, time_s, rank)
        return event

    def schedule_at(self, event: simpy.Event, time_s: float, rank: int) -> None:
        """Let an event that nothing has triggered yet happen at a time that is not yet past."""
        assert time_s >= self.now, f"{time_s!r} is past, it is {self.now!r}"
        assert not event.triggered, f"{event!r} has been triggered already"
        event._ok, event._value = True, None
        queue = cast(list[tuple[float, int, int, simpy.Event]], self._queue)
        heappush(queue, (time_s, rank, next(self._eid), event))

    def next_event(self) -> tuple[float, int]:
        """Time and rank of the next event; there must be one."""
        time_s, rank, _, _ = cast(list[tuple[float, int, int, simpy.Event]], self._queue)[0]
        return time_s, rank

    def run_out(self) -> None:
        """Let everything happen that is going to."""
        self.run()


class Moment(simpy.Event):
    """An event that has its rank before anybody knows when it happens."""

    def __init__(self, clock: Clock, rank: int) -> None:
        super().__init__(clock)
        self.clock = clock
        self.rank = rank

    def happen_at(self, time_s: float) -> None:
        """Happen at a time that is not yet past."""
        self.clock.schedule_at(self, time_s, self.rank)


class Message(Moment):
    """An activation, a gradient or model state on its way; the event is its arrival.

    ``rank`` is that of all phases of its way; in a `des.Transfer` the message is known by its
    ``microbatch``.
    """

    def __init__(self, clock: Clock, number: int, microbatch: int) -> None:
        super().__init__(clock, MESSAGE + number)
        self.microbatch = microbatch
