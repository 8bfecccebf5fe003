"""Figures of a run: latencies, SLO attainment, goodput, GPU-hours, USD, waste of starts, flaps."""

from collections.abc import Sequence

import numpy as np

from des.serving.fleet_world import FleetRow, History, InstanceRow
from des.serving.gaps import gap_percentile_s
from des.serving.instance_life import SLEEPING, STARTING

PERCENTILES = (50, 95, 99)
_HOUR_S = 3600.0


def run_figures(history: History) -> dict[str, float | int | None]:
    """Figures of a run by name; None where there is nothing to measure.

    ``attainment`` counts all arrivals: an unfinished or rejected request misses the SLO.
    """
    world, rows = history.world, history.requests
    came = [one for one in rows if one.request.arrival_s <= history.end_s]
    num_rejected = sum(each.arrival_s <= history.end_s for each in world.rejected)
    num_came = len(came) + num_rejected
    done = [one for one in came if one.end_s is not None]
    good = [one for one in done if one.is_good(world.slo)]
    ttfts = [ttft_s for one in came if (ttft_s := one.ttft_s) is not None]
    gpu_h = boot_gpu_h = 0.0
    for num_gpus in {one.num_gpus: None for one in history.instances}:
        own = [one for one in history.instances if one.num_gpus == num_gpus]
        gpu_h += instance_s(own, world.start.sleeping_cost) * num_gpus / _HOUR_S
        boot_gpu_h += sum(one.in_state_s(STARTING) for one in own) * num_gpus / _HOUR_S
    found: dict[str, float | int | None] = {
        "num_requests": len(rows) + len(world.rejected),
        "num_came": num_came,
        "num_finished": len(done),
        "num_unfinished": len(came) - len(done),
        "num_rejected": num_rejected,
        "num_restarts": sum(one.num_restarts for one in rows),
        "num_swaps": sum(one.num_swaps for one in rows),
        "cached_fraction": _cached_fraction(came),
        "attainment": len(good) / num_came if num_came else None,
        "goodput_per_s": len(good) / history.end_s if history.end_s else None,
    }
    found |= _percentiles("ttft", ttfts)
    for percent in PERCENTILES:
        found[f"gap_p{percent}_s"] = gap_percentile_s(history.gap_counts, percent)
    found |= _percentiles("e2e", [e2e_s for one in done if (e2e_s := one.e2e_s) is not None])
    return found | {
        "gpu_h": gpu_h,
        "usd": gpu_h * world.engine.usd_per_gpu_h,
        "boot_gpu_h": boot_gpu_h,
        "num_flaps": history.num_flaps,
        "num_decisions": len(history.decisions),
        "end_s": history.end_s,
    }


def _percentiles(name: str, values: Sequence[float]) -> dict[str, float | int | None]:
    return {
        f"{name}_p{percent}_s": float(np.percentile(values, percent)) if values else None
        for percent in PERCENTILES
    }


def _cached_fraction(came: Sequence[FleetRow]) -> float | None:
    """Prompt tokens that caches spared over those of all requests that came."""
    tokens = sum(one.request.prompt_tokens for one in came)
    return sum(one.cached_tokens for one in came) / tokens if tokens else None


def instance_s(instances: Sequence[InstanceRow], sleeping_cost: float = 1.0) -> float:
    """Seconds for which instances are paid: all with GPUs, those asleep at their share."""
    return sum(
        (end_s - start_s) * (sleeping_cost if state == SLEEPING else 1.0)
        for one in instances
        for state, start_s, end_s in one.spans
    )
