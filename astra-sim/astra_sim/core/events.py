"""Order of events: a global list by due time, and each NPU's timers in batches of one tick."""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from astra_sim.files.errors import AbortError, NodeError

Action = Callable[[Any], None]
Log = Callable[[str, str, str], None]
"""Prints a line: name of the logger, level, message."""


class EventQueue:
    """The global list: events of equal time run in the order in which they were inserted.

    An event inserted for the current time runs at the end of the current time's events.
    """

    __slots__ = ("_due", "_times", "now", "num_events")

    def __init__(self) -> None:
        self.now = 0
        self.num_events = 0
        self._times: list[int] = []
        self._due: dict[int, list[tuple[Action, Any]]] = {}

    def at(self, time_ns: int, action: Action, argument: Any) -> None:
        """Insert an event; the time must not lie before the current one."""
        due = self._due.get(time_ns)
        if due is None:
            self._due[time_ns] = [(action, argument)]
            heappush(self._times, time_ns)
        else:
            due.append((action, argument))

    @property
    def next_ns(self) -> int | None:
        """Due time of the next event; None if there is none."""
        return self._times[0] if self._times else None

    def run(self, last_ns: float = math.inf) -> None:
        """Run until the list is empty, or what is left is due after ``last_ns``.

        Raises
        ------
        AbortError
            If an event is due at time 0, as the original insists that its first step advances.
        """
        times, events = self._times, self._due
        if times and times[0] == 0:
            raise AbortError(
                "event list: the first event must be due after time 0, got one due at 0 ns; "
                "something at the start takes less than 1 ns"
            )
        while times and times[0] <= last_ns:
            self.now = heappop(times)
            due = events[self.now]
            for action, argument in due:
                action(argument)
            self.num_events += len(due)
            del events[self.now]


class Timers:
    """Timers of an NPU: all of one tick are one event of the global list.

    The first timer for a tick inserts the event, later ones join it at its end, also while it
    runs. A ``NodeError`` ends the timer that raised it, not the batch.
    """

    __slots__ = ("_batches", "_log", "queue", "rank")

    def __init__(self, queue: EventQueue, rank: int, log: Log) -> None:
        self.queue = queue
        self.rank = rank
        self._log = log
        self._batches: dict[int, list[tuple[Action, Any]]] = {}

    def after(self, delay_ns: int, action: Action, argument: Any = None) -> None:
        """Set a timer ``delay_ns`` from now; 0 is allowed."""
        queue = self.queue
        time_ns = queue.now + delay_ns
        batch = self._batches.get(time_ns)
        if batch is None:
            self._batches[time_ns] = [(action, argument)]
            queue.at(time_ns, self._run, time_ns)
        else:
            batch.append((action, argument))

    def _run(self, time_ns: int) -> None:
        batch = self._batches[time_ns]
        for action, argument in batch:
            try:
                action(argument)
            except NodeError as error:
                self._log("system", "critical", f"sys[{self.rank}]: {error}")
        self.queue.num_events += len(batch) - 1
        del self._batches[time_ns]
