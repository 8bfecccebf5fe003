"""Cases of prompt and token pools: reading a folder, and the answer in its form."""

from collections.abc import Mapping
from typing import Any

from des.serving.iteration_times import IterationTable
from des.serving.pool_batches import BatchLimits
from des.serving.pool_engine import run_pools
from des.serving.pool_routers import RouterSettings
from des.serving.pool_world import PoolHistory, PoolMember, PoolWorld
from des.serving.requests import Request

_MIXED_FACTOR = 1.1
"""Factor that splitwise-sim has for an iteration with prompts and tokens."""


def pool_world(config: Mapping[str, Any], requests: tuple[Request, ...]) -> PoolWorld:
    """Make the world of a case, with the faults of splitwise-sim."""
    limits = {
        name: config[name]
        for name in ("max_batch_size", "max_batch_tokens", "max_preemptions")
        if name in config
    }
    return PoolWorld(
        requests=requests,
        members=tuple(
            PoolMember(
                name=each["id"],
                hardware=each["hardware"],
                pool=each["pool"],
                memory_bytes=each["memory_bytes"],
            )
            for each in config["instances"]
        ),
        tables={
            name: IterationTable(
                name=name,
                batch_tokens=tuple(table["batch_tokens"]),
                prompt_s=tuple(table["prompt_s"]),
                token_s=tuple(table["token_s"]),
                mixed_factor=_MIXED_FACTOR,
            )
            for name, table in config["iteration_table"].items()
        },
        kv_bytes_per_token=config["kv_bytes_per_token"],
        weights_bytes=config["weights_bytes"],
        batching=config["batching"],
        limits=BatchLimits(**limits),
        router=config["scheduler"],
        router_settings=RouterSettings(
            threshold_tokens=config.get("prompt_queue_threshold_tokens", 0), counts_done_only=True
        ),
        kv_transfer_bytes_per_s=config.get("kv_transfer_bytes_per_s"),
    )


def pool_answer(config: Mapping[str, Any], requests: tuple[Request, ...]) -> dict[str, Any]:
    """Simulate a case and tell what its check reads."""
    return _told(run_pools(pool_world(config, requests)), len(requests))


def _told(history: PoolHistory, num_requests: int) -> dict[str, Any]:
    served = history.served
    columns: dict[str, list[Any]] = {
        "request_id": [one.request.request_id for one in served],
        "queue_s": [one.queue_s for one in served],
        "ttft_s": [one.ttft_s for one in served],
        "e2e_s": [one.e2e_s for one in served],
        # The source divides by all tokens, though the first one has no gap before it.
        "tbt_s": [(one.e2e_s - one.ttft_s) / one.request.output_tokens for one in served],
        "prompt_instance": [one.prompt_place for one in served],
        "token_instance": [one.token_place for one in served],
    }
    for name in (
        "prompt_start_s",
        "prompt_end_s",
        "transfer_start_s",
        "transfer_end_s",
        "token_start_s",
        "token_end_s",
        "token_blocked_s",
    ):
        columns[name] = [getattr(one, name) for one in served]
    return {
        "requests": columns,
        "totals": {
            "num_requests": num_requests,
            "num_completed": len(served),
            "end_s": history.end_s,
            "mean_ttft_s": sum(columns["ttft_s"]) / len(served),
            "mean_e2e_s": sum(columns["e2e_s"]) / len(served),
            "num_preempted_requests": sum(one.is_preempted for one in served),
        },
        "instances": {"id": list(history.busy_s), "busy_s": list(history.busy_s.values())},
    }
