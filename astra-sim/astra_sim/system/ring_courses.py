"""State of a ring at a time, into which its members, messages and links are put.

Its times are known: where nothing else is due, all steps up to then have been left out.
"""

from collections import deque
from functools import cmp_to_key

from astra_sim.core.events import Event
from astra_sim.network.links import crossing
from astra_sim.system.messages import Key, unreceived
from astra_sim.system.phases import Turns
from astra_sim.system.ring_order import StepOrder
from astra_sim.system.ring_times import (
    ARRIVAL,
    MOVE,
    REDUCTION,
    RELEASE,
    RingTimes,
    Step,
)


class Cut:
    """State of a course at a time, before anything of that time has happened."""

    def __init__(self, course: RingTimes, until_ns: int) -> None:
        self._course = course
        self._order = StepOrder(course)
        self._until_ns = until_ns
        self.sent: list[int] = []
        self._holds: list[bool] = []
        self._started: list[int] = []
        self._steps = list[Step]()
        for place in range(len(course.members)):
            self._cut_at(place)
        self._offered = self.sent.copy()
        """Messages offered to each link, and those that have crossed the last ones."""
        for place in range(course.last + len(course.members)):
            self._cut_link(place, self._offered[place])
        self._num_events = self._count()
        self._due: dict[int, list[Step]] = {}
        for step in self._steps:
            self._due.setdefault(course.time_ns(step), []).append(step)
        for steps in self._due.values():
            steps.sort(key=cmp_to_key(self._order.compare))

    def _cut_at(self, place: int) -> None:
        """Find how far a member and its link are, and what they wait for."""
        course, until_ns = self._course, self._until_ns
        sent = course.num_posted(place, until_ns)
        moved_ns = course.time_ns((MOVE, place, sent))
        is_begun = course.is_under_way(place) and sent == course.ended[place] * course.num_steps
        holds = is_begun or moved_ns - course.shape.move_ns < until_ns
        if holds:
            self._steps.append(((MOVE if moved_ns >= until_ns else REDUCTION), place, sent))
        self.sent.append(sent)
        self._holds.append(holds)

    def _cut_link(self, place: int, offered: int) -> None:
        """Find how many of the messages offered to a link have started, and have crossed it."""
        course, until_ns = self._course, self._until_ns
        started = course.num_started(place, until_ns, offered)
        crossed = started
        while course.time_ns((ARRIVAL, place, crossed - 1)) >= until_ns:
            crossed -= 1
            if not course.is_end(crossed):
                self._steps.append((ARRIVAL, place, crossed))
        release = RELEASE, place, started - 1 - course.is_end(started - 1)
        if course.links and course.time_ns(release) >= until_ns:
            self._steps.append(release)
        self._started.append(started)
        self._offered.append(crossed)

    def _count(self) -> int:
        """Number of events from the beginning of the course on."""
        course = self._course
        reductions = [course.reduces(number) for number in range(max(self.sent) + 1)]
        total = self._order.num_late(self._until_ns)
        for place, sent in enumerate(self.sent):
            before = course.sent[place]
            total += sent - before + sum(reductions[before:sent])
        num_started = sum(
            now - before - now // course.num_steps
            for now, before in zip(self._started, course.started, strict=True)
        )
        total += 2 * num_started if course.links else num_started
        for steps, sign in ((course.order, 1), (self._steps, -1)):
            total += sign * sum(kind in (ARRIVAL, RELEASE) for kind, _, _ in steps) - sign * sum(
                kind is REDUCTION for kind, _, _ in steps
            )
        return total

    def num_before(self, end: Step) -> int:
        """Number of events of this time that come before the end of a member."""
        return sum(self._order.compare(s, end) < 0 for s in self._due.get(self._until_ns, ()))

    def take(self) -> None:
        """Put members, messages, links and what is due into this state."""
        course, queue = self._course, self._course.queue
        for place, member in enumerate(course.members):
            if not course.is_under_way(place):
                continue
            sent = self.sent[place] % course.num_steps
            num_tokens = sent + self._holds[place]
            rounds, turn = divmod(num_tokens - 1, course.shape.num_members)
            sends_left = course.shape.turns.sends_left - sent
            others_left = course.shape.turns.others_left - turn
            turns = Turns(sends_left, others_left, not rounds % 2)
            member.resume(turns, num_tokens=int(self._holds[place]))
        for step, event in self._events().items():
            queue.insert(course.time_ns(step), event)
        queue.num_events += self._num_events

    def _events(self) -> dict[Step, Event]:
        """Make what is due, in its order; hold messages and receives, and set links."""
        course, until_ns = self._course, self._until_ns
        under_way = dict[Step, Event]()
        for ring, keys in enumerate(course.keys):
            for place, key in enumerate(keys):
                self._post(ring, place, key, under_way)
        for place, link in enumerate(course.links):
            waiting = [
                under_way[ARRIVAL, place, number]
                for number in range(self._started[place], self._offered[place])
                if not course.is_end(number)
            ]
            queued = [(course.shape.message_bytes, event) for event in waiting]
            link.waiting = deque(queued) if queued else None
            link.is_busy = course.time_ns((RELEASE, place, self._started[place] - 1)) >= until_ns
        events = dict[Step, Event]()
        for time_ns, steps in self._due.items():
            for step in steps:
                kind, place, number = step
                if kind is ARRIVAL:
                    events[step] = under_way[step]
                elif kind is RELEASE:
                    events[step] = course.links[place].freed
                else:
                    member, reduces = course.members[place], kind is MOVE and course.reduces(number)
                    if member.run.npu.timers.has_timers_at(time_ns):
                        member.set_timer(time_ns - course.queue.now, reduces=reduces)
                    else:
                        events[step] = member.timer_at(time_ns, reduces=reduces)
        return events

    def _post(self, ring: int, place: int, key: Key, under_way: dict[Step, Event]) -> None:
        """Hold messages and receives of one key, and note events of messages that will arrive."""
        course, n, num_bytes = self._course, len(self.sent), self._course.shape.message_bytes
        first = ring * course.num_steps
        last = first + course.num_sends
        way, arrived = range(place, course.last + n, n), self._offered[place - n]
        links = [course.links[link] for link in way if course.links]
        target, sent = (place + 1) % n, min(self.sent[place], last)
        received, posted = course.members[target].received, self.sent[target]
        awaits = not self._holds[target] and first < posted <= last and posted > sent
        posted, arrived = max(posted, first), max(arrived, first)
        messages = [unreceived() for _ in range(posted, sent)]
        for number in range(arrived, sent):
            is_matched = number < posted
            event: Event = (received, None) if is_matched else messages[number - posted]
            for hop, link in enumerate(way, start=1):
                on_link = crossing(links, hop, num_bytes, event) if links else event
                under_way[ARRIVAL, link, number] = on_link
        for message in messages[: max(0, arrived - posted)]:
            message[:] = None, None
        course.messages.hold(key, messages, [(received, None)] if awaits else [])
