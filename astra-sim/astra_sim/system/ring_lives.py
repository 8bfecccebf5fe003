"""Rings whose members are apart: they go on without events, from a first start to a last end.

Nothing of the ring is in the queue. What else is due runs in between, above all what starts
members, and so does what an end brings about. Should that insert anything but the first local move
of a further member, of this ring or, after an end, of the next, should it use a link, or be due on
an NPU that has a member under way, the ring is put into the state of that time and goes on by
events.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from heapq import heappop
from typing import Any, Protocol

from astra_sim.core.events import Event, EventQueue, Timers
from astra_sim.network.links import NetworkLink
from astra_sim.system.phases import PhaseRun, RingMember, RingShape
from astra_sim.system.ring_courses import Cut
from astra_sim.system.ring_order import MixedError, StepOrder, read
from astra_sim.system.ring_times import PAST, RingTimes, Step

SPREAD = 4
"""Ends are far apart if that is more than a round over this."""


class Start(Protocol):
    """Member of a ring until its first local move ends."""

    run: PhaseRun
    shape: RingShape


class RingLife:
    """A ring from the time on at which the first members begin, or at which all are there."""

    def __init__(
        self,
        times: RingTimes,
        starts: Sequence[Start] = (),
        begin: Callable[[PhaseRun, RingShape], RingMember] | None = None,
    ) -> None:
        self.times = times
        self.queue = times.queue
        self._starts = starts
        self._begin_member = begin
        self._places = {key[1]: place for place, key in enumerate(times.keys[0])}
        self.ending: Step | None = None
        """The last end."""
        self._ends: list[Step] = []
        """Ends that are still to come, the next last."""
        self._is_spread = False
        """Whether these are so far apart that a next ring is worked out from its first start on."""
        self._num_under_way = 0 if starts else len(times.members)
        self._others = EventQueue()
        """Events of others while the ring is out; the queue has what the present event inserts."""
        self._is_out = False
        """Whether the ring is out of the queue, until it is put into its state at a time."""

    def enter(self) -> None:
        """Take the ring out of the queue.

        Raises
        ------
        MixedError
            If anything else has to do with it, or the order of its events might take long to find.
        """
        times, queue = self.times, self.queue
        shape, shortest_ns = times.shape, times.wire_ns if times.links else times.delay_ns
        if queue.merged or not (
            times.delay_ns > times.wire_ns
            and shortest_ns > max(shape.move_ns, shape.reduction_ns)
            and shape.is_free
        ):
            raise MixedError
        if not self._starts:
            read(times)
        elif any(link.is_busy for link in times.links) or (
            queue.times and not all(map(self._is_apart, queue.due[queue.times[0]]))
        ):
            raise MixedError
        else:
            queue.due[queue.now].clear()
            for start in self._starts:
                self._begin(start, queue.now, by_end=False)
        self._find_ends()

    def leap(self) -> bool:
        """Go on without events as long as that is possible; whether it is known how."""
        try:
            self.enter()
        except MixedError:
            return False
        self._is_out = True
        self._exchange()
        for link in self.times.links:
            link.is_busy, link.waiting = True, _Hurdle(self, link)
        while self._is_out:
            self._go_on()
        return True

    def stop(self, until_ns: int, end: Step | None = None) -> None:
        """Put the ring into its state before anything of it happens at a time.

        Apart from a member that has ended then, and from what comes before that. What the present
        events have inserted comes after what the ring has.
        """
        queue = self.queue
        assert self._is_out
        self._is_out = False
        self._exchange()
        self.times.work_out()
        cut = Cut(self.times, until_ns)
        cut.take()
        if end and (num_before := cut.num_before(end)):
            due = queue.due[until_ns]
            for action, argument in due[:num_before]:
                action(argument)
            del due[:num_before]
            queue.num_events += num_before
        for time_ns, events in self._others.due.items():
            for event in events:
                queue.insert(time_ns, event)

    def _exchange(self) -> None:
        """Exchange all that is due in the queue with what is held outside."""
        queue, others = self.queue, self._others
        due = queue.due.copy()
        queue.due.clear()
        queue.due.update(others.due)
        others.due = due
        queue.times[:], others.times = others.times, queue.times.copy()

    def _begin(self, start: Start, time_ns: int, *, by_end: bool) -> None:
        assert self._begin_member is not None
        self._num_under_way += 1
        start.run.npu.timers.forget(time_ns)
        member = self._begin_member(start.run, start.shape)
        self.times.begin(member, self._places[start.run.npu.rank], time_ns, by_end=by_end)

    def _find_ends(self) -> None:
        """Work out and order the ends of all members once these are under way."""
        times = self.times
        if self._ends or self._num_under_way < len(times.members):
            return
        times.work_out()
        last = times.ended[0] * times.num_steps + times.num_sends
        steps = [times.posting(place, last) for place in range(len(times.members))]
        order = StepOrder(times)
        ends_ns = [times.post_ns(place, last) for place in range(len(times.members))]
        spread_ns = max(ends_ns) - min(ends_ns)
        self._is_spread = spread_ns * SPREAD > times.delay_ns * len(times.members)
        self._ends = sorted(steps, key=cmp_to_key(order.compare), reverse=True)

    def _go_on(self) -> None:
        """Run what is due next, or stop before it."""
        queue, others, ends = self.queue, self._others, self._ends
        next_ns = others.next_ns
        end_ns = self.times.time_ns(ends[-1]) if ends else math.inf
        if min(math.inf if next_ns is None else next_ns, end_ns) > min(queue.last_ns, -PAST):
            self.stop(queue.now + 1)
        elif next_ns is None or end_ns < next_ns:
            self._end(ends.pop())
        elif next_ns not in queue.gathered and all(map(self._is_apart, others.due[next_ns])):
            self._run_next()
        else:
            self.stop(next_ns)

    def _is_apart(self, event: Event) -> bool:
        """Whether an event is that of timers of an NPU that has no member under way."""
        owner = getattr(event[0], "__self__", None)
        if not isinstance(owner, Timers):
            return False
        place = self._places.get(owner.rank)
        return place is None or not self.times.is_under_way(place)

    def _run_next(self) -> None:
        """Run events that are due next; all that they insert must be beginnings of members."""
        queue = self.queue
        now = queue.now = heappop(self._others.times)
        events, num_events = self._others.due.pop(now), queue.num_events
        for action, argument in events:
            action(argument)
        queue.num_events += len(events)
        if self._is_out and (
            queue.num_events != num_events + len(events) or not self._take(by_end=False)
        ):
            self.stop(now)

    def _take(self, *, by_end: bool) -> bool:
        """Take the first local moves of members; whether nothing else has been inserted."""
        queue = self.queue
        if not queue.due:
            return True
        time_ns, *later = queue.due
        starts = [self._start_of(event) for event in queue.due[time_ns]]
        if later or time_ns in self._others.due or time_ns != queue.now + self.times.shape.move_ns:
            return False
        if not all(starts):
            return False
        del queue.gathered[time_ns]
        queue.due.clear()
        queue.times.clear()
        for start in starts:
            assert start is not None
            self._begin(start, time_ns, by_end=by_end)
        self._find_ends()
        return True

    def _start_of(self, event: Event) -> Start | None:
        """Member whose first local move an event is, and nothing else."""
        if not self._starts or not self._is_apart(event) or len(event[1]) != 1:
            return None
        owner: Any = getattr(event[1][0][0], "__self__", None)
        if owner.__class__ is not self._starts[0].__class__ or owner.shape != self.times.shape:
            return None
        run, all_keys = owner.run, self.times.keys
        place = self._places.get(run.npu.rank)
        if place is None or run.phase.plan.members != self._starts[0].run.phase.plan.members:
            return None
        ring = self.times.ended[place]
        if ring == len(all_keys):
            if not self._is_spread or self.times.messages.has_tag(run.tag):
                return None
            all_keys.append([(run.tag, *key[1:]) for key in all_keys[0]])
        return owner if all_keys[ring][place][0] == run.tag else None

    def _end(self, step: Step) -> None:
        """End a member; stop if that inserts anything, or if it was the last."""
        queue, run = self.queue, self.times.members[step[1]].run
        now = queue.now = self.times.time_ns(step)
        self.ending = step
        self.times.ended[step[1]] += 1
        self._num_under_way -= 1
        num_events = queue.num_events
        run.npu.timers.run_alone(run.end_now, None)
        if self._is_out and (queue.num_events != num_events or not self._take(by_end=True)):
            self.stop(now, step)
        elif self._is_out and not self._num_under_way:
            self.stop(now + 1)


class _Hurdle(deque[tuple[int, Event]]):
    """Queue of a link that a ring alone uses; it stops the ring if another message comes."""

    def __init__(self, life: RingLife, link: NetworkLink) -> None:
        super().__init__()
        self._life = life
        self._link = link

    def append(self, item: tuple[int, Event]) -> None:
        """Have the link carry a message once it is in the state of the time."""
        self._life.stop(self._life.queue.now, self._life.ending)
        self._link.carry(*item)
