"""Simulated time: a SimPy environment whose events happen at computed times, in one fixed order.

What happens at the same time happens by rank: its class, then its number within the class. A rank
of its own for everything that can happen makes the order of a simulation a matter of its rules, not
of who asked first.
"""

from functools import partial
from heapq import heappop, heappush
from typing import cast

import simpy
from simpy.events import NORMAL

MESSAGE, WORKER, MEMBER, MEDIUM = (class_number << 50 for class_number in (1, 2, 3, 4))
"""Ranks of number 0, in order: a message ends a phase of its way, a worker its operation, a member
of a gradient exchange what it did alone; a medium divides itself anew. All are above SimPy's own.
"""


_Entry = tuple[float, int, int, simpy.Event]


class Clock(simpy.Environment):
    """Lets events happen at a time, where SimPy adds a delay to the present and rounds.

    So ``now`` is exactly the time that was computed, and what was computed to happen at the same
    time, or in an order, does.
    """

    def __init__(self) -> None:
        super().__init__()
        queue = cast(list[_Entry], self._queue)
        self.push = partial(heappush, queue)
        """Queues (time, rank, serial number, event): what `at` does, without its checks."""

    def at(self, time_s: float, rank: int = NORMAL) -> simpy.Event:
        """Return an event that happens at a time that is not yet past."""
        assert time_s >= self._now, f"{time_s!r} is past, it is {self._now!r}"
        event = simpy.Event(self)
        event._ok, event._value = True, None
        self.push((time_s, rank, next(self._eid), event))
        return event

    def run_out(self) -> None:
        """Let everything happen that is going to: SimPy's ``run()``, in one loop."""
        queue = self._queue
        while queue:
            self._now, _, _, event = heappop(queue)
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
            for callback in callbacks:
                callback(event)
            if not event._ok:
                raise event._value


class Moment(simpy.Event):
    """Something of a rank of its own that happens at computed times, and cannot fail.

    It is never queued twice for one time, so its serial number in the queue is 0.
    """

    env: Clock
    _ok, _value = True, None

    def __init__(self, clock: Clock, rank: int) -> None:
        self.env = clock
        self.callbacks = []
        self.rank = rank

    def happen_at(self, time_s: float) -> None:
        """Happen at a time that is not yet past."""
        clock = self.env
        assert time_s >= clock._now, f"{time_s!r} is past, it is {clock._now!r}"
        clock.push((time_s, self.rank, 0, self))

    def again_at(self, time_s: float) -> "Moment":
        """Happen at a time once more, for those who wait for it from now on."""
        self.callbacks = []
        self.happen_at(time_s)
        return self


class Message(Moment):
    """An activation, a gradient or model state on its way; the event is its arrival.

    ``rank`` is that of all its phases; a transfer is marked by ``microbatch``.
    """

    def __init__(self, clock: Clock, number: int, microbatch: int) -> None:
        self.env = clock
        self.callbacks = []
        self.rank = MESSAGE + number
        self.microbatch = microbatch

    def told(self) -> Moment:
        """Return what happens right after the arrival, when those who waited have gone on."""
        told = Moment(self.env, self.rank)
        self.callbacks.append(lambda _: told.happen_at(self.env.now))
        return told
