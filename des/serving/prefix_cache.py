"""Cache of the blocks of prompts in the KV memory of one instance."""

from collections.abc import Sequence


class PrefixCache:
    """Blocks by name: in use by requests, or idle and dropped when memory is short.

    Idle blocks go the longest unused first; of one request the last block goes before the first, as
    a block is of use only with all those before it.

    Examples
    --------
    >>> cache = PrefixCache()
    >>> cache.store((1, 2, 3))
    0
    >>> cache.release((1, 2, 3))
    3
    >>> cache.shrink(2)
    >>> cache.num_leading((1, 2, 3))
    2
    """

    def __init__(self) -> None:
        self._users: dict[int, int] = {}
        self._idle: dict[int, None] = {}

    @property
    def num_idle(self) -> int:
        """Blocks that no request uses."""
        return len(self._idle)

    def num_leading(self, blocks: Sequence[int]) -> int:
        """Number of the first blocks that are here."""
        for number, block in enumerate(blocks):
            if block not in self._users and block not in self._idle:
                return number
        return len(blocks)

    def num_used(self, blocks: Sequence[int]) -> int:
        """Number of blocks that requests use."""
        return sum(block in self._users for block in blocks)

    def use(self, blocks: Sequence[int]) -> int:
        """Let one more request use blocks that are here; return how many were idle."""
        num_idle = 0
        for block in blocks:
            if block in self._idle:
                del self._idle[block]
                num_idle += 1
            self._users[block] = self._users.get(block, 0) + 1
        return num_idle

    def store(self, blocks: Sequence[int]) -> int:
        """Keep blocks that a request has read and uses; return how many others used already."""
        num_used = self.num_used(blocks)
        self.use(blocks)
        return num_used

    def release(self, blocks: Sequence[int]) -> int:
        """Let a request use blocks no longer; return how many are idle by that."""
        num_idle = 0
        for block in reversed(blocks):
            left = self._users.pop(block) - 1
            if left:
                self._users[block] = left
            else:
                self._idle[block] = None
                num_idle += 1
        return num_idle

    def shrink(self, most: int) -> None:
        """Drop idle blocks until there are at most that many."""
        while len(self._idle) > max(most, 0):
            del self._idle[next(iter(self._idle))]
