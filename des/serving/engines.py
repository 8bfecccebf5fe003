"""Engines whose times are fitted to measured profiles, by name.

`data/engines.json` is what ``python -m calibration serving`` writes for the profiles that it has.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from des.base.checks import require_known
from des.base.strict_json import parse_json
from des.serving.batch_times import BatchTimes
from des.serving.fleet_settings import FROM_PROFILE, Engine
from des.serving.shape_engines import shape_engine

_KV_BYTES_PER_TOKEN = {
    "nvidia/Llama-3.3-70B-Instruct-FP8": 2.0 * 80 * 8 * 128,
    "nvidia/Llama-3.1-8B-Instruct-FP8": 2.0 * 32 * 8 * 128,
}
"""Keys and values of all layers and KV heads of a token, a byte each (grouped-query attention)."""


_SHAPES = "shapes:"


@cache
def _fit() -> Mapping[str, Mapping[str, object]]:
    text = (files("des.serving") / "data" / "engines.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Mapping[str, object]], parse_json(text))


def engine_names() -> tuple[str, ...]:
    """Names of the engines."""
    return tuple(_fit())


def engine_named(
    name: str, *, max_batch_size: int = 256, chunk_tokens: int = 1024, **settings: Any
) -> Engine:
    """Make an engine with fitted times, or, as ``shapes:MODEL:GPU:NUM_GPUS``, without a profile.

    Settings are other fields of the engine.

    Raises
    ------
    ValueError
        If there is none of that name, or a limit is wrong.
    """
    settings |= {"max_batch_size": max_batch_size, "chunk_tokens": chunk_tokens}
    if name.startswith(_SHAPES):
        return _from_shapes(name, settings)
    require_known("engine: must be a known name, got", name, _fit())
    row = _fit()[name]
    times, capacity, num_gpus = row["times"], row["kv_capacity_tokens"], row["num_gpus"]
    assert isinstance(times, dict)
    assert isinstance(capacity, int)
    assert isinstance(num_gpus, int)
    return Engine(
        times=BatchTimes(**times),
        kv_capacity_tokens=capacity,
        kv_bytes_per_token=_KV_BYTES_PER_TOKEN[str(row["model"])],
        num_gpus=num_gpus,
        times_from=FROM_PROFILE,
        **settings,
    )


def _from_shapes(name: str, settings: Mapping[str, Any]) -> Engine:
    _, *values = name.split(":")
    if len(values) != 3 or not values[2].isdecimal():
        raise ValueError(f"engine: must be {_SHAPES}MODEL:GPU:NUM_GPUS, got {name!r}")
    return shape_engine(values[0], values[1], int(values[2]), **settings)
