"""Rings whose members are apart: steps that only turn the state by one place are left out.

Members that start at different times stay apart: each does what the one behind it did a step ago.
The places of a ring are alike, so what follows from a state follows from the state turned by a
place, too. Where the state of all members, with all that is due and under way, is that of the step
before turned by one place, it turns on until something else is due or a round ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from astra_sim.core.events import Event, Timers
from astra_sim.network.links import NetworkLink, Transit
from astra_sim.system.messages import Key
from astra_sim.system.phases import PhaseRun, RingMember, RingShape
from astra_sim.system.ring_lives import RingLife, Start
from astra_sim.system.ring_times import RingTimes

Place = tuple[int, int]
"""Tag of a ring and place in it, counted in its direction."""


class RingTurns:
    """All rings of a member's ranks, looked at as a message of it arrives and a step later."""

    def __init__(self, member: RingMember, *, reduces: bool) -> None:
        run, shape, members = member.run, member.shape, member.run.phase.plan.members
        self._member = member
        self._shape = shape
        self._members = members
        self._kind = type(member)
        self._queue = run.npu.timers.queue
        self._messages = run.npu.messages
        self._ranks = members if run.phase.is_up else members[::-1]
        self._places = {rank: place for place, rank in enumerate(self._ranks)}
        self._delay_ns = 0
        self._step_ns = shape.move_ns + reduces * shape.reduction_ns
        self._ways: list[tuple[NetworkLink, ...]] = []
        self._links: dict[NetworkLink, int] = {}
        """Links of the ways from each place to the next, the first of all ways first."""
        self._found: dict[Place, RingMember] = {}
        self._quiet_until_ns: float = 0
        self._turned = self._num_events = 0
        self._before: object = None

    def look_ahead(self) -> None:
        """Look when a message that is sent now arrives, if all take the same time."""
        if delay_ns := self._way_ns():
            self._delay_ns = delay_ns
            way_ns = delay_ns * max(1, len(self._links) // len(self._ranks))
            self._step_ns += way_ns
            self._queue.gather(self._queue.now + way_ns, self._look, None)

    def live(
        self, starts: Sequence[Start], begin: Callable[[PhaseRun, RingShape], RingMember]
    ) -> None:
        """Go on without events from the first starts on, if nothing else is there."""
        if delay_ns := self._way_ns():
            self._delay_ns, n = delay_ns, len(self._ranks)
            tag = self._member.run.tag
            times = self._times([self._member] * n, [(tag, place) for place in range(n)])
            RingLife(times, starts, begin).leap()

    def _times(self, members: Sequence[RingMember], places: Sequence[Place]) -> RingTimes:
        return RingTimes(
            members,
            list(self._links),
            keys=[self._key(place, 1) for place in places],
            shape=self._shape,
            delay_ns=self._delay_ns,
        )

    def _way_ns(self) -> int | None:
        """Time to cross a link, or the way if none is waited for, if all take the same time."""
        delay_ns = self._shape.delay_ns
        if delay_ns is None and len(self._places) == len(self._ranks):
            ends = pairwise((*self._ranks, self._ranks[0]))
            self._ways = [self._messages.links(*each) for each in ends]
            links = chain.from_iterable(zip(*self._ways, strict=False))
            self._links = {link: place for place, link in enumerate(links)}
            times = {link.times_ns(self._shape.message_bytes) for link in self._links}
            if len(times) == 1 and len(self._links) == sum(map(len, self._ways)):
                ((delay_ns, _),) = times
        return delay_ns

    def _look(self, _: list[None]) -> None:
        queue = self._queue
        self._before = self._state()
        self._num_events = queue.num_events
        if self._before is not None:
            queue.gather(queue.now + self._step_ns, self._look_again, None)

    def _look_again(self, _: list[None]) -> None:
        self._turned = 1
        if (state := self._state()) is None:
            return
        if state != self._before:
            self._leap()
            return
        fewest_left = min(min(one.counts[:2]) for one in self._found.values())
        quiet_ns = self._quiet_until_ns - 1 - self._queue.now
        num_steps = int(min(fewest_left, quiet_ns // self._step_ns)) - 1
        if num_steps > 0:
            self._turn_events(num_steps)
            self._turn_members(num_steps)

    def _leap(self) -> None:
        """Go on without events if the ring is alone; once in vain at most."""
        is_last = self._queue.is_last_look(self._look_again)
        if self._member.may_leap and len(self._found) == len(self._ranks) and is_last:
            by_place = sorted(self._found, key=itemgetter(1))
            times = self._times([self._found[place] for place in by_place], by_place)
            self._member.may_leap = RingLife(times).leap()

    def _state(self) -> object:
        """State of the rings, turned back; None if anything else is due within a step."""
        self._found = {}
        posted = self._own(self._messages.sends)
        landing = {id(e): (self._back(place), n) for place, es in posted for n, e in enumerate(es)}
        shown = {}
        for label, events in self._events():
            shown[label] = [self._show(event, landing) for event in events]
            if None in shown[label]:
                return None
        members = {
            self._back(place): [n + self._turned for n in one.counts[:2]] + [*one.counts[2:]]
            for place, one in self._found.items()
        }
        tags = {tag for tag, _ in self._found}
        if not tags.issuperset(tag for (tag, _), _ in posted) or (
            len(members) < max(1, len(tags)) * len(self._ranks)
        ):
            return None
        return shown, members, {self._back(place): len(events) for place, events in posted}

    def _events(self) -> Iterator[tuple[object, Iterable[Event]]]:
        """Events due within a step, of messages that wait for links, and of receives.

        All that the rings insert is due within a step: what is due later is not theirs.
        """
        queue = self._queue
        self._quiet_until_ns = queue.last_ns + 1
        for time_ns in sorted(queue.due):
            if time_ns > queue.now + self._step_ns:
                self._quiet_until_ns = min(time_ns, self._quiet_until_ns)
                break
            yield time_ns - queue.now, queue.due[time_ns]
        for link, place in self._links.items():
            yield (link.is_busy, self._back((0, place))), [event for _, event in link.waiting or ()]
        for receiver, events in self._own(self._messages.receives):
            yield self._back(receiver), events

    def _own(self, posts: Mapping[Key, tuple[Any, ...]]) -> list[tuple[Place, tuple[Any, ...]]]:
        """Messages or receives between neighbours, by the place of the receiver."""
        return [
            ((tag, self._places[target]), held)
            for (tag, source, target, num_bytes), held in posts.items()
            if target in self._places
            and (tag, source, target, num_bytes) == self._key((tag, self._places[target]))
        ]

    def _key(self, place: Place, further: int = 0) -> Key:
        """Key of messages to a place or one further on."""
        target = (place[1] + further) % len(self._ranks)
        return place[0], self._ranks[target - 1], self._ranks[target], self._shape.message_bytes

    def _back(self, place: Place) -> Place:
        return place[0], self._on(place[1], -self._turned)

    def _on(self, place: int, num_steps: int) -> int:
        """Place, or link, some steps further on."""
        n = len(self._ranks)
        return place // n * n + (place + num_steps) % n

    def _show(self, event: Event, landing: Mapping[int, object]) -> object:
        """Identity of an event among those of the rings; None if it is another's."""
        if id(event) in landing:
            return landing[id(event)]
        owner: Any = getattr(event[0], "__self__", None)
        if isinstance(owner, Timers):
            timers = [self._show(each, landing) for each in event[1]]
            return None if None in timers else timers
        if owner in self._links:
            return self._back((0, self._links[owner]))
        if isinstance(owner, Transit):
            arrival, link = self._show(owner.arrival, landing), owner.links[owner.number - 1]
            is_ours = arrival is not None and link in self._links
            return (arrival, self._back((0, self._links[link]))) if is_ours else None
        is_kind = owner.__class__ is self._kind and owner.shape == self._shape
        if not is_kind or owner.run.phase.plan.members != self._members:
            return None
        place = owner.run.tag, self._places[owner.run.npu.rank]
        self._found[place] = owner
        return self._back(place), event[0].__name__

    def _turn_events(self, num_steps: int) -> None:
        """Put all events some steps later, those of timers and links as many places on."""
        queue, n, shift_ns = self._queue, len(self._ranks), num_steps * self._step_ns
        timers = {place: one.run.npu.timers for (_, place), one in self._found.items()}
        links = list(self._links)
        times = sorted(time_ns for time_ns in queue.due if time_ns < self._quiet_until_ns)
        for time_ns in reversed(times):
            events, turned = queue.due[time_ns], list[Event]()
            for event in events:
                owner = getattr(event[0], "__self__", None)
                if isinstance(owner, Timers):
                    owner.forget(time_ns)
                    place = (self._places[owner.rank] + num_steps) % n
                    turned.append(timers[place].event_of(time_ns + shift_ns, event[1]))
                elif owner in self._links:
                    turned.append(links[self._on(self._links[owner], num_steps)].freed)
                else:
                    self._turn_transit(event, num_steps)
                    turned.append(event)
            events.clear()  # those of now are being run
            if time_ns > queue.now:
                del queue.due[time_ns]
            queue.due[time_ns + shift_ns] = turned
        later = [time_ns for time_ns in queue.times if time_ns >= self._quiet_until_ns]
        queue.times[:] = later + [time_ns + shift_ns for time_ns in times]
        heapify(queue.times)
        queue.num_events += num_steps * (queue.num_events - self._num_events)

    def _turn_members(self, num_steps: int) -> None:
        """Put members, messages and links as many places on as they take steps."""
        n, links = len(self._ranks), list(self._links)
        self._messages.rename({self._key(each): self._key(each, num_steps) for each in self._found})
        states = [(link.is_busy, link.waiting) for link in links]
        for place, state in enumerate(states):
            turned = links[self._on(place, num_steps)]
            turned.is_busy, turned.waiting = state
            for _, event in turned.waiting or ():
                self._turn_transit(event, num_steps)
        runs = {place: one.run for place, one in self._found.items()}
        for (tag, place), one in self._found.items():
            one.turn(runs[tag, (place + num_steps) % n], num_steps)

    def _turn_transit(self, event: Event, num_steps: int) -> None:
        """Put a message that has further links to cross on the links of another place."""
        transit = getattr(event[0], "__self__", None)
        if isinstance(transit, Transit):
            place = self._links[transit.links[0]]
            transit.links = self._ways[self._on(place, num_steps)]
