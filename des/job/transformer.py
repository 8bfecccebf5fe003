"""Transformer arithmetic: parameters, FLOPs, message sizes and memory of model layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from des.base.checks import require_count
from des.job.architecture import Architecture
from des.job.kept_tensors import (
    is_like_gpt,
    kept_elements,
    replicated_elements,
    replicated_weight_elements,
    weight_gradient_elements,
)
from des.job.matrices import layer_matrices

WEIGHT_BYTES = 2
GRADIENT_BYTES = 2
OPTIMISER_BYTES = 12
BYTES_PER_PARAMETER = WEIGHT_BYTES + GRADIENT_BYTES + OPTIMISER_BYTES
"""Model state of mixed-precision Adam: 2 weight + 2 gradient + 12 optimiser bytes [1]_.
Gradients in FP32, see `GradientPrecision`, make it 18.

.. [1] S. Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter
   models", SC'20, section 3.1.
"""

GradientPrecision = Literal["bf16", "fp32"]
"""Precision in which gradients are kept, added up over microbatches and summed over replicas."""

GRADIENT_BYTES_OF: Mapping[GradientPrecision, int] = MappingProxyType(
    {"bf16": GRADIENT_BYTES, "fp32": 4}
)
"""Size of one gradient in each precision. [bytes]"""

ACTIVATION_BYTES = 2
"""Size of one activation in BF16. [bytes]"""


def layer_parameters(architecture: Architecture, layer: int = 0) -> int:
    """All parameters of one layer, by its index: all experts, norms and biases included."""
    matrices = layer_matrices(architecture, layer)
    sinks = architecture.num_heads if architecture.attention_sinks else 0
    return sum(matrix.parameters for matrix in matrices) + _norm_parameters(architecture) + sinks


def _norm_parameters(architecture: Architecture) -> int:
    """Norms of a layer: around attention and feed-forward, of heads, and of latent vectors."""
    sizes = architecture.num_norms * architecture.hidden_size
    if architecture.qk_norm:
        sizes += 2 * architecture.query_head_size
    if architecture.whole_qk_norm:
        sizes += architecture.num_heads * architecture.query_head_size + architecture.key_value_size
    return _parameters_per_size(architecture) * (sizes + architecture.latent_ranks)


def _parameters_per_size(architecture: Architecture) -> int:
    """Scale of a norm, and its bias if it has one."""
    return 2 if architecture.adds_bias("norm") else 1


def embedding_parameters(architecture: Architecture) -> int:
    """Parameters before the first layer: token table and learned positions."""
    rows = architecture.vocabulary_size + architecture.num_positions
    return rows * architecture.hidden_size


def head_parameters(architecture: Architecture) -> int:
    """Parameters after the last layer: final norm and, unless tied, the output matrix.

    A pipeline holds its own copy of a tied matrix on the last stage; that copy is not counted here,
    as it is no parameter of the model.
    """
    h = architecture.hidden_size
    norm = _parameters_per_size(architecture) * h
    return norm + (0 if architecture.tied_embeddings else architecture.vocabulary_size * h)


def model_parameters(architecture: Architecture) -> int:
    """All parameters of the model; heads that predict several tokens are no part of it.

    Examples
    --------
    >>> from des import ARCHITECTURES
    >>> model_parameters(ARCHITECTURES["llama2_7b"])
    6738415616
    """
    layers = sum(layer_parameters(architecture, layer) for layer in range(architecture.num_layers))
    return embedding_parameters(architecture) + layers + head_parameters(architecture)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFlops:
    """FLOPs of the passes of a layer over one microbatch.

    ``matrix_flops`` of multiplying by the weights, ``attention_flops`` of scores and their
    application to the values. The input gradient costs the first once and the second twice, as both
    factors of an attention product have a gradient; the weight gradient costs the first once.
    """

    matrix_flops: float
    attention_flops: float

    @property
    def forward(self) -> float:
        """Forward pass, F."""
        return self.matrix_flops + self.attention_flops

    @property
    def input_gradient(self) -> float:
        """First half of the backward pass, D."""
        return self.matrix_flops + 2.0 * self.attention_flops

    @property
    def weight_gradient(self) -> float:
        """Second half of the backward pass, W."""
        return self.matrix_flops


def layer_flops(
    architecture: Architecture, *, batch_size: int, sequence: int, layer: int = 0
) -> PassFlops:
    """FLOPs of one layer, by its index, over ``batch_size`` sequences.

    Notes
    -----
    Forward: ``2 b s`` per matrix weight, of experts only of those that a token goes through, plus
    ``2 b s^2 a (q + v)`` for attention of ``a`` heads with queries of size ``q`` and values of size
    ``v``; ``s^2`` is ``s w`` with a window of ``w`` tokens. For ``ffn = 4 h`` and full heads this
    is ``24 b s h^2 (1 + s / (6 h))`` [1]_. The causal mask is not exploited, as there.

    References
    ----------
    .. [1] D. Narayanan et al., "Efficient large-scale language model training on GPU clusters
       using Megatron-LM", SC'21, eq. 2 and appendix.

    Examples
    --------
    >>> from des import ARCHITECTURES
    >>> gpt3 = ARCHITECTURES["gpt3_175b"]
    >>> h, s = gpt3.hidden_size, 2048
    >>> ratio = layer_flops(gpt3, batch_size=1, sequence=s).forward / (24 * s * h**2)
    >>> round(ratio - (1 + s / (6 * h)), 12)
    0.0
    """
    require_count("layer_flops", "batch_size", batch_size)
    require_count("layer_flops", "sequence", sequence)
    tokens = batch_size * sequence
    matrices = layer_matrices(architecture, layer)
    head_sizes = architecture.query_head_size + architecture.value_head_size
    seen = min(sequence, architecture.window_of(layer) or sequence)
    return PassFlops(
        matrix_flops=float(tokens * sum(matrix.flops_per_token for matrix in matrices)),
        attention_flops=float(2 * tokens * seen * architecture.num_heads * head_sizes),
    )


def linear_flops_per_token(architecture: Architecture, layer: int) -> int:
    """Forward FLOPs of a layer's matrices per token, without the router of its experts."""
    matrices = layer_matrices(architecture, layer)
    return sum(matrix.flops_per_token for matrix in matrices if matrix.name != "router")


def head_forward_flops(architecture: Architecture, *, batch_size: int, sequence: int) -> float:
    """FLOPs of projecting the last hidden state on the vocabulary, ``2 b s h V``."""
    return float(
        2 * batch_size * sequence * architecture.hidden_size * architecture.vocabulary_size
    )


def boundary_message_bytes(*, batch_size: int, sequence: int, hidden_size: int) -> float:
    """Activation, or its gradient, that crosses a stage boundary per microbatch: ``2 b s h``.

    BF16 elements; both directions send the same (CrossPipe, ATC'25; Narayanan et al., SC'21).
    """
    return float(ACTIVATION_BYTES * batch_size * sequence * hidden_size)


Recomputation = Literal["flash", "none", "selective", "full"]
"""Recomputation: which activations are kept, and which made again; see `layer_activation_bytes`."""

AttentionKernel = Literal["flash", "plain"]
"""Kernel of attention: one fused kernel, or products with scores written to memory between them."""

ATTENTION_OF: Mapping[Recomputation, AttentionKernel] = MappingProxyType(
    {"flash": "flash", "none": "plain", "selective": "plain", "full": "flash"}
)
"""Kernel of each recomputation by default: scores are kept, or made again, of plain attention."""


def layer_activation_bytes(
    architecture: Architecture,
    *,
    batch_size: int,
    sequence: int,
    recomputation: Recomputation = "flash",
    layer: int = 0,
) -> float:
    """Activations of a layer, by its index, kept from the forward to the backward pass. [bytes]

    Notes
    -----
    16-bit elements [1]_; ``a`` heads. Counted for a GELU block with ``ffn = 4 h``; used for Llama's
    gated block as well, whose tensors one by one would make 37.5 to 41 bytes in place of 34. Layers
    with experts, latent attention, norms of heads or heads that are together wider or narrower than
    the hidden state keep `des.job.kept_tensors.kept_elements` in place of 17 elements of 16 bits
    for each token and unit of ``h``.

    - ``none``: ``s b h (34 + 5 a s / h)``, everything.
    - ``selective``: ``34 s b h``; scores and softmax are made again.
    - ``flash``: the same memory by a kernel that never writes the scores; what it makes again
      within itself belongs to the attainable fraction of the peak.
    - ``full``: ``2 s b h``, the input of the layer; the whole forward pass is made again, with
      either kernel.

    References
    ----------
    .. [1] V. Korthikanti et al., "Reducing activation recomputation in large transformer models",
       MLSys'23 (arXiv:2205.05198), sections 4 and 5.
    """
    size = float(sequence * batch_size * architecture.hidden_size)
    if recomputation == "full":
        return 2.0 * size
    kept = 34.0 * size
    if not is_like_gpt(architecture):
        elements = kept_elements(architecture, layer)
        kept = float(ACTIVATION_BYTES * sequence * batch_size * elements)
    if recomputation == "none":
        return kept + 5.0 * architecture.num_heads * sequence * sequence * batch_size
    return kept


def layer_replicated_bytes(
    architecture: Architecture,
    *,
    batch_size: int,
    sequence: int,
    recomputation: Recomputation,
    layer: int = 0,
) -> tuple[float, float]:
    """Parts of `layer_activation_bytes` and `layer_weight_input_bytes` that stay whole. [bytes]

    Tensor parallelism over ``t`` GPUs does not split them, unless it is with sequence parallelism:
    of ``34 s b h`` bytes ``10 s b h``, so that a GPU keeps ``s b h (10 + 24 / t)``, of ``32 s b h``
    ``8 s b h``, and of ``2 s b h`` all (Korthikanti et al., table 2).
    """
    tokens = sequence * batch_size
    size = float(tokens * architecture.hidden_size)
    whole, halved = 10.0 * size, 8.0 * size
    if not is_like_gpt(architecture):
        whole = float(ACTIVATION_BYTES * tokens * replicated_elements(architecture, layer))
        halved = float(ACTIVATION_BYTES * tokens * replicated_weight_elements(architecture, layer))
    return (2.0 * size if recomputation == "full" else whole), halved


def layer_recomputation_flops(flops: PassFlops, recomputation: Recomputation) -> float:
    """FLOPs that make again what was not kept, see `layer_activation_bytes`."""
    if recomputation == "full":
        return flops.forward
    return flops.attention_flops if recomputation == "selective" else 0.0


def layer_weight_input_bytes(
    architecture: Architecture, *, batch_size: int, sequence: int, layer: int = 0
) -> float:
    """Bytes a layer keeps from its input gradient to its weight gradient: ``32 s b h``. [bytes]

    P. Qi et al., "Zero bubble pipeline parallelism", ICLR'24, table on FLOPs and activations. With
    full recomputation this is more than what is kept before the input gradient. Layers of another
    kind (see `layer_activation_bytes`) keep `des.job.kept_tensors.weight_gradient_elements`.
    """
    if not is_like_gpt(architecture):
        elements = weight_gradient_elements(architecture, layer)
        return float(ACTIVATION_BYTES * sequence * batch_size * elements)
    return 32.0 * sequence * batch_size * architecture.hidden_size
