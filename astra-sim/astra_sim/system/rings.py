"""Ring exchanges of single members, and when they are in step.

On a network without congestion the members of a ring that start together do the same at the same
ticks, right after each other. One event then stands for those of all members: see
``astra_sim.system.ring_steps``. Those that start apart are looked at by ``ring_turns``.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from astra_sim.base.lazy import lazy
from astra_sim.core.events import Event
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.system.exchanges import GROUP_MOVE_NS, Exchange, Token, ring_bytes
from astra_sim.system.messages import Done
from astra_sim.system.phases import PhaseRun, RingShape, Turns
from astra_sim.system.ring_steps import RingInStep

if TYPE_CHECKING:
    from astra_sim.system import ring_turns
else:
    ring_turns = lazy("astra_sim.system.ring_turns")

FEWEST_LOOKED_AT = 4
"""Sends that must be left to make it worth while to look whether steps can be left out."""


class RingExchange(Exchange):
    """Always the next neighbour, from the one behind; a single member of a ring."""

    __slots__ = ("_look_at", "_token", "may_leap", "run", "shape")

    def __init__(self, run: PhaseRun, shape: RingShape) -> None:
        super().__init__(
            run,
            message_bytes=shape.message_bytes,
            sends=shape.turns.sends_left,
            width=1,
            second=shape.turns.others_left,
        )
        self.shape = shape
        self.may_leap = True
        self._stand_in(run)

    def _stand_in(self, run: PhaseRun) -> None:
        """Take the place of a phase; the first member of a ring looks ahead after any send."""
        size = self.shape.message_bytes
        source, target = _ends(run)
        self.run = run
        self._end = run.end
        self._rank = run.npu.rank
        self._timers = run.npu.timers
        self._token = (run.tag, self._rank, target, size), (run.tag, source, self._rank, size)
        self._look_at = -1 if run.phase.plan.position else self._sends_left

    def _next_token(self) -> Token:
        return self._token

    def _move(self, num_bytes: int | None) -> None:
        """Send as others do; the first member then looks ahead."""
        if self._sends_left and self._tokens:  # as in any exchange, in place for speed
            self._sends_left -= 1
            self._tokens.popleft()
            self._messages.exchange(*self._token, self._received)
        else:
            super()._move(num_bytes)
        if FEWEST_LOOKED_AT <= self._sends_left <= self._look_at:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Have all members looked at when the message sent now arrives: seldom in a late round."""
        n, left = self.shape.num_members, self._others_left
        if left < FEWEST_LOOKED_AT:
            self._look_at = self._sends_left - left - 2
            return
        self._look_at = self._sends_left - 2 - min(n - left, n // 16)
        reduces = self._reduces_in_odd if self._is_odd else self._reduces_in_even
        ring_turns.RingTurns(self, reduces=reduces).look_ahead()

    @property
    def counts(self) -> tuple[int, ...]:
        """Sends left, others left of the round, and what else the next steps depend on."""
        more = self._is_odd, self._plain_left, self._credits, len(self._tokens)
        return self._sends_left, self._others_left, *more

    def turn(self, run: PhaseRun, num_steps: int) -> None:
        """Stand in the place of another member, some steps later."""
        self._sends_left -= num_steps
        self._others_left -= num_steps
        self._stand_in(run)
        if self._tokens:
            self._tokens[0] = self._token

    def resume(self, turns: Turns, num_tokens: int = 1) -> None:
        """Continue with a token, unless it waits for its message, and these counts."""
        self._sends_left, self._others_left, self._is_odd = turns
        self._tokens.clear()
        self._tokens.extend([self._token] * num_tokens)

    @property
    def received(self) -> Done:
        """Function that takes a message."""
        return self._received

    def begin(self, _: None = None) -> None:
        """Begin after the first local move, which ``RingStart`` has made."""
        self.resume(self.shape.turns)
        self._move(None)

    def set_timer(self, delay_ns: int, *, reduces: bool) -> None:
        """Set the timer of a local move or of the reduction after it."""
        self._timers.after(delay_ns, self._reduce if reduces else self._move, self._message_bytes)

    def timer_at(self, time_ns: int, *, reduces: bool) -> Event:
        """Event of such a timer, which is the NPU's first for a time."""
        done = self._reduce if reduces else self._move
        return self._timers.event_of(time_ns, [(done, self._message_bytes)])


def resumed(run: PhaseRun, shape: RingShape, turns: Turns) -> RingExchange:
    """Exchange of a member that parts from its ring while it waits with a token."""
    exchange = RingExchange(run, shape)
    exchange.resume(turns)
    return exchange


class RingStart:
    """Member of a ring until its first local move; from then on most rings are in step."""

    __slots__ = ("run", "shape")

    def __init__(self, run: PhaseRun) -> None:
        run.num_moves = 1
        self.run = run
        self.shape = run.phase.ring_shapes.get(run.num_bytes) or _ring_shape(run)

    def start(self) -> None:
        """Move; all that start at one tick are looked at together."""
        run, shape = self.run, self.shape
        if not shape.is_free:
            RingExchange(run, shape).start()
            return
        timers = run.npu.timers
        timers.after(shape.move_ns, self._begin)
        timers.queue.gather(timers.queue.now + shape.move_ns, _start_together, self)

    def _begin(self, _: None) -> None:
        RingExchange(self.run, self.shape).begin()


def _ring_shape(run: PhaseRun) -> RingShape:
    """Make the shape of a phase and keep it for phases of the same bytes."""
    npu, plan = run.npu, run.phase.plan
    n = len(plan.members)
    message_bytes = ring_bytes(plan.kind, run.num_bytes, n)
    is_scatter = plan.kind is CollectiveType.REDUCE_SCATTER
    sends = {
        CollectiveType.ALL_REDUCE: 2 * (n - 1),
        CollectiveType.REDUCE_SCATTER: n - 1,
        CollectiveType.ALL_GATHER: n - 1,
        CollectiveType.ALL_TO_ALL: n * (n - 1) // 2,
    }
    move_ns = GROUP_MOVE_NS if plan.is_part else npu.settings.endpoint_delay_ns
    is_free = move_ns > 0 and message_bytes > 0 and (plan.is_part or npu.bus is None)
    delay_ns = None
    if is_free:
        delay_ns = npu.messages.steady_delay_ns(npu.rank, _ends(run)[1], message_bytes)
    shape = RingShape(
        num_members=n,
        is_up=run.phase.is_up,
        message_bytes=message_bytes,
        turns=Turns(sends[plan.kind], n - 1, True),
        reduces_in_even=is_scatter,
        reduces_in_odd=is_scatter or plan.kind is CollectiveType.ALL_REDUCE,
        move_ns=move_ns,
        reduction_ns=npu.settings.reduction_ns(message_bytes),
        delay_ns=delay_ns or None,
        is_free=is_free,
    )
    run.phase.ring_shapes[run.num_bytes] = shape
    return shape


def _ends(run: PhaseRun) -> tuple[int, int]:
    """NPUs that a member receives from and sends to."""
    plan = run.phase.plan
    members, step = plan.members, 1 if run.phase.is_up else -1
    n = len(members)
    return members[(plan.position - step) % n], members[(plan.position + step) % n]


def _are_all_members(runs: Sequence[PhaseRun]) -> bool:
    """Whether these are all members of one ring, or of several of equal size, each once."""
    sizes = Counter([id(run.phase.plan.members) for run in runs])
    n = len(runs[0].phase.plan.members)
    return len({run.npu.rank for run in runs}) == len(runs) and set(sizes.values()) == {n}


def _start_together(starts: list[RingStart]) -> None:
    """Leave out events of members whose first local moves end now, if nothing else is due."""
    queue = starts[0].run.npu.timers.queue
    due = queue.due[queue.now]
    num_moves = Counter([one.run.npu.rank for one in starts])
    timers = {one.run.npu.rank: one.run.npu.timers for one in starts}
    if len(due) != len(num_moves) or not all(
        timers[rank].has_alone(event, num_moves[rank])
        for rank, event in zip(num_moves, due, strict=True)
    ):
        return
    shape, run = starts[0].shape, starts[0].run
    if len(starts) == len(due) < shape.num_members and all(
        one.shape == shape
        and one.run.tag == run.tag
        and one.run.phase.plan.members == run.phase.plan.members
        for one in starts
    ):
        if queue.is_last_look(_start_together) and not run.npu.messages.has_tag(run.tag):
            ring_turns.RingTurns(RingExchange(run, shape), reduces=False).live(starts, RingExchange)
    elif None not in {one.shape.delay_ns for one in starts}:
        _start_in_step(starts, due)


def _start_in_step(starts: list[RingStart], due: list[Event]) -> None:
    """Put one event for all members in place of the first local moves of rings.

    Of rings that differ either the messages take different times, or each starts as a whole before
    the next: their order is that of their events then.
    """
    queue = starts[0].run.npu.timers.queue
    kinds: dict[RingShape, list[PhaseRun]] = {}
    for one in starts:
        kinds.setdefault(one.shape, []).append(one.run)
    if not all(map(_are_all_members, kinds.values())):
        return
    if (
        len({shape.delay_ns for shape in kinds})
        < len(kinds)
        < sum(1 for _ in groupby(starts, attrgetter("shape")))
    ):
        return
    timers = {one.run.npu.rank: one.run.npu.timers for one in starts}
    for each in timers.values():
        each.forget(queue.now)
    queue.num_events += len(due) - len(kinds)
    due[:] = [
        RingInStep(queue, runs, shape, shape.turns, resumed).first_move()
        for shape, runs in kinds.items()
    ]
