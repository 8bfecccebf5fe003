"""One event for all members of rings whose steps fall on the same ticks."""

from collections.abc import Callable

from astra_sim.core.events import Action, Event, EventQueue
from astra_sim.system.phases import PhaseRun, RingMember, RingShape, Turns


class RingInStep:
    """All members of rings that take the same steps in turn.

    Each event runs those of all members in their order. While it waits to move or reduce, another
    timer of a member may join that member's batch: the members then part (``split``).
    """

    def __init__(
        self,
        queue: EventQueue,
        order: list[PhaseRun],
        shape: RingShape,
        turns: Turns,
        part: Callable[[PhaseRun, RingShape, Turns], RingMember],
    ) -> None:
        assert shape.delay_ns is not None
        self._queue = queue
        self._order = order
        """Members in the order in which they started."""
        self._shape = shape
        self._delay_ns = shape.delay_ns
        self._sends_left, self._others_left, self._is_odd = turns
        self._part = part
        self._sent = 0
        self._time_ns = 0
        self._reduces = False
        self.ranks = frozenset([run.npu.rank for run in order])

    def first_move(self) -> Event:
        """Event of the first local moves, counted already, which the caller puts in their place."""
        return self._begin, None

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
        self._reduces = self._reduces_next()
        self._take_turn()
        self._wait(self._shape.move_ns)

    def _wait(self, delay_ns: int) -> None:
        """Set one timer for all members; they part if one has another timer at that time."""
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
            if self._shape.reduction_ns:
                self._wait(self._shape.reduction_ns)
                return
            queue.num_events += len(self._order)
        if self._sends_left:
            self._send(self._run)
            return
        for run in self._in_turn():
            run.npu.timers.run_alone(run.end_now, None)

    def _send(self, running: Action) -> None:
        """Send, and take all further steps that end before any other event is due."""
        queue, shape = self._queue, self._shape
        quiet_until_ns = queue.quiet_until_ns(running)
        time_ns = queue.now
        while True:
            self._sent += 1
            self._sends_left -= 1
            reduces = self._reduces_next()
            next_ns = time_ns + self._delay_ns + shape.move_ns + reduces * shape.reduction_ns
            if next_ns >= quiet_until_ns or not self._sends_left:
                break
            time_ns = next_ns
            self._take_turn()
            queue.num_events += len(self._order) * (2 + reduces)
        queue.at(time_ns + self._delay_ns, self._arrive, None)

    def _reduces_next(self) -> bool:
        """Whether the next token reduces: not the plain one that begins a round."""
        if not self._others_left:
            return False
        return self._shape.reduces_in_odd if self._is_odd else self._shape.reduces_in_even

    def _take_turn(self) -> None:
        """Count a token."""
        if self._others_left:
            self._others_left -= 1
        else:
            self._others_left = self._shape.turns.others_left
            self._is_odd = not self._is_odd

    def _is_taken(self, time_ns: int) -> bool:
        """Whether a timer of a member is set for a time, alone or with those of another ring."""
        for run in self._order:
            if run.npu.timers.has_batch_at(time_ns):
                return True
        merged = self._queue.merged.get(time_ns, ())
        return any(not one.ranks.isdisjoint(self.ranks) for one in merged)

    def _forget(self) -> None:
        merged = self._queue.merged[self._time_ns]
        merged.remove(self)
        if not merged:
            del self._queue.merged[self._time_ns]

    def _parted(self) -> list[RingMember]:
        """Members in their present order, each on its own from now on."""
        turns = Turns(self._sends_left, self._others_left, self._is_odd)
        return [self._part(run, self._shape, turns) for run in self._in_turn()]

    def _in_turn(self) -> list[PhaseRun]:
        """Members in their present order.

        With each message that was sent the turn of a member has passed to the one it sends to.
        """
        of_rank = {run.npu.rank: run for run in self._order}
        passed = self._sent if self._shape.is_up else -self._sent
        n = self._shape.num_members
        plans = [run.phase.plan for run in self._order]
        return [of_rank[plan.members[(plan.position + passed) % n]] for plan in plans]
