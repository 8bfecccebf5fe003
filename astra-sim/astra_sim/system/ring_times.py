"""Rings whose members are apart: the times of all steps, without events.

A member sends once it has sent before, has received what the one behind sent before, and has moved
that; the message starts once the link is free. So the times of a step follow from those of the step
before, whatever the order of events of one time. Where a way has several links, the second of all
ways come after the first of all: place ``p`` of ``n`` sends over links ``p``, ``p + n`` and so on.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from astra_sim.core.events import Event, Timers
from astra_sim.network.links import NetworkLink, Transit
from astra_sim.system.messages import Done, Key
from astra_sim.system.phases import PhaseRun, RingShape, Turns

PAST = -(2**62)
"""Time of what has happened before. [ns]"""

MOVE, REDUCTION, ARRIVAL, RELEASE, LATE = range(5)
Step = tuple[int, int, int]
"""An event: its kind, a place in the ring, and the number of a message among those from there.

The place of an arrival or a release is that of a link. Moves and reductions come before the message
is sent. ``LATE`` is the receive of a place that is posted with its message of this number when the
message to it was there already.
"""


class MixedError(Exception):
    """A timer of a ring is due in one batch with another, or a link carries something else."""


class RingMember(Protocol):
    """Member of a ring."""

    run: PhaseRun

    @property
    def received(self) -> Done:
        """Function that takes a message."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """Sends left, others left of the round, what else the next steps depend on; last tokens."""
        ...

    def resume(self, turns: Turns, num_tokens: int = 1) -> None:
        """Continue with these counts."""
        ...

    def timer_at(self, time_ns: int, *, reduces: bool) -> Event:
        """Event of a local move, or of the reduction after it."""
        ...


class RingTimes:
    """All members of a ring by place, with the keys of what they send, and links that have queues.

    Numbers count the messages that a member has sent in its phase.
    """

    def __init__(
        self,
        members: Sequence[RingMember],
        links: Sequence[NetworkLink],
        *,
        keys: Sequence[Key],
        shape: RingShape,
        delay_ns: int,
    ) -> None:
        npu = members[0].run.npu
        self.queue, self.messages = npu.timers.queue, npu.messages
        self.members, self.links, self.keys, self.shape = members, links, keys, shape
        self.delay_ns = delay_ns
        self.wire_ns = links[0].times_ns(shape.message_bytes)[1] if links else PAST  # never waits
        self.num_sends = shape.turns.sends_left
        self.sent = [self.num_sends - one.counts[0] for one in members]
        self.last = max(0, len(links) - len(members))
        """The first of the last links of all ways."""
        self.started, self._crossed = self._count()
        self.first = min(self.started) - 1
        self.posts: list[list[int]] = []
        self.starts: list[list[int]] = []
        """Times at which members post messages, and at which these start, from the first number."""
        self.due_ns: dict[Step, int] = {}
        """Times of what is due at the beginning."""
        self.steps: dict[int, Step] = {}
        """The same by the identity of its events."""
        self.order: dict[Step, int] = {}
        """Its order."""

    def _count(self) -> tuple[list[int], list[int]]:
        """Messages that each link has begun, and those that it has forwarded to the next."""
        due = (event for events in self.queue.due.values() for event in events)
        owners = (getattr(action, "__self__", None) for action, _ in due)
        crossing = Counter(one.links[one.number - 1] for one in owners if isinstance(one, Transit))
        started, crossed, offered = list[int](), list[int](), self.sent.copy()
        for link in self.links:
            started.append(offered[len(started)] - len(link.waiting or ()))
            crossed.append(started[-1] - crossing[link])
            offered.append(crossed[-1])
        return started or offered, crossed

    def read(self) -> int:
        """Note what is due; return the first time of anything else.

        Raises
        ------
        MixedError
            If a timer or a link has something else, too.
        """
        places: dict[object, int] = {one: place for place, one in enumerate(self.members)}
        places |= {link: place for place, link in enumerate(self.links)}
        n, sends, landing = len(self.members), self.messages.sends, dict[int, Step]()
        for place, key in enumerate(self.keys):
            for more, message in enumerate(sends.get(key, ())):
                number = self.sent[(place + 1) % n] + more
                landing[id(message)] = ARRIVAL, self.last + place, number
        quiet_ns = self.queue.last_ns + 1
        for time_ns in sorted(self.queue.due):
            for event in self.queue.due[time_ns]:
                transit = getattr(event[0], "__self__", None)
                arrival = transit.arrival if isinstance(transit, Transit) else event
                step = landing.get(id(arrival)) or self._step_of(arrival, places)
                if step and isinstance(transit, Transit):
                    place = places[transit.links[transit.number - 1]]
                    step = ARRIVAL, place, self._crossed[place]
                    self._crossed[place] += 1
                if step is None:
                    quiet_ns = min(quiet_ns, time_ns)
                else:
                    self.steps[id(event)] = step
                    self.order[step] = len(self.order)
                    self.due_ns[step] = time_ns
        for (kind, place, number), time_ns in self.due_ns.items():
            arrives_ns = self.due_ns.get((ARRIVAL, place, number), PAST)
            if kind is RELEASE and arrives_ns - self.delay_ns != time_ns - self.wire_ns:
                raise MixedError
        return int(min(quiet_ns, -PAST))

    def _step_of(self, event: Event, places: dict[object, int]) -> Step | None:
        owner = getattr(event[0], "__self__", None)
        if isinstance(owner, Timers):
            owners = [getattr(action, "__self__", None) for action, _ in event[1]]
            place = next((places[one] for one in owners if one in places), None)
            if place is None:
                return None
            if len(owners) > 1:
                raise MixedError
            number = self.sent[place]
            is_second = event[1][0][0].__name__ != "_reduce" and self.reduction_ns(number)
            return (REDUCTION if is_second else MOVE), place, number
        if owner not in places:
            return None
        place = places[owner]
        if isinstance(owner, NetworkLink):
            return RELEASE, place, self.started[place] - 1
        return ARRIVAL, self.before(place), self.sent[place] - 1

    def before(self, place: int) -> int:
        """Link, or place, from which messages come to a place."""
        return self.last + (place - 1) % len(self.members)

    def reduces(self, number: int) -> bool:
        """Whether the local move before a message reduces."""
        shape, (rounds, turn) = self.shape, divmod(number, self.shape.num_members)
        return turn > 0 and (shape.reduces_in_even if rounds % 2 else shape.reduces_in_odd)

    def reduction_ns(self, number: int) -> int:
        """Time of the reduction before a message."""
        return self.reduces(number) * self.shape.reduction_ns

    def work_out(self, quiet_ns: int) -> None:
        """Times of all messages up to those that are posted in a later time."""
        n, delay_ns, wire_ns = len(self.members), self.delay_ns, self.wire_ns
        posts, starts, arrivals = [PAST] * n, [PAST] * (self.last + n), [PAST] * n
        known_posts, known_starts = self._known()
        for number in range(self.first, self.num_sends + 1):
            took_ns = self.shape.move_ns + self.reduction_ns(number)
            behind = [arrivals[-1], *arrivals[:-1]]
            posts = [
                (post if post > arrival else arrival) + took_ns
                for post, arrival in zip(posts, behind, strict=True)
            ]
            for place in known_posts.get(number, ()):
                posts[place] = known_posts[number][place]
            before, starts, arrivals = starts, [], posts
            for first in range(0, len(before), n):
                starts += [
                    offer if offer > start + wire_ns else start + wire_ns
                    for offer, start in zip(arrivals, before[first : first + n], strict=True)
                ]
                for place, time_ns in known_starts.get(number, {}).items():
                    if place < len(starts):
                        starts[place] = time_ns
                arrivals = [start + delay_ns for start in starts[first:]]
            self.posts.append(posts)
            self.starts.append(starts)
            if min(posts) >= quiet_ns:
                break

    def _known(self) -> tuple[dict[int, dict[int, int]], dict[int, dict[int, int]]]:
        """Times of what is past or due: those of posts and of starts, by number and place."""
        posts = dict[int, dict[int, int]]()
        starts = dict[int, dict[int, int]]()
        for nums, times in ((self.sent, posts), (self.started, starts)):
            for place, num in enumerate(nums):
                for number in range(self.first, num):
                    times.setdefault(number, {})[place] = PAST
        for (kind, place, number), time_ns in self.due_ns.items():
            if kind is ARRIVAL:
                starts[number][place] = time_ns - self.delay_ns
            elif kind is RELEASE:
                starts[number][place] = time_ns - self.wire_ns
            else:
                later_ns = self.reduction_ns(number) if kind is MOVE else 0
                posts.setdefault(number, {})[place] = time_ns + later_ns
        return posts, starts

    def post_ns(self, place: int, number: int) -> int:
        """Time at which a message is posted."""
        return self.posts[number - self.first][place]

    def start_ns(self, place: int, number: int) -> int:
        """Time at which a message is put on the wire."""
        return PAST if number < self.first else self.starts[number - self.first][place]

    def time_ns(self, step: Step) -> int:
        """Time of an event."""
        kind, place, number = step
        if kind is ARRIVAL:
            return self.start_ns(place, number) + self.delay_ns
        if kind is RELEASE:
            return self.start_ns(place, number) + self.wire_ns
        return self.post_ns(place, number) - self.reduction_ns(number) * (kind is MOVE)

    def set_ns(self, step: Step) -> int:
        """Time at which an event was set."""
        kind, place, number = step
        if kind in (ARRIVAL, RELEASE):
            return self.start_ns(place, number)
        if kind is LATE:
            return self.time_ns(step)
        return self.time_ns(step) - (
            self.shape.move_ns if kind is MOVE else self.shape.reduction_ns
        )
