"""Arrays of a fleet for the kernels, made of its world."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from des.compiled.kernels.fleet_batches import (
    EngineNumbers,
    InstanceArrays,
    Progress,
    RequestArrays,
)
from des.compiled.kernels.fleet_loop import FleetArrays, TransferNumbers
from des.serving.fleet_settings import Engine
from des.serving.fleet_world import World
from des.serving.gaps import NUM_BINS


def _counts(*shape: int) -> npt.NDArray[np.int64]:
    return np.zeros(shape, np.int64)


def engine_numbers(engine: Engine) -> EngineNumbers:
    """Numbers of an engine."""
    times = {name: float(value) for name, value in dataclasses.asdict(engine.times).items()}
    return EngineNumbers(
        **times,
        kv_capacity_tokens=engine.kv_capacity_tokens,
        max_batch_size=engine.max_batch_size,
        chunk_tokens=engine.chunk_tokens,
    )


def transfer_numbers(world: World) -> TransferNumbers:
    """Numbers of the transfers of a world."""
    return TransferNumbers(
        bytes_per_token=float(world.engine.kv_bytes_per_token),
        bytes_per_s=float(world.transfer_bytes_per_s),
        latency_s=float(world.transfer_latency_s),
        contend=world.transfers_contend,
    )


def progress_numbers(world: World) -> Progress:
    """Counts at the start."""
    slo = world.slo
    return Progress(counts=_counts(3), ttft_s=float(slo.ttft_s), gap_s=float(slo.gap_s))


def request_arrays(world: World) -> RequestArrays:
    """Requests before they arrive."""
    num = len(world.requests)
    prompt = np.array([one.prompt_tokens for one in world.requests], np.int64)
    return RequestArrays(
        arrival_s=np.array([float(one.arrival_s) for one in world.requests]),
        prompt=prompt,
        output=np.array([one.output_tokens for one in world.requests], np.int64),
        to_read=prompt.copy(),
        held=prompt.copy(),
        written=_counts(num),
        restarts=_counts(num),
        follower=np.full(num, -1, np.int64),
        first_token_s=np.full(num, np.nan),
        end_s=np.full(num, np.nan),
        last_token_s=np.full(num, -1.0),
        longest_gap_s=np.zeros(num),
        prompt_instance=np.full(num, -1, np.int64),
        token_instance=np.full(num, -1, np.int64),
    )


def instance_arrays(world: World) -> InstanceArrays:
    """Places for as many instances as the limits allow."""
    num, batch = world.limits.max_total, world.engine.max_batch_size
    wide = {"writing": batch, "pieces": batch, "gap_counts": NUM_BINS}
    found: dict[str, Any] = {
        name: _counts(num, wide[name]) if name in wide else _counts(num)
        for name in InstanceArrays._fields
    }
    found |= {name: np.zeros(num) for name in found if name.endswith("_s")}
    found["run_end_s"] = np.full(num, np.inf)
    return InstanceArrays(**found)


def fleet_arrays(world: World) -> FleetArrays:
    """Members, places in use and transfers: none."""
    num, num_requests = world.limits.max_total, len(world.requests)
    return FleetArrays(
        members=_counts(len(world.initial), num),
        num_members=_counts(len(world.initial)),
        live=_counts(num),
        state=_counts(6),
        sent_s=np.zeros(num_requests),
        sent=_counts(num_requests),
        sender=_counts(num_requests),
    )
