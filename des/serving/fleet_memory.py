"""KV memory of an instance, in tokens: what requests hold, blocks that they share, swapping."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from des.serving.fleet_requests import FleetRequest
from des.serving.fleet_settings import Engine
from des.serving.prefix_cache import PrefixCache


@dataclass(slots=True, eq=False)
class KvMemory:
    """Tokens in use; with a cache, idle blocks of prompts are in the rest of the memory."""

    engine: Engine
    used: int = 0
    cache: PrefixCache | None = field(init=False, default=None)
    swapping_s: float = 0.0
    """Time of the moves to and from the host that the next iteration waits for."""

    def __post_init__(self) -> None:
        if self.engine.prefix_block_tokens:
            self.cache = PrefixCache()

    def needed(self, one: FleetRequest) -> int:
        """Tokens that a request would add."""
        if self.cache is None:
            return one.held
        blocks = one.request.prefix_blocks[: self.num_hits(one)]
        return one.held - self.cache.num_used(blocks) * self.engine.prefix_block_tokens

    def num_hits(self, one: FleetRequest) -> int:
        """First blocks of a request that it need not read; one token is always read."""
        if self.cache is None or one.to_read < one.held:
            return 0
        blocks = one.request.prefix_blocks
        num_full = min(one.request.prompt_tokens, one.to_read - 1) // (
            self.engine.prefix_block_tokens
        )
        return self.cache.num_leading(blocks[:num_full])

    def take(self, one: FleetRequest) -> int:
        """Let a request in; return the tokens that it need not read."""
        if one.is_swapped:
            one.is_swapped = False
            self.swapping_s += self._swap_s(one)
        num = self.num_hits(one)
        if not num or self.cache is None:
            self.used += one.held
            return 0
        size = self.engine.prefix_block_tokens
        idle = self.cache.use(one.request.prefix_blocks[:num])
        self.used += one.held - (num - idle) * size
        one.num_shared = num
        one.to_read -= num * size
        one.cached_tokens += num * size
        return num * size

    def keep(self, read: Sequence[FleetRequest]) -> None:
        """Keep the blocks of prompts that have been read."""
        if self.cache is None:
            return
        size = self.engine.prefix_block_tokens
        for one in read:
            num_full = min(one.request.prompt_tokens // size, len(one.request.prefix_blocks))
            twice = self.cache.store(one.request.prefix_blocks[one.num_shared : num_full])
            self.used -= twice * size
            one.num_shared = num_full

    def free(self, one: FleetRequest) -> None:
        """Free what a request holds; its blocks stay as idle ones."""
        if self.cache is None or not one.num_shared:
            self.used -= one.held
            return
        size = self.engine.prefix_block_tokens
        idle = self.cache.release(one.request.prefix_blocks[: one.num_shared])
        self.used -= one.held - (one.num_shared - idle) * size
        one.num_shared = 0

    def swap_out(self, one: FleetRequest) -> None:
        """Move a request that was freed to the memory of the host."""
        one.is_swapped = True
        one.num_swaps += 1
        self.swapping_s += self._swap_s(one)

    def _swap_s(self, one: FleetRequest) -> float:
        return one.held * self.engine.kv_bytes_per_token / self.engine.swap_bytes_per_s

    def make_idle_fit(self, num_new: int) -> None:
        """Drop idle blocks until the next tokens fit."""
        if self.cache is not None:
            free = self.engine.kv_capacity_tokens - self.used - num_new
            self.cache.shrink(free // self.engine.prefix_block_tokens)

    def drop_idle(self) -> None:
        """Drop all idle blocks."""
        if self.cache is not None:
            self.cache.shrink(0)

    def take_swapping_s(self) -> float:
        """Take the time of the moves that are due."""
        found, self.swapping_s = self.swapping_s, 0.0
        return found
