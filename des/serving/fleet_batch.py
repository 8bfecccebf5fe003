"""Requests of an instance: what waits, is read and is written, and the memory that they hold."""

from collections import deque
from dataclasses import dataclass, field

from des.serving.fleet_memory import KvMemory
from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_settings import Engine


@dataclass(slots=True, eq=False, kw_only=True)
class Batch:
    """Requests that wait, and those in the batch, of which some are read and others written."""

    engine: Engine
    waiting: deque[FleetRequest] = field(default_factory=deque)
    reading: list[FleetRequest] = field(default_factory=list)
    writing: list[FleetRequest] = field(default_factory=list)
    memory: KvMemory = field(init=False)
    context: int = 0
    due_tokens: int = 0
    """Prompt tokens here that are not read yet."""

    def __post_init__(self) -> None:
        self.memory = KvMemory(self.engine)

    @property
    def used(self) -> int:
        """Tokens in KV memory that requests hold."""
        return self.memory.used

    def cached_tokens(self, one: FleetRequest) -> int:
        """Tokens of a request that need not be read here."""
        return self.memory.num_hits(one) * self.engine.prefix_block_tokens

    @property
    def present(self) -> int:
        """Requests here."""
        return len(self.waiting) + len(self.reading) + len(self.writing)

    @property
    def num_waiting(self) -> int:
        """Requests here that hold no memory."""
        return len(self.waiting)

    def tokens_present(self) -> tuple[int, int]:
        """Tokens that all requests here hold or will read, and the least that one has written."""
        present = [*self.writing, *self.reading, *self.waiting]
        return sum(one.held for one in present), min(one.written for one in present)

    def forget_prefixes(self) -> None:
        """Drop what the prefix cache holds for no request."""
        self.memory.drop_idle()

    def give_waiting(self) -> list[FleetRequest]:
        """Take away the requests of which nothing is read yet."""
        given = [one for one in self.waiting if one.to_read]
        self.waiting = deque(one for one in self.waiting if not one.to_read)
        self.due_tokens -= sum(one.to_read for one in given)
        return given

    def fits(self, one: FleetRequest, used: int) -> bool:
        """Whether a request can be let in where that many tokens are held."""
        num = len(self.reading) + len(self.writing)
        needed = used + self.memory.needed(one) + num + 1
        return num < self.engine.max_batch_size and needed <= self.engine.kv_capacity_tokens

    def let_in(self) -> None:
        """Let requests in while they fit."""
        while self.waiting and self.fits(self.waiting[0], self.memory.used):
            one = self.waiting.popleft()
            self.due_tokens -= self.memory.take(one)
            if one.to_read:
                self.reading.append(one)
            else:
                self.writing.append(one)
                self.context += one.held

    def make_room(self, now: float) -> None:
        """Give up the last that write until each of the others has room for a token."""
        while self.writing:
            free = self.engine.kv_capacity_tokens - self.memory.used
            if free >= len(self.writing):
                return
            one = self.writing.pop()
            self.context -= one.held
            self.memory.free(one)
            if self.engine.swap_bytes_per_s:
                one.begin_pause(now)
                self.memory.swap_out(one)
            else:
                one.num_restarts += 1
                one.forget(now)
                self.due_tokens += one.to_read
            self.waiting.appendleft(one)
