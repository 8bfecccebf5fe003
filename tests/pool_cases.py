"""Small clusters of pools for tests."""

from des.serving.iteration_times import IterationTable
from des.serving.pool_batches import BatchLimits
from des.serving.pool_routers import RouterSettings
from des.serving.pool_world import PoolMember, PoolWorld
from des.serving.requests import Request

PROMPT_S, TOKEN_S = 0.25, 0.125
FLAT = IterationTable(
    name="flat",
    batch_tokens=(1, 4096),
    prompt_s=(PROMPT_S, PROMPT_S),
    token_s=(TOKEN_S, TOKEN_S),
    mixed_factor=1.0,
)
"""An iteration takes the same time whatever its size: exact in binary."""


def request(number: int, arrival_s: float, prompt: int = 100, output: int = 9) -> Request:
    """One request."""
    return Request(
        request_id=number, arrival_s=arrival_s, prompt_tokens=prompt, output_tokens=output
    )


def pools(requests, *, router="mixed_pool", batching="splitwise", num=(1, 1), **changes):
    """A cluster with a prompt pool and a token pool of those numbers of instances."""
    names = ["prompt"] * num[0] + ["token"] * num[1]
    settings = {
        "requests": tuple(requests),
        "members": tuple(
            PoolMember(name=place, hardware="flat", pool=pool, memory_bytes=10_000)
            for place, pool in enumerate(names)
        ),
        "tables": {"flat": FLAT},
        "kv_bytes_per_token": 1,
        "weights_bytes": 1000,
        "batching": batching,
        "limits": BatchLimits(max_batch_size=32, max_batch_tokens=512, max_preemptions=4),
        "router": router,
        "router_settings": RouterSettings(threshold_tokens=1000),
        "kv_transfer_bytes_per_s": 400.0,
    }
    return PoolWorld(**(settings | changes))
