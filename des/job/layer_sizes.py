"""Sizes of a model's layers that only some ways to share them ask for."""

from functools import lru_cache
from typing import NamedTuple

from des.job.matrices import layer_matrices
from des.job.transformer import ACTIVATION_BYTES, layer_flops
from des.job.workload import ModelShape


class LayerSizes(NamedTuple):
    """Work, weights and messages of one layer for one microbatch, over all GPUs that share it.

    FLOPs are those of the forward pass. ``key_value_bytes`` are the keys and values of all tokens,
    ``routed_bytes`` the hidden states that go to routed experts, once for each expert of a token.
    """

    attention_flops: float
    expert_flops: float
    expert_parameters: float
    key_value_bytes: float
    routed_bytes: float


def own_layer_sizes(shape: ModelShape, layer: int) -> LayerSizes:
    """Sizes of a layer of the architecture, by its index.

    Examples
    --------
    >>> from des import build_workload
    >>> shape = build_workload("mixtral_8x7b", sequence_length=4096).shape
    >>> own_layer_sizes(shape, 0).routed_bytes == 2 * 2 * 4096 * 4096
    True
    """
    architecture = shape.architecture
    tokens = shape.batch_size * shape.sequence
    flops = layer_flops(architecture, batch_size=1, sequence=shape.sequence, layer=layer)
    head_sizes = architecture.query_head_size + architecture.value_head_size
    routed = [one for one in layer_matrices(architecture, layer) if one.is_routed]
    experts = architecture.experts_of(layer)
    sends = experts.experts_per_token if experts else 0
    return LayerSizes(
        attention_flops=shape.batch_size * flops.attention_flops,
        expert_flops=float(tokens * sum(one.flops_per_token for one in routed)),
        expert_parameters=float(sum(one.parameters for one in routed)),
        key_value_bytes=float(
            ACTIVATION_BYTES * tokens * architecture.num_key_value_heads * head_sizes
        ),
        routed_bytes=float(ACTIVATION_BYTES * tokens * sends * architecture.hidden_size),
    )


@lru_cache(maxsize=256)
def expert_parameters(shape: ModelShape) -> tuple[float, ...]:
    """Parameters of routed experts in each layer of a workload."""
    own = [
        own_layer_sizes(shape, layer).expert_parameters
        for layer in range(shape.architecture.num_layers)
    ]
    if shape.num_layers == len(own):
        return tuple(own)
    return (sum(own) / shape.num_layers,) * shape.num_layers
