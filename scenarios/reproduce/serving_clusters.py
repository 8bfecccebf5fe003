"""Cases of replicas with block memory, and of prefill and decode instances that work in turns.

Cases of prompt and token pools: reading a folder, and the answer in its form.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from des.serving.requests import Request
from scenarios.reproduce.serving_oracles.block_batches import (
    BlockHistory,
    BlockSettings,
    BlockWorld,
)
from scenarios.reproduce.serving_oracles.block_engine import run_blocks
from scenarios.reproduce.serving_oracles.courses import (
    ContextTimes,
    IterationTable,
    course_columns,
    course_totals,
)
from scenarios.reproduce.serving_oracles.pool_batches import BatchLimits
from scenarios.reproduce.serving_oracles.pool_engine import PoolMember, PoolWorld, run_pools
from scenarios.reproduce.serving_oracles.pool_routers import RouterSettings
from scenarios.reproduce.serving_oracles.turn_engine import (
    DecodeTimes,
    TurnSettings,
    TurnWorld,
    run_turns,
)

_MS = 1e-3
_PREFILL_OVERHEAD_MS, _TURN_OVERHEAD_MS, _PER_HELD_TOKEN_MS = 1.0, 2.0, 1e-4
"""Overheads that DistServe's simulator adds to the times of turns."""
_BLOCK_NAMES = (
    "batching",
    "pipeline_stages",
    "batch_size_cap",
    "num_blocks",
    "block_tokens",
    "watermark_fraction",
    "max_tokens_in_batch",
    "chunk_tokens",
    "max_request_tokens",
    "max_batch_size",
)


def block_history(config: Mapping[str, Any], requests: tuple[Request, ...]) -> BlockHistory:
    """Simulate a case of replicas, with the fault of Vidur's run to completion."""
    settings = {name: config[name] for name in _BLOCK_NAMES if config.get(name) is not None}
    world = BlockWorld(
        requests=requests,
        num_replicas=config["num_replicas"],
        router=config["scheduler"],
        settings=BlockSettings(**settings, keeps_early_blocks=True),
        times=ContextTimes(**config["iteration_time"]),
    )
    return run_blocks(world)


def block_answer(config: Mapping[str, Any], requests: tuple[Request, ...]) -> dict[str, Any]:
    """Simulate a case of replicas and tell what its check reads."""
    history = block_history(config, requests)
    done = [one for one in history.requests if one.end_s is not None]
    columns = course_columns(done)
    return {
        "requests": {
            "request_id": columns.pop("request_id"),
            "replica": [one.replica for one in done],
            **columns,
            "num_restarts": [one.num_restarts for one in done],
        },
        "totals": course_totals(history.requests)
        | {
            "num_batches": history.num_batches,
            "executed_tokens": history.executed_tokens,
            "num_restarts": sum(one.num_restarts for one in history.requests),
        },
    }


def turn_answer(config: Mapping[str, Any], requests: tuple[Request, ...]) -> dict[str, Any]:
    """Simulate a case of instances that work in turns and tell what its check reads."""
    history = run_turns(_turn_world(config, requests))
    done = [one for one in history.requests if one.end_s is not None]
    return {
        "requests": course_columns(done)
        | {
            "prompt_instance": [one.prompt_place for one in done],
            "token_instance": [one.token_place for one in done],
        },
        "instances": {
            "id": list(range(len(history.prompt_turns))),
            "prompt_iterations": list(history.prompt_turns),
            "token_iterations": list(history.token_turns),
        },
        "totals": course_totals(history.requests),
    }


def _turn_world(config: Mapping[str, Any], requests: Sequence[Request]) -> TurnWorld:
    is_split = config["layout"] == "split"
    num_prefill = config["prefill_instances"] if is_split else config["instances"]
    settings = TurnSettings(
        is_chunked=config["chunked"],
        prefill_max_requests=config["prefill_max_requests"],
        prefill_max_tokens=config["prefill_max_tokens"],
        decode_max_requests=config["decode_max_requests"],
        decode_max_context_tokens=config["decode_max_context_tokens"],
        prefill=ContextTimes(
            base_s=config["prefill_ms"]["constant"] * _MS,
            per_token_s=config["prefill_ms"]["per_token"] * _MS,
            per_token_context_s=config["prefill_ms"]["per_square_token"] * _MS,
        ),
        decode_small=_decode_times(config["decode_small_ms"]),
        decode_large=_decode_times(config["decode_large_ms"]),
        decode_large_from_requests=config["decode_large_from_requests"],
        prefill_overhead_s=_PREFILL_OVERHEAD_MS * _MS,
        turn_overhead_s=_TURN_OVERHEAD_MS * _MS,
        per_held_token_overhead_s=_PER_HELD_TOKEN_MS * _MS,
        subtracts_twice=True,
    )
    return TurnWorld(
        requests=requests,
        layout=config["layout"],
        num_instances=num_prefill + (config["decode_instances"] if is_split else 0),
        num_prefill=num_prefill,
        settings=settings,
    )


def _decode_times(costs_ms: Mapping[str, float]) -> DecodeTimes:
    return DecodeTimes(
        constant_s=costs_ms["constant"] * _MS,
        per_context_token_s=costs_ms["per_context_token"] * _MS,
        per_request_s=costs_ms["per_request"] * _MS,
    )


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
