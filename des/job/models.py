"""Shapes of the models people train, and the workloads made of them."""

from dataclasses import fields
from typing import cast, get_args

from des.base.checks import MOST_ITEMS, require_count
from des.job.transformer import (
    Architecture,
    PassFlops,
    Recomputation,
    boundary_message_bytes,
    embedding_parameters,
    head_forward_flops,
    head_parameters,
    layer_activation_bytes,
    layer_flops,
    layer_parameters,
    layer_recomputation_flops,
    layer_weight_input_bytes,
)
from des.job.workload import Layer, ModelShape, Workload

_PRESETS = (
    # Llama 2: H. Touvron et al., arXiv:2307.09288, and the released configurations.
    Architecture(
        name="llama2_7b", num_layers=32, hidden_size=4096, num_heads=32, num_key_value_heads=32,
        ffn_size=11008, vocabulary_size=32000, gated_ffn=True, tied_embeddings=False,
    ),
    Architecture(
        name="llama2_13b", num_layers=40, hidden_size=5120, num_heads=40, num_key_value_heads=40,
        ffn_size=13824, vocabulary_size=32000, gated_ffn=True, tied_embeddings=False,
    ),
    Architecture(
        name="llama2_70b", num_layers=80, hidden_size=8192, num_heads=64, num_key_value_heads=8,
        ffn_size=28672, vocabulary_size=32000, gated_ffn=True, tied_embeddings=False,
    ),
    # GPT-3: T. Brown et al., NeurIPS'20, table 2.1; vocabulary of the released tokeniser.
    Architecture(
        name="gpt3_175b", num_layers=96, hidden_size=12288, num_heads=96, num_key_value_heads=96,
        ffn_size=49152, vocabulary_size=50257, gated_ffn=False, tied_embeddings=True,
        num_positions=2048,
    ),
    # Llama 3: A. Dubey et al., arXiv:2407.21783, table 3.
    Architecture(
        name="llama3_405b", num_layers=126, hidden_size=16384, num_heads=128,
        num_key_value_heads=8, ffn_size=53248, vocabulary_size=128256, gated_ffn=True,
        tied_embeddings=False,
    ),
)  # fmt: skip

ARCHITECTURES = {architecture.name: architecture for architecture in _PRESETS}
"""Model presets by name."""

ALIASES = {"llama_70b": "llama2_70b"}
"""Other names under which users know a preset."""


def architecture_named(name: str) -> Architecture:
    """Look up a preset or an alias of one.

    Raises
    ------
    ValueError
        If there is no such model; the message lists those there are.
    """
    architecture = ARCHITECTURES.get(ALIASES.get(name, name))
    if architecture is None:
        known = ", ".join([*ARCHITECTURES, *ALIASES])
        raise ValueError(f"model: must be one of {known}; got {name!r}")
    return architecture


def build_workload(
    model: str,
    *,
    num_layers: int | None = None,
    num_microbatches: int = 32,
    microbatch_size: int = 1,
    sequence_length: int = 4096,
    recomputation: str = "flash",
) -> Workload:
    """Make one iteration's workload from a model preset.

    The embedding's parameters belong to the first layer; the output head's parameters and FLOPs to
    the last. Another ``num_layers`` than the model's own re-divides the same totals, embedding and
    head included, over that many equal layers.

    Parameters
    ----------
    model
        Name of a preset or alias, see `ARCHITECTURES`.
    num_layers
        Number of layers to divide the model into; its own number by default.
    num_microbatches, microbatch_size
        Microbatches per iteration, and sequences in each.
    sequence_length
        Tokens of a sequence.
    recomputation
        ``flash``, ``none``, ``selective`` or ``full``: activations that are kept, and work that is
        done again for those that are not; see `des.job.transformer.layer_activation_bytes`.

    Raises
    ------
    ValueError
        If the model or recomputation is unknown or a number is not a whole number of at least 1.
    """
    return workload_of(
        architecture_named(model),
        num_layers=num_layers,
        num_microbatches=num_microbatches,
        microbatch_size=microbatch_size,
        sequence_length=sequence_length,
        recomputation=recomputation,
    )


def workload_of(
    architecture: Architecture,
    *,
    num_layers: int | None = None,
    num_microbatches: int,
    microbatch_size: int,
    sequence_length: int,
    recomputation: str,
) -> Workload:
    """Make one iteration's workload from an architecture, see `build_workload`."""
    require_count("workload", "microbatch_size", microbatch_size)
    require_count("workload", "sequence_length", sequence_length)
    kept = recomputation_named(recomputation)
    layers = _own_layers(architecture, microbatch_size, sequence_length, kept)
    if num_layers is not None and num_layers != architecture.num_layers:
        require_count("workload", "num_layers", num_layers, MOST_ITEMS)
        layers = _equal_layers(layers, num_layers)
    return Workload(
        name=architecture.name,
        layers=layers,
        num_microbatches=num_microbatches,
        tokens_per_microbatch=microbatch_size * sequence_length,
        message_bytes=boundary_message_bytes(
            batch_size=microbatch_size,
            sequence=sequence_length,
            hidden_size=architecture.hidden_size,
        ),
        shape=ModelShape(
            architecture=architecture,
            num_layers=len(layers),
            batch_size=microbatch_size,
            sequence=sequence_length,
            recomputation=kept,
        ),
    )


def recomputation_named(name: str) -> Recomputation:
    """Check the name of a recomputation.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    for known in get_args(Recomputation):
        if name == known:
            return cast(Recomputation, known)
    allowed = ", ".join(get_args(Recomputation))
    raise ValueError(f"workload: recomputation must be one of {allowed}; got {name!r}")


def _own_layers(
    architecture: Architecture, batch_size: int, sequence: int, recomputation: Recomputation
) -> tuple[Layer, ...]:
    inner = layer_flops(architecture, batch_size=batch_size, sequence=sequence)
    head = head_forward_flops(architecture, batch_size=batch_size, sequence=sequence)
    activation_bytes = layer_activation_bytes(
        architecture, batch_size=batch_size, sequence=sequence, recomputation=recomputation
    )
    layers = []
    for index in range(architecture.num_layers):
        matrix_flops, parameters = inner.matrix_flops, layer_parameters(architecture)
        if index == 0:
            parameters += embedding_parameters(architecture)
        if index == architecture.num_layers - 1:
            matrix_flops += head
            parameters += head_parameters(architecture)
        flops = PassFlops(matrix_flops=matrix_flops, attention_flops=inner.attention_flops)
        layers.append(
            Layer(
                forward_flops=flops.forward,
                input_gradient_flops=flops.input_gradient,
                weight_gradient_flops=flops.weight_gradient,
                num_parameters=parameters,
                activation_bytes=activation_bytes,
                weight_input_bytes=layer_weight_input_bytes(
                    architecture, batch_size=batch_size, sequence=sequence
                ),
                recomputation_flops=layer_recomputation_flops(inner, recomputation),
            )
        )
    return tuple(layers)


def _equal_layers(layers: tuple[Layer, ...], num_layers: int) -> tuple[Layer, ...]:
    """Divide the sums of all fields over ``num_layers`` layers."""
    shares = {
        field.name: sum(getattr(layer, field.name) for layer in layers) / num_layers
        for field in fields(Layer)
    }
    return (Layer(**shares),) * num_layers
