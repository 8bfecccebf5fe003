"""Engines without a measured profile: times from the shape of a model and the data of a GPU."""

from des.base.checks import require_count
from des.devices.gpu_kinds import gpu_kind_named
from des.job.architecture import Architecture
from des.job.models import architecture_named
from des.job.transformer import (
    embedding_parameters,
    head_forward_flops,
    head_parameters,
    layer_flops,
    layer_parameters,
)
from des.serving.batch_times import BatchTimes
from des.serving.fleet_settings import FROM_SHAPES, Engine

COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY = 0.5, 0.7
"""Shares of the peaks that are reached (assumed)."""
_MEMORY_SHARE = 0.9
"""Share of the memory for weights and KV (the default of vLLM)."""
_BYTES = 2.0
"""Bytes of a weight, and of an element of keys and values."""


def kv_bytes_per_token(architecture: Architecture) -> float:
    """Keys and values of a token in all layers: those of the KV heads, or one latent vector.

    Examples
    --------
    >>> kv_bytes_per_token(architecture_named("llama3_70b"))  # 2 x 80 layers x 8 heads x 128
    327680.0
    """
    latent = architecture.latent_attention
    if latent is not None:
        size = latent.key_value_rank + latent.rotary_head_size
        return _BYTES * architecture.num_layers * size
    return 2.0 * _BYTES * architecture.num_layers * architecture.key_value_size


def shape_engine(model: str, gpu: str, num_gpus: int, **settings: int | float) -> Engine:
    """Make an engine by a roofline: reading is bound by FLOPs, decoding by memory bandwidth.

    Weights are read once an iteration, keys and values of the context once a token; a token costs
    the FLOPs of its matrices, and of attention for each token before it. Tensor parallelism divides
    all of it; its collectives and the host are left out, so times are rather too short.

    Raises
    ------
    ValueError
        If model or GPU are unknown, or the weights leave no memory.
    """
    require_count("engine", "num_gpus", num_gpus)
    architecture, data = architecture_named(model), gpu_kind_named("engine", gpu)
    layers = range(architecture.num_layers)
    parameters = embedding_parameters(architecture) + head_parameters(architecture)
    parameters += sum(layer_parameters(architecture, layer) for layer in layers)
    passes = [layer_flops(architecture, batch_size=1, sequence=1, layer=one) for one in layers]
    head_flops = head_forward_flops(architecture, batch_size=1, sequence=1)
    flops_per_s = num_gpus * data.peak_flops_per_s * COMPUTE_EFFICIENCY
    bytes_per_s = num_gpus * data.memory_bandwidth_bytes_per_s * MEMORY_EFFICIENCY
    token_s = sum(one.matrix_flops for one in passes) / flops_per_s
    kv_bytes = kv_bytes_per_token(architecture)
    room_bytes = _MEMORY_SHARE * num_gpus * data.memory_bytes - _BYTES * parameters
    if room_bytes < kv_bytes:
        raise ValueError(
            f"engine: num_gpus must be enough for the {_BYTES * parameters / 1e9:.0f} GB of "
            f"weights of {model}, got {num_gpus} {gpu} of {data.memory_bytes / 1e9:.0f} GB"
        )
    return Engine(
        times=BatchTimes(
            base_s=_BYTES * parameters / bytes_per_s,
            per_prompt_token_s=token_s,
            per_prompt_context_s=sum(one.attention_flops for one in passes) / flops_per_s,
            per_request_s=token_s + head_flops / flops_per_s,
            per_context_s=kv_bytes / bytes_per_s,
        ),
        kv_capacity_tokens=int(room_bytes / kv_bytes),
        kv_bytes_per_token=kv_bytes,
        num_gpus=num_gpus,
        times_from=FROM_SHAPES,
        **settings,  # type: ignore[arg-type]
    )
