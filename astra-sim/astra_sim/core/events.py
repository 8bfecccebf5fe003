"""Order of events: a global list by due time, and each NPU's timers in batches of one tick."""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol

from astra_sim.files.errors import AbortError, NodeError

Action = Callable[[Any], None]
Event = list[Any] | tuple[Action, Any]
"""An action and its argument; those of a list may change until it is due."""
Log = Callable[[str, str, str], None]
"""Prints a line: name of the logger, level, message."""


class Merged(Protocol):
    """One event in place of a timer of each of several ranks."""

    ranks: frozenset[int]

    def split(self) -> None:
        """Put the timers of the ranks in its place."""
        ...


class EventQueue:
    """The global list: events of equal time run in the order in which they were inserted.

    An event inserted for the current time runs at the end of the current time's events.
    """

    __slots__ = ("due", "gathered", "last_ns", "merged", "now", "num_events", "times")

    def __init__(self) -> None:
        self.now = 0
        self.num_events = 0
        self.times: list[int] = []
        """Heap of the times at which events are due."""
        self.due: dict[int, list[Event]] = {}
        """Events of each of these times, in the order in which they run."""
        self.merged: dict[int, list[Merged]] = {}
        """Events that stand for timers of several ranks, by time."""
        self.gathered: dict[int, dict[Callable[[list[Any]], None], list[Any]]] = {}
        """Functions that are called before the events of a time, and their items."""
        self.last_ns: float = math.inf
        """Time after which no event is run."""

    def at(self, time_ns: int, action: Action, argument: Any) -> None:
        """Insert an event; the time must not lie before the current one."""
        self.insert(time_ns, (action, argument))

    def insert(self, time_ns: int, event: Event) -> None:
        """Insert an event that exists already."""
        due = self.due.get(time_ns)
        if due is None:
            self.due[time_ns] = [event]
            heappush(self.times, time_ns)
        else:
            due.append(event)

    def gather(self, time_ns: int, look: Callable[[list[Any]], None], item: Any) -> None:
        """Register an item for one call of ``look`` with all items of a time, before its events.

        The call may change those events; functions are called in the order of their first items.
        """
        self.gathered.setdefault(time_ns, {}).setdefault(look, []).append(item)

    def is_last_look(self, look: Callable[[list[Any]], None]) -> bool:
        """Whether no other function is to be called after this, now or later."""
        return len(self.gathered) == 1 and next(reversed(self.gathered[self.now])) == look

    def quiet_until_ns(self, action: Action) -> float:
        """Time before which no event is due, apart from those that the running event inserts.

        It is in the past if the event, known by its action, is not the last of its time.
        """
        if self.due[self.now][-1][0] != action:
            return -1
        return min(self.times[0], self.last_ns + 1) if self.times else self.last_ns + 1

    @property
    def next_ns(self) -> int | None:
        """Due time of the next event; None if there is none."""
        return self.times[0] if self.times else None

    def run(self, last_ns: float = math.inf) -> None:
        """Run until the list is empty, or what is left is due after ``last_ns``.

        Raises
        ------
        AbortError
            If an event is due at time 0, as the original insists that its first step advances.
        """
        times, events, gathered = self.times, self.due, self.gathered
        self.last_ns = last_ns
        if times and times[0] == 0:
            raise AbortError(
                "event list: the first event must be due after time 0, got one due at 0 ns; "
                "something at the start takes less than 1 ns"
            )
        while times and times[0] <= last_ns:
            now = self.now = heappop(times)
            due = events[now]
            if now in gathered:
                for look, items in list(gathered[now].items()):
                    look(items)
                del gathered[now]
            for action, argument in due:
                action(argument)
            self.num_events += len(due)
            del events[now]


class Timers:
    """Timers of an NPU: all of one tick are one event of the global list.

    The first timer for a tick inserts the event, later ones join it at its end, also while it
    runs. A ``NodeError`` ends the timer that raised it, not the batch.
    """

    __slots__ = ("_batches", "_due", "_log", "_times", "queue", "rank")

    def __init__(self, queue: EventQueue, rank: int, log: Log) -> None:
        self.queue = queue
        self.rank = rank
        self._log = log
        self._due = queue.due
        self._times = queue.times
        self._batches: dict[int, list[tuple[Action, Any]]] = {}

    def after(self, delay_ns: int, action: Action, argument: Any = None) -> None:
        """Set a timer ``delay_ns`` from now; 0 is allowed."""
        queue = self.queue
        time_ns = queue.now + delay_ns
        batch = self._batches.get(time_ns)
        if batch is not None:
            batch.append((action, argument))
            queue.num_events += 1
            return
        if time_ns in queue.merged and self.has_timers_at(time_ns):
            for merged in queue.merged[time_ns]:
                if self.rank in merged.ranks:
                    merged.split()
                    self.after(delay_ns, action, argument)
                    return
        batch = self._batches[time_ns] = [(action, argument)]
        due = self._due.get(time_ns)  # `queue.at` in place: nothing is called more often
        if due is None:
            self._due[time_ns] = [(self._run, batch)]
            heappush(self._times, time_ns)
        else:
            due.append((self._run, batch))

    def after_each(self, delay_ns: int, action: Action, argument: Any, count: int) -> None:
        """Set several equal timers, due after ``delay_ns``."""
        if count:
            self.after(delay_ns, action, argument)
            more = [(action, argument)] * (count - 1)
            self._batches[self.queue.now + delay_ns] += more
            self.queue.num_events += count - 1

    def has_batch_at(self, time_ns: int) -> bool:
        """Whether a timer is set for a time by itself."""
        return time_ns in self._batches

    def has_timers_at(self, time_ns: int) -> bool:
        """Whether a timer is set for a time, by itself or in one event with other timers."""
        merged = self.queue.merged.get(time_ns, ())
        return time_ns in self._batches or any(self.rank in one.ranks for one in merged)

    def has_alone(self, event: Event, count: int) -> bool:
        """Whether an event is that of these timers, and of exactly this number of them."""
        return event[0] == self._run and len(event[1]) == count

    def forget(self, time_ns: int) -> None:
        """Drop the timers for a time, whose event the caller drops."""
        del self._batches[time_ns]

    def event_of(self, time_ns: int, batch: list[tuple[Action, Any]]) -> Event:
        """Event of the first timers for a time, which the caller inserts."""
        self._batches[time_ns] = batch
        return self._run, batch

    def run_alone(self, action: Action, argument: Any) -> None:
        """Run the only timer of the present time, for which one event of several ranks stands."""
        batch = self._batches[self.queue.now] = [(action, argument)]
        self._run(batch)

    def _run(self, batch: list[tuple[Action, Any]]) -> None:
        for action, argument in batch:
            try:
                action(argument)
            except NodeError as error:
                self._log("system", "critical", f"sys[{self.rank}]: {error}")
        del self._batches[self.queue.now]
