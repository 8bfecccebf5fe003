"""One event for all members of rings that do the same at the same ticks, right after each other."""

from typing import TYPE_CHECKING

from astra_sim.core.events import Action, Event, EventQueue

if TYPE_CHECKING:
    from astra_sim.system.rings import RingExchange


class RingInStep:
    """All exchanges of rings that do the same in turn; the first one keeps the state of all.

    Each event runs those of all members in their order. While it waits to move or reduce, another
    timer of a member may join that member's batch: the members then part (``split``).
    """

    __slots__ = (
        "_delay_ns",
        "_first",
        "_move_ns",
        "_order",
        "_queue",
        "_reduces",
        "_reduction_ns",
        "_sent",
        "_time_ns",
        "ranks",
    )

    def __init__(self, queue: EventQueue, order: "list[RingExchange]") -> None:
        self._queue = queue
        self._order = order
        """Members in the order in which they started, or received when they fell into step."""
        self._first = first = order[0]
        self._delay_ns = first.delay_ns
        self._move_ns = first.move_ns
        self._reduction_ns = first.reduction_ns
        self._sent = 0
        self._time_ns = 0
        self._reduces = False
        self.ranks = frozenset([one.rank for one in order])

    def first_move(self) -> Event:
        """Event of the first local moves, counted already, which the caller puts in their place."""
        return self._begin, None

    def insert_arrival(self) -> None:
        """Have all messages arrive after their delay."""
        self._queue.at(self._queue.now + self._delay_ns, self._arrive, None)

    def split(self) -> None:
        """Put timers of each member in place of the one for all."""
        due = self._queue.due[self._time_ns]
        owners = [getattr(action, "__self__", None) for action, _ in due]
        place = next(number for number, owner in enumerate(owners) if owner is self)
        self._forget()
        due[place : place + 1] = [
            one.timer_at(self._time_ns, reduces=self._reduces) for one in self._parted()
        ]

    def _begin(self, _: None) -> None:
        self._send(self._begin)

    def _arrive(self, _: None) -> None:
        self._queue.num_events += len(self._order) - 1
        self._reduces = self._first.take_turn()
        self._wait(self._move_ns)

    def _wait(self, delay_ns: int) -> None:
        """Set the timers of all members, or part if one has others at that time."""
        queue = self._queue
        self._time_ns = time_ns = queue.now + delay_ns
        if time_ns in queue.due and self._is_taken(time_ns):
            for one in self._parted():
                one.set_timer(delay_ns, reduces=self._reduces)
        else:
            queue.at(time_ns, self._run, None)
            queue.merged.setdefault(time_ns, []).append(self)

    def _run(self, _: None) -> None:
        """Reduce, send or end, in all members."""
        queue = self._queue
        self._forget()
        queue.num_events += len(self._order) - 1
        if self._reduces:
            self._reduces = False
            if self._reduction_ns:
                self._wait(self._reduction_ns)
                return
            queue.num_events += len(self._order)
        if self._first.has_sends_left:
            self._send(self._run)
            return
        for one in self._in_turn():
            one.end_alone()

    def _send(self, running: Action) -> None:
        """Send, and do all further steps at once that end before anything else happens."""
        queue, first = self._queue, self._first
        quiet_until_ns = queue.quiet_until_ns(running)
        time_ns = queue.now
        while True:
            self._sent += 1
            first.count_send()
            reduces = first.reduces_next
            next_ns = time_ns + self._delay_ns + self._move_ns + reduces * self._reduction_ns
            if next_ns >= quiet_until_ns or not first.has_sends_left:
                break
            time_ns = next_ns
            first.take_turn()
            queue.num_events += len(self._order) * (2 + reduces)
        queue.at(time_ns + self._delay_ns, self._arrive, None)

    def _is_taken(self, time_ns: int) -> bool:
        """Whether a timer of a member is set for a time, alone or with those of another ring."""
        for one in self._order:
            if one.timers.has_batch_at(time_ns):
                return True
        merged = self._queue.merged.get(time_ns, ())
        return any(not one.ranks.isdisjoint(self.ranks) for one in merged)

    def _forget(self) -> None:
        merged = self._queue.merged[self._time_ns]
        merged.remove(self)
        if not merged:
            del self._queue.merged[self._time_ns]

    def _parted(self) -> "list[RingExchange]":
        """Give every member the state of the first, and a token; return them in their order."""
        for one in self._order:
            one.resume(self._first)
        return self._in_turn()

    def _in_turn(self) -> "list[RingExchange]":
        """Members in their present order.

        With each message that was sent the turn of a member has passed to the one it sends to.
        """
        of_rank = {one.rank: one for one in self._order}
        return [of_rank[one.target(self._sent)] for one in self._order]
