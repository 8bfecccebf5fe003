"""Ring, direct and halving-doubling as one machine of tokens, credits and local moves.

A token is a message to be sent; each one is preceded by a local move, whose end gives a credit.
A credit sends the oldest token. Every message received makes a new token.
"""

import math
from abc import ABC, abstractmethod
from collections import deque

from astra_sim.files.execution_trace import CollectiveType
from astra_sim.system.messages import Key
from astra_sim.system.phases import PhaseRun

GROUP_MOVE_NS = 10
"""A local move in a group smaller than the system, whatever the endpoint delay."""


Token = tuple[Key, Key]


class Exchange(ABC):
    """One chunk phase of one NPU; subclasses say who its peers are.

    The first round has ``width`` tokens that only move, the second ``second_round`` that also
    reduce: in a reduce-scatter always, in an all-reduce in its odd rounds.
    """

    __slots__ = (
        "_bus",
        "_credits",
        "_end",
        "_is_odd",
        "_message_bytes",
        "_messages",
        "_move_ns",
        "_others_left",
        "_plain_left",
        "_rank",
        "_reduced_bytes",
        "_reduces_in_even",
        "_reduces_in_odd",
        "_reduction_ns",
        "_second_round",
        "_sends_left",
        "_settings",
        "_tag",
        "_timers",
        "_tokens",
        "_width",
    )

    def __init__(
        self, run: PhaseRun, *, message_bytes: int, sends: int, width: int, second: int
    ) -> None:
        npu, plan = run.npu, run.phase.plan
        self._end = run.end
        run.num_moves = width
        self._rank = npu.rank
        self._timers = npu.timers
        self._messages = npu.messages
        self._settings = npu.settings
        self._tag = run.tag
        self._reduces_in_even = plan.kind is CollectiveType.REDUCE_SCATTER
        self._reduces_in_odd = self._reduces_in_even or plan.kind is CollectiveType.ALL_REDUCE
        self._bus = None if plan.is_part else npu.bus
        self._move_ns = GROUP_MOVE_NS if plan.is_part else npu.settings.endpoint_delay_ns
        self._message_bytes = message_bytes
        self._sends_left = sends
        self._width = width
        self._second_round = second
        self._plain_left = self._others_left = 0
        self._is_odd = False
        self._credits = 0
        self._reduced_bytes = self._reduction_ns = 0
        self._tokens: deque[Token] = deque()

    def start(self) -> None:
        """Make the first round's tokens, which only move."""
        width, num_bytes = self._width, self._message_bytes
        if self._bus is not None:
            for _ in range(width):
                self._make_token()
        elif width:
            self._is_odd = True
            self._others_left = self._second_round
            self._tokens.extend([self._next_token() for _ in range(width)])
            self._timers.after_each(self._move_ns, self._move, num_bytes, width)

    @abstractmethod
    def _next_token(self) -> Token:
        """Keys of the message that the next token sends and of the one it then waits for."""

    def _make_token(self, _: None = None) -> None:
        if not self._plain_left and not self._others_left:
            self._plain_left = self._width
            self._others_left = self._second_round
            self._is_odd = not self._is_odd
        num_bytes = self._message_bytes
        self._tokens.append(self._next_token())
        is_plain, reduces = self._plain_left > 0, False
        if is_plain:
            self._plain_left -= 1
        else:
            self._others_left -= 1
            reduces = self._reduces_in_odd if self._is_odd else self._reduces_in_even
        done = self._reduce if reduces else self._move
        if self._bus is None:
            self._timers.after(self._move_ns, done, num_bytes)
        else:
            self._bus.move(
                from_a=is_plain,
                num_bytes=num_bytes,
                reduces=reduces,
                back=not is_plain and self._others_left >= self._width,
                done=done,
                argument=num_bytes,
            )

    _received = _make_token

    def _reduce(self, num_bytes: int) -> None:
        if num_bytes != self._reduced_bytes:
            self._reduced_bytes = num_bytes
            self._reduction_ns = self._settings.reduction_ns(num_bytes)
        self._timers.after(self._reduction_ns, self._move)

    def _move(self, _: int | None) -> None:
        """Give a credit, which sends the oldest token if there is one and sends are left."""
        if self._sends_left and self._tokens:
            self._sends_left -= 1
            outgoing, incoming = self._tokens.popleft()
            self._messages.exchange(outgoing, incoming, self._received)
        else:
            self._credits += 1
        if not self._sends_left and self._credits == self._width:
            self._end()


class DirectExchange(Exchange):
    """Every other member in turn: targets in the phase's direction, sources against it."""

    __slots__ = (
        "_is_all_reduce",
        "_known",
        "_members",
        "_next",
        "_others",
        "_position",
        "_received_count",
        "_step",
    )

    def __init__(self, run: PhaseRun) -> None:
        plan = run.phase.plan
        members, n = plan.members, len(plan.members)
        window = plan.algorithm.window
        width = n - 1 if window is None else min(window, n - 1)
        kind = plan.kind
        super().__init__(
            run,
            message_bytes=ring_bytes(kind, run.num_bytes, n),
            sends=2 * (n - 1) if kind is CollectiveType.ALL_REDUCE else n - 1,
            width=width,
            second=(n - 1) * width if plan.is_part else width,
        )
        self._members = members
        self._position = plan.position
        self._step = 1 if run.phase.is_up else -1
        self._others = n - 1
        self._next = 0
        self._known: list[Token] = []
        """Tokens of the other members, nearest first; each round has the same."""
        self._is_all_reduce = kind is CollectiveType.ALL_REDUCE
        self._received_count = 0

    def _next_token(self) -> Token:
        number, known = self._next, self._known
        self._next = (number + 1) % self._others
        if number < len(known):
            return known[number]
        members, shift, num_bytes = self._members, self._step * (number + 1), self._message_bytes
        n, tag, rank = len(members), self._tag, self._rank
        target = members[(self._position + shift) % n]
        source = members[(self._position - shift) % n]
        token = (tag, rank, target, num_bytes), (tag, source, rank, num_bytes)
        known.append(token)
        return token

    def _received(self, _: None = None) -> None:
        self._received_count += 1
        self._make_token()

    def _move(self, num_bytes: int | None) -> None:
        others = self._others
        if not self._is_all_reduce or self._sends_left > others:
            super()._move(num_bytes)
            return
        self._credits += 1
        if self._received_count < others:
            return
        possible = min(self._width, self._credits, self._sends_left, len(self._tokens))
        self._credits -= possible
        self._sends_left -= possible
        for _ in range(possible):
            outgoing, incoming = self._tokens.popleft()
            self._messages.exchange(outgoing, incoming, self._received)
        if not self._sends_left and self._credits == self._width:
            self._end()


class HalvingDoublingExchange(Exchange):
    """The member at a distance that doubles as messages halve, and then back.

    Meant for powers of two: with other numbers of members it stalls, as the original does.
    """

    __slots__ = ("_distance", "_doubles", "_members", "_position", "_turns")

    def __init__(self, run: PhaseRun) -> None:
        plan = run.phase.plan
        n = len(plan.members)
        kind = plan.kind
        gathers = kind is CollectiveType.ALL_GATHER
        rounds = 2 if kind is CollectiveType.ALL_REDUCE else 1
        super().__init__(
            run,
            message_bytes=run.num_bytes if gathers else run.num_bytes // 2,
            sends=math.floor(rounds * math.log2(n)),
            width=1,
            second=math.floor(math.log2(n) - 1),
        )
        self._members = plan.members
        self._position = plan.position
        self._doubles = not gathers
        self._turns = kind is CollectiveType.ALL_REDUCE
        self._distance = n // 2 if gathers else 1

    def _next_token(self) -> Token:
        position, distance, rank = self._position, self._distance, self._rank
        peer = rank
        if distance:
            shift = distance if position // distance % 2 == 0 else -distance
            peer = self._members[(position + shift) % len(self._members)]
        num_bytes = self._message_bytes
        self._advance()
        return (self._tag, rank, peer, num_bytes), (self._tag, peer, rank, num_bytes)

    def _advance(self) -> None:
        """Go to the next distance, turning back in an all-reduce at the whole ring."""
        if self._doubles:
            self._distance *= 2
            self._message_bytes //= 2
        else:
            self._distance //= 2
            self._message_bytes *= 2
        if self._turns and self._distance == len(self._members):
            self._doubles = False
            self._distance //= 2
            self._message_bytes *= 2

    def _move(self, num_bytes: int | None) -> None:
        """Send nothing once the distance is 0, when peer and NPU are the same."""
        if self._tokens and self._tokens[0][0][2] == self._rank:
            self._credits += 1
            if not self._sends_left and self._credits == self._width:
                self._end()
            return
        super()._move(num_bytes)


def ring_bytes(kind: CollectiveType, num_bytes: int, num_members: int) -> int:
    """Bytes of each message of a ring or direct exchange."""
    return num_bytes if kind is CollectiveType.ALL_GATHER else num_bytes // num_members
