"""Engines whose times are fitted to measured profiles, by name.

`data/engines.json` is what ``python -m calibration serving`` writes for the profiles that it has.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

from des.base.checks import nearest
from des.base.strict_json import parse_json
from des.serving.batch_times import BatchTimes
from des.serving.fleet_world import Engine

_KV_BYTES_PER_TOKEN = {
    "nvidia/Llama-3.3-70B-Instruct-FP8": 2.0 * 80 * 8 * 128,
    "nvidia/Llama-3.1-8B-Instruct-FP8": 2.0 * 32 * 8 * 128,
}
"""Keys and values of all layers and KV heads of a token, a byte each (grouped-query attention)."""


@cache
def _fitted() -> Mapping[str, Mapping[str, object]]:
    text = (files("des.serving") / "data" / "engines.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Mapping[str, object]], parse_json(text))


def engine_names() -> tuple[str, ...]:
    """Names of the engines."""
    return tuple(_fitted())


def engine_named(
    name: str,
    *,
    max_batch_size: int = 256,
    chunk_tokens: int = 1024,
    usd_per_gpu_h: float = 0.0,
) -> Engine:
    """Make an engine with fitted times.

    Raises
    ------
    ValueError
        If there is none of that name, or a limit is wrong.
    """
    if name not in _fitted():
        raise ValueError(
            f"engine: must be a known name, got {name!r}; {nearest(name, engine_names())}"
        )
    row = _fitted()[name]
    times, capacity, num_gpus = row["times"], row["kv_capacity_tokens"], row["num_gpus"]
    assert isinstance(times, dict)
    assert isinstance(capacity, int)
    assert isinstance(num_gpus, int)
    return Engine(
        times=BatchTimes(**times),
        kv_capacity_tokens=capacity,
        kv_bytes_per_token=_KV_BYTES_PER_TOKEN[str(row["model"])],
        max_batch_size=max_batch_size,
        chunk_tokens=chunk_tokens,
        num_gpus=num_gpus,
        usd_per_gpu_h=usd_per_gpu_h,
    )
