"""Tensors that a layer keeps for its backward pass, counted one by one.

The published sums of a GPT layer, 34 and 32 bytes a token and unit of hidden size (see
`des.job.transformer`), do not hold where experts or latent attention add tensors of other widths.
Counts are in elements of 16 bits for each token; experts are used evenly.
"""

from des.job.architecture import Architecture, MixtureOfExperts
from des.job.matrices import layer_matrices


def is_like_gpt(architecture: Architecture) -> bool:
    """Whether the layers are of the kind that the published sums are for: dense, with full heads.

    They are used for gated feed-forwards and grouped-query attention as well.
    """
    query = architecture.num_heads * architecture.query_head_size
    parts = (architecture.experts, architecture.latent_attention)
    norms = (architecture.num_norms, architecture.qk_norm, architecture.whole_qk_norm)
    return (*parts, *norms, query) == (None, None, 2, False, False, architecture.hidden_size)


def kept_elements(architecture: Architecture, layer: int = 0) -> int:
    """Elements kept from the forward pass with a kernel that never writes the scores.

    Inputs of both norms and their outputs; queries, keys, values and their weighted sum; what the
    norms of heads and of latent vectors read and write; of a feed-forward the outputs of its first
    matrices, of the activation function and, if gated, their product. Of experts also the copy of
    the token that each one reads and its output, which the router's gradient needs, and the scores
    of the router, in 32 bits.

    Examples
    --------
    A GPT layer keeps ``16 h``, 32 of the 34 bytes; 2 are masks of dropout.

    >>> from des import ARCHITECTURES
    >>> gpt = ARCHITECTURES["gpt3_175b"]
    >>> kept_elements(gpt) / gpt.hidden_size
    16.0
    """
    h, experts = architecture.hidden_size, architecture.experts_of(layer)
    width = 4 if architecture.gated_ffn else 2
    kept = architecture.norm_elements + _attention_elements(architecture)
    if experts is None:
        return kept + width * architecture.ffn_size
    routed = experts.experts_per_token * (2 * h + width * experts.expert_ffn_size)
    shared = width * experts.shared_ffn_size + (h if experts.shared_scale else 0)
    return kept + 2 * experts.num_experts + routed + shared


def weight_gradient_elements(architecture: Architecture, layer: int = 0) -> int:
    """Elements kept from the input gradient to the weight gradient: inputs of all matrices, and
    the gradients of their outputs.

    Examples
    --------
    >>> from des import ARCHITECTURES
    >>> gpt = ARCHITECTURES["gpt3_175b"]
    >>> weight_gradient_elements(gpt) / gpt.hidden_size  # 32 bytes
    16.0
    """
    gradients = sum(
        matrix.copies_per_token * matrix.outputs for matrix in layer_matrices(architecture, layer)
    )
    h, experts = architecture.hidden_size, architecture.experts_of(layer)
    inputs = 2 * h + architecture.num_heads * architecture.value_head_size
    inputs += architecture.latent_ranks
    if experts is None:
        return gradients + inputs + architecture.ffn_size
    return gradients + inputs + _expert_inputs(architecture, experts)


def replicated_elements(architecture: Architecture, layer: int = 0) -> int:
    """The part of `kept_elements` that a tensor group without sequence parallelism does not split.

    Inputs and outputs of both norms; latent vectors; of experts the copies of the token, their
    outputs and the router's scores.

    Examples
    --------
    A GPT layer keeps ``4 h``, 8 of the 10 bytes; 2 are masks of dropout.

    >>> from des import ARCHITECTURES
    >>> gpt = ARCHITECTURES["gpt3_175b"]
    >>> replicated_elements(gpt) / gpt.hidden_size
    4.0
    """
    h, experts = architecture.hidden_size, architecture.experts_of(layer)
    kept = architecture.norm_elements + _latent_vectors(architecture)
    if experts is None:
        return kept
    routed = 2 * experts.experts_per_token * h + 2 * experts.num_experts
    return kept + routed + (h if experts.shared_scale else 0)


def replicated_weight_elements(architecture: Architecture, layer: int = 0) -> int:
    """The part of `weight_gradient_elements` that a tensor group alone does not split.

    Inputs of matrices whose outputs it divides, and gradients of the outputs of the others.

    Examples
    --------
    >>> from des import ARCHITECTURES
    >>> gpt = ARCHITECTURES["gpt3_175b"]
    >>> replicated_weight_elements(gpt) / gpt.hidden_size  # 8 bytes
    4.0
    """
    gradients = sum(
        matrix.copies_per_token * matrix.outputs
        for matrix in layer_matrices(architecture, layer)
        if matrix.is_replicated or matrix.takes_parts
    )
    h, experts = architecture.hidden_size, architecture.experts_of(layer)
    inputs = 2 * h + architecture.latent_ranks
    if experts is not None:
        inputs += experts.experts_per_token * h
    return gradients + inputs


def _latent_vectors(architecture: Architecture) -> int:
    """Vectors between both projections of latent attention, before and after their norms."""
    latent = architecture.latent_attention
    return 0 if latent is None else 2 * architecture.latent_ranks + latent.rotary_head_size


def _attention_elements(architecture: Architecture) -> int:
    heads, latent = architecture.num_heads, architecture.latent_attention
    query, output = heads * architecture.query_head_size, heads * architecture.value_head_size
    if latent is None:
        has_norms = architecture.qk_norm or architecture.whole_qk_norm
        normed = query + architecture.key_value_size if has_norms else 0
        return normed + query + 2 * architecture.key_value_size + output
    return _latent_vectors(architecture) + query + query + output + output


def _expert_inputs(architecture: Architecture, experts: MixtureOfExperts) -> int:
    """Inputs of the experts' matrices; router and shared experts read the normed state."""
    routed = experts.experts_per_token * (architecture.hidden_size + experts.expert_ffn_size)
    return routed + experts.shared_ffn_size
