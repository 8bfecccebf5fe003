"""Cases of prompt and token pools: reading a folder, and the answer in its form."""

from collections.abc import Mapping
from typing import Any

from des.serving.requests import Request
from scenarios.reproduce.serving_oracles.courses import course_columns, course_totals
from scenarios.reproduce.serving_oracles.iteration_times import IterationTable
from scenarios.reproduce.serving_oracles.pool_batches import BatchLimits
from scenarios.reproduce.serving_oracles.pool_engine import run_pools
from scenarios.reproduce.serving_oracles.pool_routers import RouterSettings
from scenarios.reproduce.serving_oracles.pool_world import PoolMember, PoolWorld

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
    world = pool_world(config, requests)
    history = run_pools(world)
    served = [one for one in history.requests if one.end_s is not None]
    columns = course_columns(served)
    latencies = zip(columns["ttft_s"], columns["e2e_s"], served, strict=True)
    columns |= {
        # The source divides by all tokens, though the first one has no gap before it.
        "tbt_s": [(e2e_s - ttft_s) / one.request.output_tokens for ttft_s, e2e_s, one in latencies],
        "prompt_instance": [world.members[one.prompt_place].name for one in served],
        "token_instance": [world.members[one.token_place].name for one in served],
        "prompt_start_s": [one.start_s for one in served],
        "prompt_end_s": [one.first_token_s for one in served],
        "transfer_start_s": [one.transfer_start_s for one in served],
        "transfer_end_s": [one.transfer_end_s for one in served],
        "token_start_s": [one.token_start_s for one in served],
        "token_end_s": [one.end_s for one in served],
        "token_blocked_s": [one.token.blocked_s for one in served],
    }
    return {
        "requests": columns,
        "totals": course_totals(history.requests)
        | {
            "mean_ttft_s": sum(columns["ttft_s"]) / len(served),
            "mean_e2e_s": sum(columns["e2e_s"]) / len(served),
            "num_preempted_requests": sum(one.is_preempted for one in served),
        },
        "instances": {"id": list(history.busy_s), "busy_s": list(history.busy_s.values())},
    }
