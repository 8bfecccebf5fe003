"""Replicas with memory in blocks and a pipeline of stages: world, state of a request, history."""

from collections.abc import Sequence
from dataclasses import dataclass

from des.base.checks import require_count
from des.serving.requests import Request, require_in_order
from scenarios.reproduce.serving_oracles.courses import RequestCourse
from scenarios.reproduce.serving_oracles.iteration_times import ContextTimes

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
