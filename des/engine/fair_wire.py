"""One direction of a link whose messages leave side by side, each with an equal part of it."""

import math
from collections.abc import Generator, Mapping, Sequence
from heapq import heappop, heappush

import simpy

from des.clock import MEDIUM, Clock
from des.costs.start_up import start_up_s
from des.dynamics.link_course import StarvationError
from des.engine.conditions import Conditions, LinkPeriod
from des.engine.filling import Group, max_min_rates
from des.engine.wire import Passage


class FairMedium:
    """Medium that its messages share, divided again whenever one joins or has left.

    It carries one direction of a link, or both where they share it (half duplex), for one job or
    several. ``number`` tells it from other media.
    """

    def __init__(self, clock: Clock, number: int) -> None:
        self._clock = clock
        self._rank = MEDIUM + number
        self._wires: list[FairWire] = []
        self._gate_rates: dict[str, float] = {}
        self._due_s = math.inf

    def add(self, conditions: Conditions, gates: Mapping[str, float]) -> "FairWire":
        """Make a wire that runs over this medium, and through gates by name. [bytes/s]"""
        wire = FairWire(self._clock, conditions, self, (conditions.name, *gates))
        self._gate_rates.update(gates)
        self._wires.append(wire)
        return wire

    def divide_at(self, time_s: float) -> None:
        """Divide the medium at a time, unless an earlier division is due."""
        if time_s < self._due_s:
            self._due_s = time_s
            self._clock.at(time_s, self._rank).callbacks.append(self._serve)

    def _serve(self, _: simpy.Event) -> None:
        """Let go of what has wholly left, give out rates until the next change."""
        now_s = self._clock.now
        if now_s != self._due_s:  # it was to happen earlier, and has
            return
        self._due_s = math.inf
        for wire in self._wires:
            wire.let_go(now_s)
        self.divide_at(self._divide(now_s))

    def _divide(self, now_s: float) -> float:
        """Set the rates of all wires in use; they hold until the returned time at most. [s]"""
        wires = [wire for wire in self._wires if wire.num_sending]
        offers = [wire.conditions.at(now_s) for wire in wires]
        until_s = math.inf
        rates = self._rates_through_gates if self._gate_rates else _rates_of_parts
        for wire, offer, rate in zip(wires, offers, rates(wires, offers), strict=True):
            if rate == 0 and offer.until_s == math.inf:
                raise StarvationError(
                    f"{wire.conditions.name}: is down for ever from {now_s:g} s on, "
                    f"with {wire.num_sending} messages to send"
                )
            wire.set_rate(rate, now_s)
            until_s = min(until_s, offer.until_s, wire.next_end_s())
        return max(until_s, now_s)  # rounding may have lifted the level too far

    def _rates_through_gates(
        self, wires: Sequence["FairWire"], offers: Sequence[LinkPeriod]
    ) -> list[float]:
        """Max-min fair rates of wires that have links and gates in common."""
        shared: dict[str, float] = dict(self._gate_rates)
        groups = []
        for wire, offer in zip(wires, offers, strict=True):
            shared[wire.shares[0]] = offer.bandwidth_bytes_per_s
            groups.append(Group(wire.num_sending, offer.goodput_bytes_per_s, wire.shares))
        return max_min_rates(groups, shared)


class FairWire:
    """Messages on their way over one direction of a link, all at the same rate.

    As the rates are equal, what counts is how many bytes a message has got that has been there all
    the time: the level. A message leaves when the level has risen by its size. ``shares`` are the
    link and its gates, which other wires may share.
    """

    def __init__(
        self,
        clock: Clock,
        conditions: Conditions,
        medium: FairMedium,
        shares: tuple[str, ...],
    ) -> None:
        self.conditions = conditions
        self.shares = shares
        self._clock = clock
        self._medium = medium
        self._sending: list[tuple[float, int, simpy.Event]] = []
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

    def carry(self, rank: int, num_bytes: float) -> Generator[simpy.Event, None, Passage]:
        """Spend overhead and start-up of a message, then send its bytes together with others.

        ``rank`` is that of the message, which no other one on this medium has.
        """
        clock, start_s = self._clock, self._clock.now
        delay_s = self.conditions.message_overhead_s
        if self.conditions.start_up is not None:
            delay_s += start_up_s(self.conditions.start_up, self.num_bytes, num_bytes)
        self._come(start_s, num_bytes)
        if delay_s > 0:
            yield clock.at(start_s + delay_s, rank)
        left = clock.event()
        self._join(rank, num_bytes, left)
        yield left
        end_s = clock.now
        return Passage(start_s, end_s, end_s + self.conditions.at(end_s).latency_s)

    def set_rate(self, rate_bytes_per_s: float, now_s: float) -> None:
        """Give each message another rate; an equal rate changes nothing, to the last bit."""
        self._joined = False
        if rate_bytes_per_s != self._rate_bytes_per_s:
            self._level_bytes, self._since_s = self._level_at(now_s), now_s
            self._rate_bytes_per_s = rate_bytes_per_s

    def next_end_s(self) -> float:
        """Time at which the next message has left if the rate holds. [s]"""
        if self._rate_bytes_per_s == 0:
            return math.inf
        return self._since_s + (self._sending[0][0] - self._level_bytes) / self._rate_bytes_per_s

    def let_go(self, now_s: float) -> None:
        """Let the messages fly whose last byte has left, in order.

        Once a message has joined, no other leaves at the earlier rate, even if it has no bytes.
        """
        while self._sending and not self._joined and self.next_end_s() <= now_s:
            self._level_bytes, _, left = heappop(self._sending)
            self._since_s = now_s
            self._go(now_s)
            left.succeed()

    def _join(self, rank: int, num_bytes: float, left: simpy.Event) -> None:
        """Send from now on, from the level of now; of equal levels the lowest rank leaves first."""
        now_s = self._clock.now
        self.let_go(now_s)
        if not self._sending:
            self._level_bytes = self._rate_bytes_per_s = 0.0
            self._since_s = now_s
        heappush(self._sending, (self._level_at(now_s) + num_bytes, rank, left))
        self._joined = True
        self._medium.divide_at(now_s)

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


def _rates_of_parts(wires: Sequence[FairWire], offers: Sequence[LinkPeriod]) -> list[float]:
    """Rates of a message of each wire where all have equal parts of one medium."""
    part = equal_part(
        [
            (wire.num_sending, _largest_part(offer))
            for wire, offer in zip(wires, offers, strict=True)
        ]
    )
    return [min(offer.goodput_bytes_per_s, part * offer.bandwidth_bytes_per_s) for offer in offers]


def _largest_part(offer: LinkPeriod) -> float:
    """Largest share of the medium for one message: all, less under TCP, none while down."""
    if offer.bandwidth_bytes_per_s == 0:
        return 0.0
    return offer.goodput_bytes_per_s / offer.bandwidth_bytes_per_s
