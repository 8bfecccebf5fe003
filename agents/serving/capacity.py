"""Sizes of pools that bear a load within the SLO, by the times of the engine."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from des.serving.fleet_settings import Engine, Slo
from des.serving.fleet_world import MIXED, PROMPT, TOKEN, View

HEADROOM = 0.7
"""Share of its time for which an instance should work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Requests per second, and mean tokens of a request."""

    requests_per_s: float
    prompt_tokens: float
    output_tokens: float


def batch_within(engine: Engine, slo: Slo, context_tokens: float) -> int:
    """Most requests that decode together within 80 % of the gap allowed and within the memory.

    Examples
    --------
    >>> from des.serving.batch_times import BatchTimes
    >>> times = BatchTimes(
    ...     base_s=0.01,
    ...     per_prompt_token_s=1e-4,
    ...     per_prompt_context_s=0.0,
    ...     per_request_s=0.001,
    ...     per_context_s=0.0,
    ... )
    >>> engine = Engine(times=times, kv_capacity_tokens=10**6, kv_bytes_per_token=1.0)
    >>> batch_within(engine, Slo(ttft_s=1.0, gap_s=0.1), 100.0)
    70
    """
    times = engine.times
    each_s = times.per_request_s + times.per_context_s * context_tokens
    by_gap = (0.8 * slo.gap_s - times.base_s) / each_s if each_s > 0 else math.inf
    by_memory = 0.9 * engine.kv_capacity_tokens / max(context_tokens, 1.0)
    return max(1, math.floor(min(by_gap, by_memory, engine.max_batch_size) + 1e-9))


def pools_needed(view: View, slo: Slo, load: Load) -> dict[str, int]:
    """Instances of each pool of a view for a load, by the engine of the pool."""
    return {
        pool: instances_needed(view.engine_of(pool), slo, load, (pool,))[pool]
        for pool in view.pools
    }


def instances_needed(engine: Engine, slo: Slo, load: Load, pools: Iterable[str]) -> dict[str, int]:
    """Instances of each pool for a load: seconds of work per second over the headroom."""
    times = engine.times
    context = load.prompt_tokens + load.output_tokens / 2.0
    batch = batch_within(engine, slo, context)
    step_s = times.first_s(batch, math.ceil(batch * context))
    tokens_per_s = load.requests_per_s * load.output_tokens
    writing = tokens_per_s * step_s / batch
    read_s = (
        times.per_prompt_token_s * load.prompt_tokens
        + times.per_prompt_context_s * load.prompt_tokens**2 / 2.0
    )
    num_chunks = max(load.prompt_tokens / engine.chunk_tokens, 1.0)
    alone_s = read_s + times.base_s * num_chunks
    needed = {
        PROMPT: load.requests_per_s * alone_s,
        TOKEN: writing,
        MIXED: load.requests_per_s * alone_s + writing,
    }
    return {pool: max(1, math.ceil(needed[pool] / HEADROOM)) for pool in pools}
