"""Chunks of a collective go through phases, one logical dimension each."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from astra_sim.base.values import dataclass
from astra_sim.core.events import Event
from astra_sim.files.execution_trace import CollectiveType
from astra_sim.files.system_config import Algorithm
from astra_sim.system.messages import Done
from astra_sim.system.npu import Npu, PhaseQueue, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """Plan of every chunk of a kind in one of its phases on one NPU.

    ``members`` exchange among each other, this NPU standing at ``position``. ``is_part`` is true
    in communicator groups smaller than the system.
    """

    kind: CollectiveType
    algorithm: Algorithm
    dimension: int
    share: Share
    members: tuple[int, ...]
    position: int
    is_part: bool = False

    def pass_on(self, num_bytes: int) -> int:
        """Data that a chunk of ``num_bytes`` has after this phase."""
        if self.algorithm.name == "doubleBinaryTree":
            return num_bytes
        if self.kind is CollectiveType.REDUCE_SCATTER:
            return num_bytes // len(self.members)
        if self.kind is CollectiveType.ALL_GATHER:
            return num_bytes * len(self.members)
        return num_bytes


class Turns(NamedTuple):
    """Counts of a ring exchange between a token and the next."""

    sends_left: int
    others_left: int
    """Tokens of the round that follow the plain one, with which it begins."""
    is_odd: bool
    """Whether the round is the first, third and so on."""


class RingShape(NamedTuple):
    """All that the steps of a ring exchange depend on apart from its members."""

    num_members: int
    is_up: bool
    message_bytes: int
    turns: Turns
    """Counts once the first token is made."""
    reduces_in_even: bool
    reduces_in_odd: bool
    move_ns: int
    reduction_ns: int
    delay_ns: int | None
    """Time from a send to its arrival; None where that is not always the same."""
    is_free: bool
    """Whether local moves take time and wait for nothing."""


class Phase:
    """Phase of chunks, with the queue, direction and tree (0 or 1) chosen when a chunk is made."""

    __slots__ = ("is_up", "plan", "queue", "ring_shapes", "tree")

    def __init__(self, plan: PhasePlan, queue: PhaseQueue, is_up: bool, tree: int) -> None:
        self.plan = plan
        self.queue = queue
        self.is_up = is_up
        self.tree = tree
        self.ring_shapes: dict[int, RingShape] = {}
        """Steps of the phase as a ring, by the bytes of a chunk."""


class PhaseRun:
    """A phase that starts now, with the data it has then; ``end`` is called when it is over.

    ``num_moves`` counts the local moves that it starts with.
    """

    __slots__ = ("end", "npu", "num_bytes", "num_moves", "phase", "tag")

    def __init__(
        self, npu: Npu, phase: Phase, tag: int, num_bytes: int, end: Callable[[], None]
    ) -> None:
        self.npu = npu
        self.phase = phase
        self.tag = tag
        self.num_bytes = num_bytes
        self.end = end
        self.num_moves = 0

    def end_now(self, _: None) -> None:
        """End the phase by a timer."""
        self.end()


class RingMember(Protocol):
    """Member of a ring, which can go on by events, in another place or at another time."""

    run: PhaseRun
    shape: RingShape
    may_leap: bool
    """Whether its steps may be worked out ahead."""

    @property
    def received(self) -> Done:
        """Function that takes a message."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """Sends left, others left of the round, what else the next steps depend on; last tokens."""
        ...

    def set_timer(self, delay_ns: int, *, reduces: bool) -> None:
        """Set the timer of a local move, or of the reduction after it."""
        ...

    def timer_at(self, time_ns: int, *, reduces: bool) -> Event:
        """Event of such a timer, which is the NPU's first for a time."""
        ...

    def resume(self, turns: Turns, num_tokens: int = 1) -> None:
        """Continue with these counts."""
        ...

    def turn(self, run: PhaseRun, num_steps: int) -> None:
        """Stand in the place of another phase, some steps later."""
        ...
