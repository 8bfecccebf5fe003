"""Models by name or from a file, and the workloads made of them."""

from __future__ import annotations

import os
from dataclasses import fields
from os import sep
from typing import cast, get_args

from des.base.checks import MOST_ITEMS, require_count, require_one_of
from des.base.lazy import lazy_imports
from des.job.architecture import Architecture
from des.job.model_presets import ALIASES, ARCHITECTURES
from des.job.precision import Precision
from des.job.transformer import (
    ATTENTION_OF,
    AttentionKernel,
    GradientPrecision,
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
    layer_replicated_bytes,
    layer_weight_input_bytes,
)

with lazy_imports(__name__):
    from des.job import architecture_files
    from des.job import workload as job_workload
    from des.job.workload import Layer, Workload

MODEL_HELP = (
    f"one of {', '.join([*ARCHITECTURES, *ALIASES])}; or a folder with a config.json of Hugging "
    "Face, such a .json file, or a .yaml file with the fields of an architecture"
)
"""Forms in which a model is given, for help texts of flags."""

PRECISION_HELP = (
    f"format in which linear layers multiply: {', '.join(get_args(Precision))}; the rest is bf16"
)
"""Formats of passes, for help texts of flags."""

ATTENTION_HELP = "flash or plain: attention in one fused kernel, or with its scores in memory"
"""Kernels of attention, for help texts of flags."""


def architecture_named(name: str) -> Architecture:
    """Look up a preset or an alias of one, or read a file of a model.

    Raises
    ------
    ValueError
        If there is no such model, and the message lists the presets; or if the file is wrong.
    """
    architecture = ARCHITECTURES.get(ALIASES.get(name, name))
    if architecture is not None:
        return architecture
    if sep in name or name.lower().endswith((".json", ".yaml", ".yml")) or os.path.exists(name):
        return architecture_files.read_architecture(name)
    known = ", ".join([*ARCHITECTURES, *ALIASES])
    raise ValueError(f"model: must be one of {known}; got {name!r}, which is no file or folder")


def build_workload(
    model: str | Architecture,
    *,
    num_layers: int | None = None,
    num_microbatches: int = 32,
    microbatch_size: int = 1,
    sequence_length: int = 4096,
    recomputation: str = "flash",
    gradient_precision: str = "bf16",
    attention: str | None = None,
    precision: str = "bf16",
) -> Workload:
    """Make one iteration's workload of a model.

    The embedding's parameters belong to the first layer; the output head's parameters and FLOPs to
    the last. Another ``num_layers`` than the model's own re-divides the same totals, embedding and
    head included, over that many equal layers.

    Parameters
    ----------
    model
        Name of a preset or alias, see `ARCHITECTURES`; or a file, see
        `des.job.architecture_files.read_architecture`; or an architecture.
    num_layers
        Number of layers to divide the model into; its own number by default.
    num_microbatches, microbatch_size
        Microbatches per iteration, and sequences in each.
    sequence_length
        Tokens of a sequence.
    recomputation
        ``flash``, ``none``, ``selective`` or ``full``: activations that are kept, and work that is
        done again for those that are not; see `des.job.transformer.layer_activation_bytes`.
    gradient_precision
        ``bf16`` or ``fp32``, in which gradients are kept and summed up over replicas.
    attention
        ``flash`` or ``plain``, the kernel of attention; by default that of the recomputation, see
        `des.job.transformer.ATTENTION_OF`.
    precision
        ``bf16``, ``fp8``, ``mxfp8`` or ``nvfp4``, in which linear layers multiply, see
        `des.job.precision.Precision`.

    Raises
    ------
    ValueError
        If the model, recomputation, precision or kernel is unknown, its file is wrong, or a number
        is not a whole number of at least 1.
    """
    architecture = architecture_named(model) if isinstance(model, str) else model
    require_count("workload", "microbatch_size", microbatch_size)
    require_count("workload", "sequence_length", sequence_length)
    kept, kernel = kept_activations(recomputation, attention)
    layers = _own_layers(architecture, microbatch_size, sequence_length, kept)
    if num_layers is not None and num_layers != architecture.num_layers:
        require_count("workload", "num_layers", num_layers, MOST_ITEMS)
        layers = _equal_layers(layers, num_layers)
    return job_workload.Workload(
        name=architecture.name,
        layers=layers,
        num_microbatches=num_microbatches,
        tokens_per_microbatch=microbatch_size * sequence_length,
        message_bytes=boundary_message_bytes(
            batch_size=microbatch_size,
            sequence=sequence_length,
            hidden_size=architecture.hidden_size,
        ),
        shape=job_workload.ModelShape(
            architecture=architecture,
            num_layers=len(layers),
            batch_size=microbatch_size,
            sequence=sequence_length,
            recomputation=kept,
            attention=kernel,
        ),
        gradient_precision=cast(GradientPrecision, gradient_precision),  # the workload checks both
        precision=cast(Precision, precision),
    )


def layers_note(workload: Workload) -> tuple[str, ...]:
    """Sentence on layers that are not the model's own; none where they are."""
    shape = workload.shape
    if shape is None or shape.num_layers == shape.architecture.num_layers:
        return ()
    own = shape.architecture.num_layers
    return (
        f"num_layers {shape.num_layers}: parameters and FLOPs of all {own} layers of "
        f"{workload.name} are divided over {shape.num_layers} equal ones",
    )


def kept_activations(
    recomputation: str, attention: str | None
) -> tuple[Recomputation, AttentionKernel | None]:
    """Check names of a recomputation and of an attention kernel, which is None if it goes unsaid.

    ``flash`` is ``none`` with the fused kernel, by either of its names.

    Examples
    --------
    >>> kept_activations("none", "flash"), kept_activations("full", "plain")
    (('flash', None), ('full', 'plain'))

    Raises
    ------
    ValueError
        If there is none of that name, or the kernel is plain with recomputation ``flash``.
    """
    kept = recomputation_named(recomputation)
    if attention is None or attention == ATTENTION_OF[kept]:
        return kept, None
    require_one_of("workload", "attention", attention, get_args(AttentionKernel))
    if kept == "flash":
        raise ValueError(
            "workload: attention must be flash with recomputation flash; got 'plain', of which "
            "recomputation none keeps the scores"
        )
    if kept == "none":
        return "flash", None
    return kept, cast(AttentionKernel, attention)


def recomputation_named(name: str) -> Recomputation:
    """Check the name of a recomputation.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    require_one_of("workload", "recomputation", name, get_args(Recomputation))
    return cast(Recomputation, name)


def _own_layers(
    architecture: Architecture, batch_size: int, sequence: int, recomputation: Recomputation
) -> tuple[Layer, ...]:
    """Layers of the architecture; those alike are one value."""
    of_kind: dict[tuple[bool, ...], Layer] = {}
    layers = []
    for index in range(architecture.num_layers):
        ends = (index == 0, index == architecture.num_layers - 1)
        kind = (architecture.is_sparse(index), *ends)
        if kind not in of_kind:
            of_kind[kind] = _own_layer(architecture, index, batch_size, sequence, recomputation)
        layers.append(of_kind[kind])
    return tuple(layers)


def _own_layer(
    architecture: Architecture,
    index: int,
    batch_size: int,
    sequence: int,
    recomputation: Recomputation,
) -> Layer:
    """One layer, the first with the embedding, the last with the output head."""
    sizes = {"batch_size": batch_size, "sequence": sequence}
    inner = layer_flops(architecture, **sizes, layer=index)
    matrix_flops, parameters = inner.matrix_flops, layer_parameters(architecture, index)
    if index == 0:
        parameters += embedding_parameters(architecture)
    if index == architecture.num_layers - 1:
        matrix_flops += head_forward_flops(architecture, **sizes)
        parameters += head_parameters(architecture)
    flops = PassFlops(matrix_flops=matrix_flops, attention_flops=inner.attention_flops)
    replicated = layer_replicated_bytes(
        architecture, **sizes, recomputation=recomputation, layer=index
    )
    return job_workload.Layer(
        forward_flops=flops.forward,
        input_gradient_flops=flops.input_gradient,
        weight_gradient_flops=flops.weight_gradient,
        num_parameters=parameters,
        activation_bytes=layer_activation_bytes(
            architecture, **sizes, recomputation=recomputation, layer=index
        ),
        weight_input_bytes=layer_weight_input_bytes(architecture, **sizes, layer=index),
        recomputation_flops=layer_recomputation_flops(inner, recomputation),
        replicated_activation_bytes=replicated[0],
        replicated_input_bytes=replicated[1],
    )


def _equal_layers(layers: tuple[Layer, ...], num_layers: int) -> tuple[Layer, ...]:
    """Divide the sums of all fields over ``num_layers`` layers."""
    shares = {
        field.name: sum(getattr(layer, field.name) for layer in layers) / num_layers
        for field in fields(job_workload.Layer)
    }
    return (job_workload.Layer(**shares),) * num_layers
