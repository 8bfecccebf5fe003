"""Interface of a network to the layers above; a directed link with its queue, if it has any."""

from collections import deque
from collections.abc import Sequence
from heapq import heappush
from typing import Protocol

from astra_sim.core.events import Event, EventQueue
from astra_sim.network.bandwidth import RateProfile


class NetworkLink:
    """Carries one message at a time, first come first served, and stores it before it forwards.

    A message that starts at t arrives at ``t + floor(latency + bytes / rate)`` and frees the link
    at ``t + floor(bytes / rate)``; the two are truncated one by one and inserted in this order.
    Where the rate changes, ``bytes / rate`` is the time until its integral reaches the bytes.
    """

    __slots__ = (
        "_bytes_per_ns",
        "_changing",
        "_latency_ns",
        "_queue",
        "freed",
        "is_busy",
        "waiting",
    )

    def __init__(self, queue: EventQueue, *, latency_ns: float, rate: RateProfile) -> None:
        self._queue = queue
        self._latency_ns = latency_ns
        self._bytes_per_ns = rate.bytes_per_ns[0]
        self._changing = None if rate.is_constant else rate
        self.is_busy = False
        self.freed: Event = self._release, None
        """The event of its release."""
        self.waiting: deque[tuple[int, Event]] | None = None
        """Sizes of messages that wait and their events, if any ever did."""

    def times_ns(self, num_bytes: int) -> tuple[int | None, int]:
        """Time from start to arrival, None if the rate changes, and until the link is free."""
        wire_ns = num_bytes / self._bytes_per_ns
        return int(self._latency_ns + wire_ns) if self._changing is None else None, int(wire_ns)

    def carry(self, num_bytes: int, arrival: Event) -> None:
        """Take a message to the far end as soon as the link is free; ``arrival`` is its event."""
        if not self.is_busy:
            self.is_busy = True
            self._start(num_bytes, arrival)
        elif self.waiting is None:  # most links of a large network never have a queue
            self.waiting = deque(((num_bytes, arrival),))
        else:
            self.waiting.append((num_bytes, arrival))

    def _start(self, num_bytes: int, arrival: Event) -> None:
        queue = self._queue
        now = queue.now
        if self._changing is None:
            wire_ns = num_bytes / self._bytes_per_ns
        else:
            wire_ns = self._changing.transmission_ns(now, num_bytes)
        due = queue.due  # `queue.insert` in place, twice: every message comes here
        time_ns = now + int(self._latency_ns + wire_ns)
        if time_ns in due:
            due[time_ns].append(arrival)
        else:
            due[time_ns] = [arrival]
            heappush(queue.times, time_ns)
        time_ns = now + int(wire_ns)
        if time_ns in due:
            due[time_ns].append(self.freed)
        else:
            due[time_ns] = [self.freed]
            heappush(queue.times, time_ns)

    def _release(self, _: None) -> None:
        """Serve the head of the queue within the same tick."""
        if self.waiting:
            self._start(*self.waiting.popleft())
        else:
            self.is_busy = False


class Transit:
    """A message on a link that is not the last of its way."""

    __slots__ = ("arrival", "links", "num_bytes", "number")

    def __init__(
        self, links: Sequence[NetworkLink], number: int, num_bytes: int, arrival: Event
    ) -> None:
        self.links = links
        self.number = number
        self.num_bytes = num_bytes
        self.arrival = arrival

    def forward(self, _: None) -> None:
        """Offer the message to the next link."""
        self.number += 1
        is_last = self.number == len(self.links)
        event: Event = self.arrival if is_last else (self.forward, None)
        self.links[self.number - 1].carry(self.num_bytes, event)


def crossing(links: Sequence[NetworkLink], number: int, num_bytes: int, arrival: Event) -> Event:
    """Event of a message at the end of a link, the first of its way having number 1."""
    if number == len(links):
        return arrival
    return Transit(links, number, num_bytes, arrival).forward, None


class AnalyticalNetwork(Protocol):
    """Carries messages between NPUs; what it costs them is the model's affair."""

    def steady_delay_ns(self, source: int, target: int, num_bytes: int) -> int | None:
        """Time that such a message takes whenever it starts; None if that depends."""
        ...

    def links(self, source: int, target: int) -> tuple[NetworkLink, ...]:
        """Links on which messages between two NPUs queue, in the order of their way."""
        ...

    def send(
        self,
        source: int,
        target: int,
        num_bytes: int,
        arrival: Event,
    ) -> None:
        """Start a transfer now; ``arrival`` is the event at its end, changeable until then.

        Raises
        ------
        AbortError
            If there is no NPU ``target``, or a message to itself has no link to travel.
        UsageError
            If a message to itself is sent over several dimensions of the unaware network.
        """
        ...
