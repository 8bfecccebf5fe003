"""Rings whose members are apart: the times of all steps, without events.

A member sends once it has sent before, has received what the one behind sent before, and has moved
that; the message starts once the link is free. So once a member begins, the times of all that
follows from what has begun are known, whatever the order of events of one time. Where a way has
several links, the second of all ways come after the first of all: place ``p`` of ``n`` sends over
links ``p``, ``p + n`` and so on.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from heapq import heapify
from itertools import pairwise

from astra_sim.network.links import NetworkLink
from astra_sim.system.messages import Key
from astra_sim.system.phases import RingMember, RingShape

PAST = -(2**62)
"""Time of what has happened before. [ns]"""

MOVE, REDUCTION, ARRIVAL, RELEASE, LATE = range(5)
Step = tuple[int, int, int]
"""An event: its kind, a place in the ring, and the number of a message among those from there.

The place of an arrival or a release is that of a link. Moves and reductions come before the message
is sent. ``LATE`` is the receive of a place that is posted with its message of this number when the
message to it was there already.
"""


class RingTimes:
    """All members of a ring by place, with the keys of what they send, and links that have queues.

    Numbers count the messages that a member has sent in its phase; the last is that of its end.
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
        self.members, self.links, self.shape = list(members), links, shape
        self.keys = [keys]
        """Keys of the messages from each place, of each ring after the other."""
        self.delay_ns = delay_ns
        self.wire_ns = links[0].times_ns(shape.message_bytes)[1] if links else PAST  # never waits
        self.num_sends = shape.turns.sends_left
        self.num_steps = self.num_sends + 1
        self.last = max(0, len(links) - len(members))
        """The first of the last links of all ways."""
        self.sent = [0 for _ in members]
        """Messages that each member had posted at the beginning."""
        self.started = [0 for _ in links or members]
        """Messages that each link had begun."""
        self.posts = [list[int]() for _ in members]
        """Times at which members post messages, and of their ends, as far as they are known."""
        self.arrivals = [list[int]() for _ in links or members]
        """Times at which messages come to the end of each link."""
        self._passed = [list[int]() for _ in members]
        """Through how many places each message has come without waiting, as far as counted."""
        self._uncounted = list[tuple[int, int]]()
        """Places, and how many messages they post, of which that is still to be counted."""
        self.order: dict[Step, int] = {}
        """Steps due at the beginning, in their order."""
        self.begins: dict[Step, int] = {}
        """First local moves of members that began since, in the order of these."""
        self._moves_ns = [
            shape.move_ns + self.reduces(number) * shape.reduction_ns
            for number in range(self.num_steps)
        ]
        self.ended = [0 for _ in members]
        """Ends so far of the member of each place."""

    def take_over(self, due_ns: Mapping[Step, int], *, sent: list[int], started: list[int]) -> None:
        """Take out of the queue what is due of members that are all there, with its times."""
        queue, self.sent, self.started = self.queue, sent, started
        self.order = {step: number for number, step in enumerate(due_ns)}
        self._passed = [[-1] * num for num in sent]
        self.posts = [[PAST] * num for num in sent]
        self.arrivals = [[PAST + self.delay_ns] * num for num in started]
        for (kind, place, number), time_ns in due_ns.items():
            if kind is ARRIVAL:
                self.arrivals[place][number] = time_ns
            elif kind is RELEASE:
                self.arrivals[place][number] = time_ns - self.wire_ns + self.delay_ns
            else:
                later_ns = self.reduction_ns(number) if kind is MOVE else 0
                self.posts[place].append(time_ns + later_ns)
                self.members[place].run.npu.timers.forget(time_ns)
        for time_ns in set(due_ns.values()):
            queue.due[time_ns].clear()  # those of now are being run
            if time_ns > queue.now:
                del queue.due[time_ns]
        queue.times[:] = [time_ns for time_ns in queue.times if time_ns in queue.due]
        heapify(queue.times)
        for place in range(len(self.members)):
            self._carry(place)

    def before(self, place: int) -> int:
        """Link, or place, from which messages come to a place."""
        return self.last + (place - 1) % len(self.members)

    def posting(self, place: int, number: int) -> Step:
        """Event that posts a message, or ends a member after the last."""
        return (REDUCTION if self.reduction_ns(number) else MOVE), place, number

    def reduces(self, number: int) -> bool:
        """Whether the local move before a message reduces."""
        shape, number = self.shape, number % self.num_steps
        rounds, turn = divmod(number, shape.num_members)
        return turn > 0 and (shape.reduces_in_even if rounds % 2 else shape.reduces_in_odd)

    def reduction_ns(self, number: int) -> int:
        """Time of the reduction before a message."""
        return self._moves_ns[number % self.num_steps] - self.shape.move_ns

    def begin(self, member: RingMember, place: int, time_ns: int, *, by_end: bool) -> None:
        """Have a member begin at a time."""
        self.members[place] = member
        if not by_end:
            self.begins[MOVE, place, len(self.posts[place])] = len(self.begins)
        self.posts[place].append(time_ns)
        self._carry(place)

    def work_out(self) -> None:
        """Work out all that follows from what has begun, place after place until none has more."""
        place = num_idle = 0
        while num_idle < len(self.members):
            num_idle = 0 if self._extend(place) else num_idle + 1
            place = (place + 1) % len(self.members)

    def _extend(self, place: int) -> bool:
        """Work out what a member posts upon messages whose times are known, if that is more."""
        posts, arrivals = self.posts[place], self.arrivals[self.before(place)]
        first, num_steps = len(posts), self.num_steps
        until = min(len(arrivals) + 1, -(-first // num_steps) * num_steps)
        if first >= until:
            return False
        post, turn = posts[-1], first % num_steps
        moves_ns = self._moves_ns[turn : turn + until - first]
        posts += [
            post := (arrival if arrival > post else post) + move_ns
            for arrival, move_ns in zip(arrivals[first - 1 : until - 1], moves_ns, strict=True)
        ]
        self._carry(place)
        return True

    def _carry(self, place: int) -> None:
        """Work out when messages from a place come to the ends of the links of their way."""
        offers, delay_ns = self.posts[place], self.delay_ns
        self._uncounted.append((place, len(offers)))
        if not self.links:
            arrivals = self.arrivals[place]
            arrivals += [post + delay_ns for post in offers[len(arrivals) :]]
            return
        wire_ns, flight_ns = self.wire_ns, delay_ns - self.wire_ns
        until = len(offers) - self.is_end(len(offers) - 1)
        for link in range(place, len(self.links), len(self.members)):
            arrivals = self.arrivals[link]
            free = arrivals[-1] - flight_ns if arrivals else PAST
            arrivals += [
                (free := (offer if offer > free else free) + wire_ns) + flight_ns
                for offer in offers[len(arrivals) : until]
            ]
            arrivals += arrivals[-1:] * (len(offers) - len(arrivals))
            offers = arrivals

    def _count_passed(self) -> None:
        """Count through how many places messages come, in the order in which that was known."""
        for place, until in self._uncounted:
            passed = self._passed[place]
            if len(passed) % self.num_steps == 0:
                passed.append(0)
            first = len(passed)
            ways = self._passed[place - 1][first - 1 : until - 1]
            for link in range(self.before(place) - self.last, len(self.links), len(self.members)):
                arrivals = self.arrivals[link][max(0, first - 2) : until - 1]
                times = arrivals if first > 1 else [PAST, *arrivals]
                ways = [
                    -1 if now - last <= self.wire_ns else way
                    for way, (last, now) in zip(ways, pairwise(times), strict=True)
                ]
            arrivals = self.arrivals[self.before(place)][first - 1 : until - 1]
            posts = self.posts[place][first - 1 : until - 1]
            passed += [
                way + 1 if arrival > post else 0
                for way, arrival, post in zip(ways, arrivals, posts, strict=True)
            ]
        self._uncounted.clear()

    def is_under_way(self, place: int) -> bool:
        """Whether a member has begun and not ended."""
        return len(self.posts[place]) > self.num_steps * self.ended[place]

    def is_end(self, number: int) -> bool:
        """Whether a number stands for an end instead of a message."""
        return number % self.num_steps == self.num_sends

    def post_ns(self, place: int, number: int) -> int:
        """Time at which a message is posted."""
        posts = self.posts[place]
        return posts[number] if number < len(posts) else -PAST

    def start_ns(self, place: int, number: int) -> int:
        """Time at which a message is put on the wire."""
        if number < 0:
            return PAST
        arrivals = self.arrivals[place]
        return arrivals[number] - self.delay_ns if number < len(arrivals) else -PAST

    def num_posted(self, place: int, until_ns: int) -> int:
        """Messages that a member has posted before a time."""
        return max(bisect_left(self.posts[place], until_ns), self.ended[place] * self.num_steps)

    def num_started(self, place: int, until_ns: int, offered: int) -> int:
        """Number of messages offered to a link that have started before a time."""
        return min(offered, bisect_left(self.arrivals[place], until_ns + self.delay_ns))

    def num_passed(self, one: Step, other: Step) -> int:
        """Number of places back for which two events of one time surely are in the same order.

        Messages that wait nowhere keep theirs.
        """
        (kind, place, number), (other_kind, other_place, other_number) = one, other
        if kind not in (MOVE, REDUCTION) or (kind, number) != (other_kind, other_number):
            return 0
        self._count_passed()
        return min(self._passed[place][number], self._passed[other_place][number])

    def posting_back(self, posting: Step, num_places: int) -> Step:
        """Event that posts a message as many places, and messages, back."""
        _, place, number = posting
        return self.posting((place - num_places) % len(self.members), number - num_places)

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
