"""Rings whose members are apart: steps that only turn the state by one place are left out.

Members that start at different times stay apart: each does what the one behind it did a step ago.
The places of a ring are alike, so what follows from a state follows from the state turned by a
place, too. Where the state of all members, with all that is due and under way, is that of the step
before turned by one place, it turns on until something else is due or a round ends.
"""

from collections.abc import Mapping
from heapq import heapify
from itertools import pairwise
from typing import Any, Protocol

from astra_sim.core.events import Event, Timers
from astra_sim.network.links import NetworkLink
from astra_sim.system.messages import Key
from astra_sim.system.phases import PhaseRun, RingShape

Place = tuple[int, int]
"""Tag of a ring and place in it, counted in its direction."""


class Turning(Protocol):
    """Member of a ring that can go on in another place."""

    run: PhaseRun
    shape: RingShape

    @property
    def counts(self) -> tuple[int, ...]:
        """Sends left, others left of the round, and what else its next steps depend on."""
        ...

    def turn(self, run: PhaseRun, num_steps: int) -> None:
        """Stand in the place of another phase, some steps later."""
        ...


def look_ahead(member: Turning, *, reduces: bool) -> None:
    """Look at the rings of a member when the message that it sends now arrives, and a step later.

    Not where messages take different times between neighbours.
    """
    run, shape, npu = member.run, member.shape, member.run.npu
    ranks = run.phase.plan.members if run.phase.is_up else run.phase.plan.members[::-1]
    delay_ns, links = shape.delay_ns, list[NetworkLink]()
    if delay_ns is None:
        found = [npu.messages.link(*way) for way in pairwise((*ranks, ranks[0]))]
        links = [link for link in found if link is not None]
        times = {link.times_ns(shape.message_bytes) for link in links}
        if len(times) == 1 and len(links) == len(ranks):
            delay_ns, _ = times.pop()
    if delay_ns:
        step_ns = delay_ns + shape.move_ns + reduces * shape.reduction_ns
        turns = RingTurns(member, ranks, links, step_ns)
        npu.timers.queue.gather(npu.timers.queue.now + delay_ns, turns.look, None)


class RingTurns:
    """All rings of the same members, looked at as a message arrives and a step later."""

    __slots__ = (
        "_before",
        "_is_alone",
        "_landing",
        "_links",
        "_member",
        "_members",
        "_messages",
        "_num_events",
        "_places",
        "_queue",
        "_quiet_until_ns",
        "_ranks",
        "_step_ns",
        "_turned",
    )

    def __init__(
        self, member: Turning, ranks: tuple[int, ...], links: list[NetworkLink], step_ns: int
    ) -> None:
        npu = member.run.npu
        self._member = member
        self._queue = npu.timers.queue
        self._messages = npu.messages
        self._ranks = ranks
        self._places = {rank: place for place, rank in enumerate(ranks)}
        self._links = {link: place for place, link in enumerate(links)}
        self._step_ns = step_ns
        self._members: dict[Place, Turning] = {}
        """Those that were found."""
        self._landing: dict[int, object] = {}
        """Messages without a receive, by the identity of their events."""
        self._is_alone = True
        self._before: object = None
        self._num_events = 0
        self._quiet_until_ns: float = 0
        self._turned = 0

    def look(self, _: list[None]) -> None:
        """Keep the state, to look again after a step."""
        queue = self._queue
        self._before = self._state()
        self._num_events = queue.num_events
        if self._before is not None:
            queue.gather(queue.now + self._step_ns, self._look_again, None)

    def _look_again(self, _: list[None]) -> None:
        self._turned = 1
        if self._state() != self._before:
            return
        fewest_left = min(min(one.counts[:2]) for one in self._members.values())
        quiet_ns = self._quiet_until_ns - 1 - self._queue.now
        num_steps = int(min(fewest_left, quiet_ns // self._step_ns)) - 1
        if num_steps > 0:
            self._turn_on(num_steps)

    def _state(self) -> object:
        """State of the rings, turned back; None if anything else is due within a step.

        All that the rings insert is due within a step: what is due later is not theirs.
        """
        queue = self._queue
        self._members = {}
        self._is_alone = True
        sends, receives = self._own(self._messages.sends), self._own(self._messages.receives)
        self._landing = {
            id(each): (self._back(place), n) for place, held in sends for n, each in enumerate(held)
        }
        due = []
        self._quiet_until_ns = queue.last_ns + 1
        for time_ns in sorted(queue.due):
            if time_ns > queue.now + self._step_ns:
                self._quiet_until_ns = min(time_ns, self._quiet_until_ns)
                break
            due.append((time_ns - queue.now, [self._shown(each) for each in queue.due[time_ns]]))
            if not self._is_alone:
                return None
        posted = sorted((self._back(place), len(held)) for place, held in sends)
        wanted = sorted(
            (self._back(place), list(map(self._shown, held))) for place, held in receives
        )
        links = sorted(
            (self._back((0, n)), link.state[0], [self._shown(each) for _, each in link.state[1]])
            for link, n in self._links.items()
        )
        members = sorted(
            (self._back(place), *(count + self._turned for count in one.counts[:2]), one.counts[2:])
            for place, one in self._members.items()
        )
        tags = {tag for (tag, _), _ in sends + receives} | {tag for tag, _ in self._members}
        if not self._is_alone or len(members) < max(1, len(tags)) * len(self._ranks):
            return None
        return due, posted, wanted, links, members

    def _own(self, posts: Mapping[Key, tuple[Any, ...]]) -> list[tuple[Place, tuple[Any, ...]]]:
        """Messages or receives between neighbours, by the place of the receiver."""
        return [
            ((key[0], self._places[key[2]]), held)
            for key, held in posts.items()
            if key[2] in self._places and key == self._key(key[0], self._places[key[2]])
        ]

    def _key(self, tag: int, place: int) -> Key:
        ranks, n = self._ranks, len(self._ranks)
        return tag, ranks[(place - 1) % n], ranks[place % n], self._member.shape.message_bytes

    def _back(self, place: Place) -> Place:
        return place[0], (place[1] - self._turned) % len(self._ranks)

    def _shown(self, event: Event) -> object:
        """What an event is to the rings, which are not alone if it is another's."""
        if id(event) in self._landing:
            return self._landing[id(event)]
        owner = getattr(event[0], "__self__", None)
        if isinstance(owner, Timers):
            return [self._shown(each) for each in event[1]]
        if owner in self._links:
            return self._back((0, self._links[owner]))
        first = self._member
        if (
            owner.__class__ is not first.__class__
            or owner.shape != first.shape
            or owner.run.phase.plan.members != first.run.phase.plan.members
        ):
            self._is_alone = False
            return None
        place = owner.run.tag, self._places[owner.run.npu.rank]
        self._members[place] = owner
        return self._back(place), event[0].__name__

    def _turn_on(self, num_steps: int) -> None:
        """Put all events some steps later, and members, messages and links as many places on."""
        queue, messages, n = self._queue, self._messages, len(self._ranks)
        shift_ns = num_steps * self._step_ns
        times = sorted(time_ns for time_ns in queue.due if time_ns < self._quiet_until_ns)
        timers = {place: one.run.npu.timers for (_, place), one in self._members.items()}
        links = list(self._links)
        for time_ns in reversed(times):
            turned = queue.due[time_ns + shift_ns] = list[Event]()
            for event in queue.due[time_ns]:
                owner = getattr(event[0], "__self__", None)
                if isinstance(owner, Timers):
                    owner.forget(time_ns)
                    place = self._places[owner.rank] + num_steps
                    turned.append(timers[place % n].event_of(time_ns + shift_ns, event[1]))
                elif owner in self._links:
                    turned.append(links[(self._links[owner] + num_steps) % n].freed)
                else:
                    turned.append(event)
            if time_ns == queue.now:
                queue.due[time_ns].clear()
            else:
                del queue.due[time_ns]
        later = [time_ns for time_ns in queue.times if time_ns >= self._quiet_until_ns]
        queue.times[:] = later + [time_ns + shift_ns for time_ns in times]
        heapify(queue.times)
        queue.num_events += num_steps * (queue.num_events - self._num_events)
        messages.rename(
            {
                self._key(tag, place): self._key(tag, place + num_steps)
                for tag, place in self._members
            }
        )
        states = [link.state for link in links]
        for place, link in enumerate(links):
            link.state = states[(place - num_steps) % n]
        runs = {place: one.run for place, one in self._members.items()}
        for (tag, place), one in self._members.items():
            one.turn(runs[tag, (place + num_steps) % n], num_steps)
