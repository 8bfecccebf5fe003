"""An NPU's side of collectives: its queues of chunk phases, counters and local moves."""

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from astra_sim.base.lazy import lazy
from astra_sim.base.values import dataclass
from astra_sim.core.events import Timers
from astra_sim.files.system_config import SystemConfig
from astra_sim.files.units import BYTES_PER_GB, NS_PER_S
from astra_sim.system.messages import Messages

if TYPE_CHECKING:
    from astra_sim.system import shared_bus
else:
    shared_bus = lazy("astra_sim.system.shared_bus")

CHUNKS_OF_GROUP = 1_000_000
"""Ids of a group's chunks begin at this many times the group's number."""


class Share(IntEnum):
    """Order in which phases take the queues of a dimension, and so their direction."""

    WHOLE = 0
    LOWER = 1
    UPPER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSettings:
    """Settings of every NPU alike, from the system file and the flags."""

    config: SystemConfig
    endpoint_delay_ns: int
    num_queues: int

    def reduction_ns(self, num_bytes: int) -> int:
        """Time to read two operands and write one; 0 where no memory bandwidth is given."""
        bytes_per_s = self.config.local_mem_bw_gb_per_s * BYTES_PER_GB
        return 3 * int(num_bytes / bytes_per_s * NS_PER_S) if bytes_per_s else 0

    @property
    def max_running(self) -> int:
        """Chunk phases that one queue runs at a time."""
        return -(-self.config.active_chunks_per_dimension // self.num_queues)


class PhaseQueue:
    """First in, first out; at most ``max_running`` chunk phases at a time."""

    __slots__ = ("_max_running", "running", "waiting")

    def __init__(self, max_running: int) -> None:
        self._max_running = max_running
        self.running = 0
        self.waiting: deque[Callable[[], None]] = deque()

    def start_waiting(self) -> None:
        """Start as many waiting phases as the limit allows."""
        while self.waiting and self.running < self._max_running:
            self.running += 1
            self.waiting.popleft()()


class Npu:
    """One NPU: timers, messages, the queues of its dimensions and counters that never go back."""

    __slots__ = (
        "_half",
        "_queues",
        "_ranges",
        "_taken",
        "bus",
        "chunk_ids",
        "messages",
        "rank",
        "settings",
        "timers",
        "trees_made",
    )

    def __init__(
        self, timers: Timers, messages: Messages, settings: SystemSettings, num_dimensions: int
    ) -> None:
        self.rank = timers.rank
        self.timers = timers
        self.messages = messages
        self.settings = settings
        bus = settings.config.shared_bus
        self.bus = None if bus is None else shared_bus.SharedBus(timers, bus)
        self.chunk_ids: dict[int, int] = {}
        self.trees_made: dict[tuple[int, int], int] = {}
        self._queues = [
            [PhaseQueue(settings.max_running) for _ in range(settings.num_queues)]
            for _ in range(num_dimensions)
        ]
        self._taken = [[0] * len(Share) for _ in range(num_dimensions)]
        half = settings.num_queues // 2
        self._half = half
        self._ranges = (
            (0, settings.num_queues),
            (0, max(half, 1)),
            (half, settings.num_queues - half),
        )
        """First queue and number of queues of each share."""

    def take_queue(self, dimension: int, share: Share) -> tuple[PhaseQueue, bool]:
        """Next queue of a dimension in turn, and whether the phase runs up the ring."""
        queues, taken = self._queues[dimension], self._taken[dimension]
        first, count = self._ranges[share]
        index = first + taken[share] % count
        taken[share] += 1
        if share is Share.WHOLE:
            return queues[index], count == 1 or index < self._half
        return queues[index], share is Share.LOWER

    def next_chunk_id(self, group: int) -> int:
        """Id of a new chunk; group 0 is the world, whose count every chunk advances."""
        world = self.chunk_ids.get(0, 0)
        self.chunk_ids[0] = world + 1
        if group == 0:
            return world
        count = self.chunk_ids.get(group, 0)
        self.chunk_ids[group] = count + 1
        return CHUNKS_OF_GROUP * group + count

    def next_tree(self, collective: int, dimension: int) -> int:
        """Tree (0 or 1) of the next chunk phase: they alternate."""
        made = self.trees_made.get((collective, dimension), 0)
        self.trees_made[collective, dimension] = made + 1
        return made % 2
