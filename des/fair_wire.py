"""One direction of a link whose messages leave side by side, each with an equal part of it."""

import math
from collections.abc import Generator, Sequence
from heapq import heappop, heappush
from itertools import count

import simpy

from des.clock import Clock
from des.conditions import Conditions, Offer
from des.weather import StarvationError


class FairMedium:
    """Divides itself among the messages on its wires, anew whenever one joins or has left.

    It carries one direction of a link, or both where they share it (half duplex).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wires: list[FairWire] = []
        self._joined = clock.event()
        clock.process(self._serve())

    def add(self, conditions: Conditions) -> "FairWire":
        """Make a wire that runs over this medium."""
        wire = FairWire(conditions, self)
        self._wires.append(wire)
        return wire

    def notice(self) -> None:
        """Divide anew: a message has joined one of the wires."""
        if not self._joined.triggered:
            self._joined.succeed()

    def _serve(self) -> Generator[simpy.Event, None, None]:
        """Give out rates, wait for the next change, let go of what has wholly left."""
        clock = self._clock
        while True:
            until_s = self._divide(clock.now)
            if until_s < math.inf:
                yield self._joined | clock.at(until_s)
            else:
                yield self._joined
            if self._joined.triggered:
                self._joined = clock.event()
            for wire in self._wires:
                wire.let_go(clock.now)

    def _divide(self, now_s: float) -> float:
        """Set the rates of all wires in use; they hold until the returned time at most. [s]"""
        wires = [wire for wire in self._wires if wire.num_sending]
        offers = [wire.conditions.at(now_s) for wire in wires]
        part = equal_part(
            [
                (wire.num_sending, _largest_part(offer))
                for wire, offer in zip(wires, offers, strict=True)
            ]
        )
        until_s = math.inf
        for wire, offer in zip(wires, offers, strict=True):
            rate = min(offer.goodput_bytes_per_s, part * offer.bandwidth_bytes_per_s)
            if rate == 0 and offer.until_s == math.inf:
                raise StarvationError(
                    f"{wire.conditions.name}: is down for ever from {now_s:g} s on, "
                    f"with {wire.num_sending} messages to send"
                )
            wire.set_rate(rate, now_s)
            until_s = min(until_s, offer.until_s, wire.next_end_s())
        return max(until_s, now_s)  # rounding may have lifted the level too far


class FairWire:
    """Messages on their way over one direction of a link, all at the same rate.

    As the rates are equal, what counts is how many bytes a message has got that has been there all
    the time: the level. A message leaves when the level has risen by its size.
    """

    def __init__(self, conditions: Conditions, medium: FairMedium) -> None:
        self.conditions = conditions
        self._medium = medium
        self._sending: list[tuple[float, int, simpy.Event]] = []
        self._numbers = count()
        self._level_bytes = self._since_s = self._rate_bytes_per_s = 0.0
        self._joined = False
        self._num_present = 0
        self._busy_since_s = 0.0
        self.busy_s = 0.0
        self.num_bytes = 0.0
        self.num_messages = 0

    @property
    def num_sending(self) -> int:
        """Messages that have bytes to send now."""
        return len(self._sending)

    def transmit(
        self, clock: Clock, num_bytes: float
    ) -> Generator[simpy.Event, None, tuple[float, float, float]]:
        """Spend the overhead, send the bytes beside those of others, let them fly.

        Returns
        -------
        tuple
            When the message comes, when its last byte has left, when it has arrived. [s]
        """
        start_s = clock.now
        self._come(start_s, num_bytes)
        if self.conditions.message_overhead_s > 0:
            yield clock.at(start_s + self.conditions.message_overhead_s)
        yield self._join(clock, num_bytes)
        end_s = clock.now
        self._go(end_s)
        arrival_s = end_s + self.conditions.at(end_s).latency_s
        yield clock.at(arrival_s)
        return start_s, end_s, arrival_s

    def set_rate(self, rate_bytes_per_s: float, now_s: float) -> None:
        """Give each message another rate; an equal one goes on undisturbed, to the last bit."""
        self._joined = False
        if rate_bytes_per_s != self._rate_bytes_per_s:
            self._level_bytes, self._since_s = self._level_at(now_s), now_s
            self._rate_bytes_per_s = rate_bytes_per_s

    def next_end_s(self) -> float:
        """When the next message will have left if the rate holds. [s]"""
        if self._rate_bytes_per_s == 0:
            return math.inf
        return self._since_s + (self._sending[0][0] - self._level_bytes) / self._rate_bytes_per_s

    def let_go(self, now_s: float) -> None:
        """Tell the messages whose last byte has left, those that joined first before others.

        Once one has joined nobody else leaves at the rate of before, even if it is empty.
        """
        while self._sending and not self._joined and self.next_end_s() <= now_s:
            self._level_bytes, _, left = heappop(self._sending)
            self._since_s = now_s
            left.succeed()

    def _join(self, clock: Clock, num_bytes: float) -> simpy.Event:
        self.let_go(clock.now)
        if not self._sending:
            self._level_bytes = self._rate_bytes_per_s = 0.0
            self._since_s = clock.now
        left = clock.event()
        level_bytes = self._level_at(clock.now)
        heappush(self._sending, (level_bytes + num_bytes, next(self._numbers), left))
        self._joined = True
        self._medium.notice()
        return left

    def _level_at(self, time_s: float) -> float:
        return self._level_bytes + self._rate_bytes_per_s * (time_s - self._since_s)

    def _come(self, time_s: float, num_bytes: float) -> None:
        if self._num_present == 0:
            self._busy_since_s = time_s
        self._num_present += 1
        self.num_bytes += num_bytes
        self.num_messages += 1

    def _go(self, time_s: float) -> None:
        self._num_present -= 1
        if self._num_present == 0:
            self.busy_s += time_s - self._busy_since_s


def equal_part(groups: Sequence[tuple[int, float]]) -> float:
    """Part of a medium for each message that can use it, where others leave some of theirs.

    Parameters
    ----------
    groups
        Number of messages, and the largest part that each of them can use.

    Returns
    -------
    float
        The part of every message that can use so much; the others get the largest they can use.
        1 where none of them can.

    Notes
    -----
    Max-min fairness by progressive filling [1]_.

    References
    ----------
    .. [1] D. Bertsekas and R. Gallager, "Data Networks", 2nd edition, 1992, section 6.5.2.

    Examples
    --------
    Of three messages one can use a tenth only, so the others get 0.45 each.

    >>> equal_part([(1, 0.1), (2, 1.0)])
    0.45
    """
    left, num_messages = 1.0, sum(num for num, _ in groups)
    for num, largest in sorted(groups, key=lambda group: group[1]):
        part = left / num_messages
        if largest >= part:
            return part
        left -= num * largest
        num_messages -= num
    return 1.0


def _largest_part(offer: Offer) -> float:
    """What one message can use of the medium: all of it, less under TCP, nothing when down."""
    if offer.bandwidth_bytes_per_s == 0:
        return 0.0
    return offer.goodput_bytes_per_s / offer.bandwidth_bytes_per_s
