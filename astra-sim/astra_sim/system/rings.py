"""Ring exchanges, and what is simulated of them for all members at once.

On a network without congestion the members of a ring soon do the same at the same ticks, right
after each other. From then on one event stands for those of all members: the times and the order
of everything else stay what they are.
"""

from collections.abc import Callable

from astra_sim.core.events import Event, EventQueue, Timers
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.system.exchanges import Exchange, Token, ring_bytes
from astra_sim.system.phases import PhaseRun

FEWEST_SENDS = 2
"""Sends that must be left to make it worth while to go on in step."""


class RingExchange(Exchange):
    """Always the next neighbour, from the one behind."""

    __slots__ = ("_delay_ns", "_is_up", "_members", "_position", "_token")

    def __init__(self, run: PhaseRun) -> None:
        plan = run.phase.plan
        members, n = plan.members, len(plan.members)
        super().__init__(
            run,
            message_bytes=ring_bytes(plan.kind, run.num_bytes, n),
            sends={
                CollectiveType.ALL_REDUCE: 2 * (n - 1),
                CollectiveType.REDUCE_SCATTER: n - 1,
                CollectiveType.ALL_GATHER: n - 1,
                CollectiveType.ALL_TO_ALL: n * (n - 1) // 2,
            }[plan.kind],
            width=1,
            second=n - 1,
        )
        step = 1 if run.phase.is_up else -1
        self._position = position = plan.position
        self._members = members
        self._is_up = run.phase.is_up
        num_bytes = self._message_bytes
        target = members[(position + step) % n]
        self._token = (
            (run.tag, self._rank, target, num_bytes),
            (run.tag, members[(position - step) % n], self._rank, num_bytes),
        )
        self._delay_ns: int | None = None
        if self._bus is None and self._move_ns:
            self._delay_ns = self._messages.steady_delay_ns(self._rank, target, num_bytes)

    def _next_token(self) -> Token:
        return self._token

    def _moved(self, num_bytes: int | None) -> None:
        """Send as others do; the last member of a ring in step leaves the rest to one for all."""
        super()._moved(num_bytes)
        if self._delay_ns and self._sends_left >= FEWEST_SENDS:
            queue, n = self._timers.queue, len(self._members)
            arrivals = queue.due[queue.now + self._delay_ns]
            if len(arrivals) < n:
                return
            first = getattr(arrivals[-n][0], "__self__", None)
            if isinstance(first, RingExchange) and first._token[0][0] == self._token[0][0]:
                self._join_others(queue, [event[0] for event in arrivals[-n:]])

    def _join_others(self, queue: EventQueue, arrivals: list[Callable[[None], None]]) -> None:
        """Put one arrival in place of the last ones, if these are of all members in one state."""
        order: list[RingExchange] = []
        for arrival in arrivals:
            one = getattr(arrival, "__self__", None)
            if not isinstance(one, RingExchange) or one._state() != self._state():
                return
            order.append(one)
        if {one._position for one in order} == set(range(len(self._members))):
            assert self._delay_ns is not None
            del queue.due[queue.now + self._delay_ns][-len(order) :]
            RingInStep(queue, order, self._delay_ns).insert_arrival()

    def _state(self) -> tuple[object, ...]:
        """All that the next steps depend on, and what the exchange is part of."""
        return (
            *(self._tag, self._members, self._is_up, self._delay_ns, self._move_ns),
            *(self._message_bytes, self._second_round),
            *(self._reduces_in_even, self._reduces_in_odd),
            *(self._credits, len(self._tokens), *self._counts()),
        )

    def _counts(self) -> tuple[int, int, bool, int]:
        """Counters that change from step to step."""
        return self._plain_left, self._others_left, self._is_odd, self._sends_left

    def resume(self, like: "RingExchange", *, has_token: bool) -> None:
        """Continue by itself from the state of another member."""
        self._plain_left, self._others_left, self._is_odd, self._sends_left = like._counts()
        if has_token:
            self._tokens.append(self._token)

    def take_turn(self) -> bool:
        """Count a token for all members; tell whether it reduces."""
        if not self._plain_left and not self._others_left:
            self._plain_left = 1
            self._others_left = self._second_round
            self._is_odd = not self._is_odd
        if self._plain_left:
            self._plain_left = 0
            return False
        self._others_left -= 1
        return self._reduces_in_odd if self._is_odd else self._reduces_in_even

    def count_send(self) -> None:
        """Count a send for all members."""
        self._sends_left -= 1

    @property
    def has_sends_left(self) -> bool:
        """Whether another message follows the one that arrives."""
        return self._sends_left > 0

    @property
    def move_ns(self) -> int:
        """Time of a local move."""
        return self._move_ns

    @property
    def reduction_ns(self) -> int:
        """Time of a reduction after it."""
        return self._settings.reduction_ns(self._message_bytes)

    @property
    def rank(self) -> int:
        """NPU of the exchange."""
        return self._rank

    def after_message(self) -> None:
        """Do what a message received entails."""
        self._received(None)

    @property
    def timers(self) -> Timers:
        """Timers of the NPU."""
        return self._timers

    def set_timer(self, delay_ns: int, *, reduces: bool) -> None:
        """Set the timer of a local move or of the reduction after it."""
        self._timers.after(delay_ns, self._reduce if reduces else self._moved, self._message_bytes)

    def timer_at(self, time_ns: int, *, reduces: bool) -> Event:
        """Event of such a timer, which is the NPU's first for a time."""
        done = self._reduce if reduces else self._moved
        return self._timers.batch_of(time_ns, done, self._message_bytes)


class RingInStep:
    """All exchanges of a ring that do the same in turn; the first one keeps the state of all.

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
        "_timers",
        "ranks",
    )

    def __init__(self, queue: EventQueue, order: list[RingExchange], delay_ns: int) -> None:
        self._queue = queue
        self._delay_ns = delay_ns
        self._move_ns = order[0].move_ns
        self._reduction_ns = order[0].reduction_ns
        self._timers = [one.timers for one in order]
        self._order = order
        """Members in the order in which they received when they fell into step."""
        self._first = order[0]
        self._sent = 0
        self._time_ns = 0
        self._reduces = False
        self.ranks = frozenset(one.rank for one in order)

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
            one.timer_at(self._time_ns, reduces=self._reduces)
            for one in self._parted(has_token=True)
        ]

    def _arrive(self, _: None) -> None:
        self._queue.num_events += len(self._order) - 1
        if self._first.has_sends_left:
            self._reduces = self._first.take_turn()
            self._wait(self._move_ns)
            return
        for one in self._parted(has_token=False):  # the rest of the phase concerns others, too
            one.after_message()

    def _wait(self, delay_ns: int) -> None:
        """Set the timers of all members, or part if one has others at that time."""
        queue = self._queue
        self._time_ns = time_ns = queue.now + delay_ns
        if time_ns in queue.due and self._is_taken(time_ns):
            for one in self._parted(has_token=True):
                one.set_timer(delay_ns, reduces=self._reduces)
        else:
            queue.at(time_ns, self._run, None)
            queue.merged.setdefault(time_ns, []).append(self)

    def _run(self, _: None) -> None:
        """Reduce or send, in all members."""
        queue = self._queue
        self._forget()
        queue.num_events += len(self._order) - 1
        if self._reduces:
            self._reduces = False
            if self._reduction_ns:
                self._wait(self._reduction_ns)
                return
            queue.num_events += len(self._order)
        self._sent += 1
        self._first.count_send()
        self.insert_arrival()

    def _is_taken(self, time_ns: int) -> bool:
        """Whether a timer of a member is set for a time, alone or with those of another ring."""
        for timers in self._timers:
            if timers.has_batch_at(time_ns):
                return True
        merged = self._queue.merged.get(time_ns, ())
        return any(not one.ranks.isdisjoint(self.ranks) for one in merged)

    def _forget(self) -> None:
        merged = self._queue.merged[self._time_ns]
        merged.remove(self)
        if not merged:
            del self._queue.merged[self._time_ns]

    def _parted(self, *, has_token: bool) -> list[RingExchange]:
        """Give every member the state of the first; return them in their present order.

        With each message that was sent the turn of a member has passed to the one it sends to.
        """
        order, n = self._order, len(self._order)
        for one in order:
            one.resume(self._first, has_token=has_token)
        passed = self._sent if self._first._is_up else -self._sent
        of_position = {one._position: one for one in order}
        return [of_position[(one._position + passed) % n] for one in order]
