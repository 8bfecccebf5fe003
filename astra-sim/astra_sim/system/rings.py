"""Ring exchanges, and when their members fall in step.

On a network without congestion the members of a ring do the same at the same ticks, right after
each other, from the start on or soon after. One event then stands for those of all members: see
``astra_sim.system.ring_steps``.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TypeGuard

from astra_sim.core.events import Event, Timers
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.system.exchanges import Exchange, Token, ring_bytes
from astra_sim.system.phases import PhaseRun
from astra_sim.system.ring_steps import RingInStep

FEWEST_SENDS = 2
"""Sends that must be left to make it worth while to go on in step."""


class RingExchange(Exchange):
    """Always the next neighbour, from the one behind."""

    __slots__ = ("_delay_ns", "_fixed", "_is_up", "_members", "_position", "_token")

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
        self._fixed = (plan.kind, n, plan.is_part, self._is_up, num_bytes, self._delay_ns)

    def start(self) -> None:
        """Start as others do; all that start at one tick are looked at together."""
        super().start()
        if self._delay_ns:
            queue = self._timers.queue
            queue.gather(queue.now + self._move_ns, _start_in_step, self)

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
                last = [getattr(action, "__self__", None) for action, _ in arrivals[-n:]]
                if _are_in_step(last):
                    del arrivals[-n:]
                    RingInStep(queue, last).insert_arrival()

    def _state(self) -> tuple[object, ...]:
        """All that the next steps depend on, apart from the members."""
        return *self._fixed, self._credits, len(self._tokens), *self._counts()

    def _counts(self) -> tuple[int, int, bool, int]:
        """Counters that change from step to step."""
        return self._plain_left, self._others_left, self._is_odd, self._sends_left

    def leave_to_others(self) -> None:
        """Forget the token of the first local move, for which one event of all stands now."""
        self._tokens.clear()

    def resume(self, like: "RingExchange") -> None:
        """Continue by itself from the state of another member that waits with a token."""
        self._plain_left, self._others_left, self._is_odd, self._sends_left = like._counts()
        self._tokens.append(self._token)

    def take_turn(self) -> bool:
        """Count a token for all members; tell whether it reduces."""
        reduces = self.reduces_next
        if self._others_left:
            self._others_left -= 1
        else:
            self._others_left = self._second_round
            self._is_odd = not self._is_odd
        return reduces

    @property
    def reduces_next(self) -> bool:
        """Whether the next token reduces: not the plain one that begins a round."""
        if not self._others_left:
            return False
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
    def delay_ns(self) -> int:
        """Time from a send to its arrival."""
        assert self._delay_ns is not None
        return self._delay_ns

    @property
    def rank(self) -> int:
        """NPU of the exchange."""
        return self._rank

    def target(self, num_steps: int) -> int:
        """NPU so many steps on in the direction of the ring."""
        members = self._members
        return members[(self._position + (num_steps if self._is_up else -num_steps)) % len(members)]

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

    def end_alone(self) -> None:
        """End the phase as by the only timer of the present time."""
        self._timers.run_alone(self._end_now, None)

    def _end_now(self, _: None) -> None:
        self._end()


def _are_in_step(exchanges: Sequence[object]) -> TypeGuard[list[RingExchange]]:
    """Whether these are all members of one or of several rings, and all in one state."""
    first = exchanges[0]
    if not isinstance(first, RingExchange):
        return False
    state, ranks, sizes = first._state(), set[int](), Counter[int]()
    for one in exchanges:
        if not isinstance(one, RingExchange) or one._state() != state:
            return False
        ranks.add(one._rank)
        sizes[id(one._members)] += 1
    n = len(first._members)
    return len(ranks) == len(exchanges) and all(size == n for size in sizes.values())


def _start_in_step(exchanges: list[RingExchange]) -> None:
    """Put one event for all members in place of the first local moves of rings.

    Nothing else may be due. Of rings that differ either the messages take different times, or
    each starts as a whole before the next: their order is that of their events then.
    """
    queue = exchanges[0].timers.queue
    due = queue.due[queue.now]
    kinds: dict[object, list[RingExchange]] = {}
    for one in exchanges:
        kinds.setdefault(one._state(), []).append(one)
    num_moves = Counter([one.rank for one in exchanges])
    if len(due) != len(num_moves) or not all(map(_are_in_step, kinds.values())):
        return
    if (
        len({order[0].delay_ns for order in kinds.values()})
        < len(kinds)
        < sum(1 for _ in groupby(exchanges, RingExchange._state))
    ):
        return
    timers = {one.rank: one.timers for one in exchanges}
    if not all(
        timers[rank].has_alone(event, num_moves[rank])
        for rank, event in zip(num_moves, due, strict=True)
    ):
        return
    for one in exchanges:
        one.leave_to_others()
    for each in timers.values():
        each.forget(queue.now)
    queue.num_events += len(due) - len(kinds)
    due[:] = [RingInStep(queue, order).first_move() for order in kinds.values()]
