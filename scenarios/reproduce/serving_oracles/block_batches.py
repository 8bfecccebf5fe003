"""Replicas with memory in blocks: their world, and the next batch of each batching.

Sources: Kwon et al., "PagedAttention", SOSP 2023; Agrawal et al., "Sarathi-Serve", OSDI 2024; Yu et
al., "Orca", OSDI 2022; FasterTransformer; in the form that Vidur has (Agrawal et al., MLSys 2024).
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from des.base.checks import require_count
from des.serving.requests import Request, require_in_order
from scenarios.reproduce.serving_oracles.courses import ContextTimes, RequestCourse

BLOCK_BATCHINGS = ("vllm", "sarathi", "orca", "faster_transformer")
BLOCK_ROUTERS = ("round_robin", "least_outstanding")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSettings:
    """Batching of a replica, and its memory.

    ``keeps_early_blocks`` is a fault of a reference program: `faster_transformer` never frees the
    blocks of requests that finish before the last of their batch.
    """

    batching: str
    pipeline_stages: int = 1
    batch_size_cap: int = 128
    num_blocks: int
    block_tokens: int = 16
    watermark_fraction: float = 0.01
    max_tokens_in_batch: int = 4096
    chunk_tokens: int = 512
    max_request_tokens: int = 4096
    max_batch_size: int = 128
    keeps_early_blocks: bool = False

    def __post_init__(self) -> None:
        if self.batching not in BLOCK_BATCHINGS:
            raise ValueError(f"batching must be one of {BLOCK_BATCHINGS}, got {self.batching!r}")
        for name in (
            "pipeline_stages",
            "batch_size_cap",
            "num_blocks",
            "block_tokens",
            "max_tokens_in_batch",
            "chunk_tokens",
            "max_request_tokens",
            "max_batch_size",
        ):
            require_count("block settings", name, getattr(self, name))
        if not 0 <= self.watermark_fraction < 1:
            raise ValueError(
                f"block settings: watermark_fraction must be at least 0 and below 1, "
                f"got {self.watermark_fraction!r}"
            )
        if self.batch_size_cap < self.pipeline_stages:
            raise ValueError(
                f"block settings: batch_size_cap must be at least pipeline_stages "
                f"({self.pipeline_stages}), got {self.batch_size_cap}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWorld:
    """Equal replicas, a stream of requests and how these are spread."""

    requests: Sequence[Request]
    num_replicas: int
    router: str
    settings: BlockSettings
    times: ContextTimes

    def __post_init__(self) -> None:
        require_in_order("requests", self.requests)
        require_count("serving world", "num_replicas", self.num_replicas)
        if self.router not in BLOCK_ROUTERS:
            raise ValueError(f"router must be one of {BLOCK_ROUTERS}, got {self.router!r}")


@dataclass(slots=True, eq=False)
class BlockRequest(RequestCourse):
    """One request on a replica; a restart makes what it has processed its new prompt."""

    prompt: int = 0
    total: int = 0
    done: int = 0
    num_blocks: int = 0
    num_restarts: int = 0
    replica: int = -1

    def __post_init__(self) -> None:
        self.prompt = self.request.prompt_tokens
        self.total = self.prompt + self.request.output_tokens

    @property
    def has_prompt_left(self) -> bool:
        """Whether its prompt is not complete."""
        return self.done < self.prompt

    @property
    def next_tokens(self) -> int:
        """Tokens of an iteration without chunks: the whole prompt, or one."""
        return self.prompt if self.has_prompt_left else 1

    def restart(self) -> None:
        """Give up what is computed: all tokens so far are a prompt to be read again."""
        self.prompt, self.done = self.done, 0
        self.num_restarts += 1

    def advance(self, num_tokens: int, now_s: float) -> None:
        """Process tokens; the end of the prompt gives one more."""
        self.done += num_tokens
        if self.done == self.prompt:
            self.done += 1
            if self.first_token_s is None:
                self.first_token_s = now_s
        if self.done == self.total:
            self.end_s = now_s


Batch = list[tuple[BlockRequest, int]]
"""Requests of a batch with the tokens that each processes in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHistory:
    """All requests in order of arrival, and counts over all batches."""

    requests: tuple[BlockRequest, ...]
    num_batches: int
    executed_tokens: int
    first_batches: tuple[tuple[float, tuple[tuple[int, int], ...]], ...]
    """Time on the first stage [s], and names and tokens, of the first batches."""


def _arrival_s(one: BlockRequest) -> float:
    return one.request.arrival_s


@dataclass(slots=True, kw_only=True)
class BlockQueues:
    """Queues and memory of one replica."""

    settings: BlockSettings
    queue: deque[BlockRequest] = field(default_factory=deque)
    """Requests without blocks."""
    back: list[BlockRequest] = field(default_factory=list)
    """Requests that have been in a batch and wait for the next one."""
    back_batches: deque[list[BlockRequest]] = field(default_factory=deque)
    """Whole batches that wait to continue, under run to completion."""
    used: int = 0
    num_holding: int = 0
    """Requests that hold blocks."""

    @property
    def free(self) -> int:
        """Blocks that are free."""
        return self.settings.num_blocks - self.used

    def fits(self, one: BlockRequest) -> bool:
        """Whether the memory has room for the next batch of a request."""
        if one.num_blocks:
            return self.free >= 1
        settings = self.settings
        kept_free = math.floor(settings.watermark_fraction * settings.num_blocks)
        return self.free - self._needed(one) >= kept_free

    def take(self, one: BlockRequest) -> None:
        """Give a request the blocks of its prompt, or one more when its last one is full."""
        if not one.num_blocks:
            self.hold(one, self._needed(one))
        elif one.done > one.num_blocks * self.settings.block_tokens:
            one.num_blocks += 1
            self.used += 1

    def hold(self, one: BlockRequest, num_blocks: int) -> None:
        """Give a request its first blocks."""
        one.num_blocks = num_blocks
        self.used += num_blocks
        self.num_holding += 1

    def release(self, one: BlockRequest) -> None:
        """Free the blocks of a request."""
        self.used -= one.num_blocks
        self.num_holding -= one.num_blocks > 0
        one.num_blocks = 0

    def make_room(self, one: BlockRequest) -> bool:
        """Restart the last of those that wait until a request fits; at the end itself."""
        while not self.fits(one):
            victim = self.back.pop() if self.back else one
            victim.restart()
            self.release(victim)
            self.queue.appendleft(victim)
            if victim is one:
                return False
        return True

    def _needed(self, one: BlockRequest) -> int:
        return -(-one.prompt // self.settings.block_tokens)


def next_vllm(queues: BlockQueues) -> Batch:
    """Prompts as long as they fit, else one token of each running request."""
    settings = queues.settings
    most = settings.batch_size_cap // settings.pipeline_stages
    batch: Batch = []
    largest = 0
    while queues.queue and len(batch) < most:
        one = queues.queue[0]
        largest = max(largest, one.prompt)
        if (
            not queues.fits(one)
            or (len(batch) + 1) * largest > settings.max_tokens_in_batch
            or queues.num_holding >= settings.batch_size_cap
        ):
            break
        queues.take(queues.queue.popleft())
        batch.append((one, one.prompt))
    if batch:
        return batch
    queues.back.sort(key=_arrival_s)
    while queues.back and len(batch) < most:
        one = queues.back.pop(0)
        if queues.make_room(one):
            queues.take(one)
            batch.append((one, 1))
    return batch


def next_sarathi(queues: BlockQueues) -> Batch:
    """One token of each running request, and pieces of prompts up to the chunk."""
    settings = queues.settings
    most = settings.batch_size_cap // settings.pipeline_stages
    batch: Batch = []
    aside: list[BlockRequest] = []
    while queues.back and len(batch) < most:
        one = queues.back.pop(0)
        if one.has_prompt_left:
            aside.append(one)
        elif queues.make_room(one):
            queues.take(one)
            batch.append((one, 1))
    left = settings.chunk_tokens - len(batch)
    without = []
    for one in aside:
        piece = max(0, min(one.prompt - one.done, left))
        if piece:
            batch.append((one, piece))
            left -= piece
        else:
            without.append(one)
    queues.back = sorted(without + queues.back, key=_arrival_s)
    while queues.queue and len(batch) < most and queues.num_holding < settings.batch_size_cap:
        one = queues.queue[0]
        piece = max(0, min(one.prompt - one.done, left))
        if not piece or not queues.fits(one):
            break
        queues.take(queues.queue.popleft())
        batch.append((one, piece))
        left -= piece
    return batch


def next_orca(queues: BlockQueues) -> Batch:
    """Running requests, then whole prompts; each reserves the blocks of the longest request."""
    most = queues.settings.max_batch_size
    batch: Batch = [(one, one.next_tokens) for one in queues.back[:most]]
    del queues.back[:most]
    return batch + _reserving(queues, most - len(batch))


def next_to_completion(queues: BlockQueues) -> Batch:
    """A batch continues until all of it is finished; only then comes a new one."""
    if queues.back_batches:
        return [(one, one.next_tokens) for one in queues.back_batches.popleft()]
    return _reserving(queues, queues.settings.max_batch_size)


def _reserving(queues: BlockQueues, most: int) -> Batch:
    settings = queues.settings
    reserved = settings.max_request_tokens // settings.block_tokens
    batch: Batch = []
    while queues.queue and len(batch) < most and queues.free >= reserved:
        one = queues.queue.popleft()
        queues.hold(one, reserved)
        batch.append((one, one.prompt))
    return batch


NEXT_BATCH: Mapping[str, Callable[[BlockQueues], Batch]] = {
    "vllm": next_vllm,
    "sarathi": next_sarathi,
    "orca": next_orca,
    "faster_transformer": next_to_completion,
}
"""Functions that make a batch, by the name of the batching."""
