"""Shapes of decoder-only transformers: attention, feed-forward, experts and embeddings."""

from dataclasses import dataclass
from typing import Literal, get_args

from des.base.checks import MOST_ITEMS, require_count

Bias = Literal["qkv", "output", "ffn", "norm"]
"""Parts of a layer that may add a bias: projections to queries, keys and values; the projection of
attention's output; matrices of the feed-forward; layer norms, the final one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are projected from one short vector a token.

    Parameters
    ----------
    query_rank
        Size of the vector that queries are projected from; None projects them from the hidden
        state.
    key_value_rank
        Size of the vector that keys and values are projected from.
    plain_head_size, rotary_head_size
        Parts of a query and of a key without and with position; the latter part of a key is shared
        by all heads.
    value_head_size
        Size of a value of one head.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V2: A strong, economical, and efficient mixture-of-experts
       language model", arXiv:2405.04434, section 2.1.
    """

    query_rank: int | None = None
    key_value_rank: int
    plain_head_size: int
    rotary_head_size: int
    value_head_size: int

    def __post_init__(self) -> None:
        owner = "latent_attention"
        if self.query_rank is not None:
            require_count(owner, "query_rank", self.query_rank)
        for field in ("key_value_rank", "plain_head_size", "rotary_head_size", "value_head_size"):
            require_count(owner, field, getattr(self, field))


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """Feed-forwards of sparse layers: a router sends each token to some of the experts.

    Parameters
    ----------
    num_experts, experts_per_token
        Routed experts of a layer, and those that each token goes through.
    expert_ffn_size
        Inner width of one expert.
    shared_ffn_size
        Inner width of the feed-forward that all tokens go through: of all shared experts together.
    shared_scale
        A learnt factor, one a token, scales the shared part (Qwen2).
    router_bias
        The router has one bias an expert, such as the correction bias of DeepSeek-V3.
    dense_layers
        Indices of the layers that have one feed-forward of the model's ``ffn_size`` instead.
    """

    num_experts: int
    experts_per_token: int
    expert_ffn_size: int
    shared_ffn_size: int = 0
    shared_scale: bool = False
    router_bias: bool = False
    dense_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        owner = "experts"
        require_count(owner, "num_experts", self.num_experts, MOST_ITEMS)
        require_count(owner, "experts_per_token", self.experts_per_token, self.num_experts)
        require_count(owner, "expert_ffn_size", self.expert_ffn_size)
        if self.shared_ffn_size != 0:
            require_count(owner, "shared_ffn_size", self.shared_ffn_size)
        if self.shared_scale and not self.shared_ffn_size:
            raise ValueError(f"{owner}: shared_scale needs a shared_ffn_size above 0, got 0")
        if len(set(self.dense_layers)) < len(self.dense_layers):
            raise ValueError(f"{owner}: dense_layers must be unique, got {self.dense_layers}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Shape of a decoder-only transformer.

    Parameters
    ----------
    num_layers, hidden_size
        Decoder layers, and the width of the states between them.
    num_heads, num_key_value_heads
        Heads of the queries; heads of keys and values, fewer with grouped-query attention.
    head_size
        Size of one head (default: ``hidden_size / num_heads``).
    ffn_size, gated_ffn
        Inner width of a dense feed-forward: three matrices if gated (SwiGLU), otherwise two (GELU).
    vocabulary_size, tied_embeddings, num_positions
        Rows of the embedding; whether it is the output matrix as well; learned positions.
    biases
        What adds a bias (default: nothing with a gated feed-forward, as Llama has it; everything
        with a plain one, as GPT-3).
    num_norms
        Norms of a layer: before attention and feed-forward, before and behind them (4, Gemma 2), or
        before both at once (1, Command R).
    qk_norm, whole_qk_norm
        Queries and keys of a head are normed (Qwen3), or those of all heads together (OLMo 2).
    attention_sinks
        Each head has a learnt score that no token has (gpt-oss).
    attention_window, full_attention_layers
        Tokens that attention looks back at most (default: all); indices of the layers in which it
        looks at all.
    latent_attention, experts
        Latent attention in place of full keys and values; mixture of experts in place of dense
        feed-forwards.
    """

    name: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_key_value_heads: int
    ffn_size: int
    vocabulary_size: int
    gated_ffn: bool
    tied_embeddings: bool
    num_positions: int = 0
    head_size: int | None = None
    biases: tuple[Bias, ...] | None = None
    num_norms: int = 2
    qk_norm: bool = False
    whole_qk_norm: bool = False
    attention_sinks: bool = False
    attention_window: int | None = None
    full_attention_layers: tuple[int, ...] = ()
    latent_attention: LatentAttention | None = None
    experts: MixtureOfExperts | None = None

    def __post_init__(self) -> None:
        owner = "architecture"
        require_count(owner, "num_layers", self.num_layers, MOST_ITEMS)
        for field in ("hidden_size", "num_heads", "num_key_value_heads", "ffn_size"):
            require_count(owner, field, getattr(self, field))
        require_count(owner, "vocabulary_size", self.vocabulary_size)
        if self.num_positions != 0:
            require_count(owner, "num_positions", self.num_positions)
        for field in ("head_size", "attention_window"):
            if getattr(self, field) is not None:
                require_count(owner, field, getattr(self, field))
        self._check_heads(owner)
        for bias in self.biases or ():
            if bias not in get_args(Bias):
                allowed = ", ".join(get_args(Bias))
                raise ValueError(f"{owner}: biases must be of {allowed}; got {bias!r}")
        require_count(owner, "num_norms", self.num_norms, 4)
        if self.full_attention_layers and self.attention_window is None:
            raise ValueError(f"{owner}: full_attention_layers need an attention_window, got none")
        self._check_layers(owner, "full_attention_layers", self.full_attention_layers)
        if self.experts:
            self._check_layers(owner, "experts.dense_layers", self.experts.dense_layers)

    def _check_layers(self, owner: str, field: str, layers: tuple[int, ...]) -> None:
        for layer in layers:
            if isinstance(layer, bool) or layer not in range(self.num_layers):
                raise ValueError(
                    f"{owner}: {field} must be from 0 to {self.num_layers - 1}, got {layer!r}"
                )

    def _check_heads(self, owner: str) -> None:
        """Refuse heads that do not divide what they share."""
        if self.num_heads % self.num_key_value_heads:
            raise ValueError(
                f"{owner}: num_key_value_heads must divide the {self.num_heads} num_heads, "
                f"got {self.num_key_value_heads}"
            )
        if self.latent_attention is None:
            if self.head_size is None and self.hidden_size % self.num_heads:
                raise ValueError(
                    f"{owner}: num_heads must divide hidden_size {self.hidden_size} if no "
                    f"head_size is given, got {self.num_heads}"
                )
            return
        for field in ("head_size", "qk_norm", "whole_qk_norm"):
            if getattr(self, field):
                raise ValueError(
                    f"{owner}: {field} must not be given with latent_attention, "
                    f"got {getattr(self, field)!r}"
                )
        if self.num_key_value_heads != self.num_heads:
            raise ValueError(
                f"{owner}: num_key_value_heads must be the {self.num_heads} num_heads with "
                f"latent_attention, got {self.num_key_value_heads}"
            )
        if self.adds_bias("qkv"):
            raise ValueError(f"{owner}: biases must not name qkv with latent_attention, got qkv")

    @property
    def query_head_size(self) -> int:
        """Size of a query, and of a key, of one head."""
        latent = self.latent_attention
        if latent is not None:
            return latent.plain_head_size + latent.rotary_head_size
        return self.head_size or self.hidden_size // self.num_heads

    @property
    def value_head_size(self) -> int:
        """Size of a value of one head."""
        latent = self.latent_attention
        return self.query_head_size if latent is None else latent.value_head_size

    @property
    def key_value_size(self) -> int:
        """Width of the keys, and of the values, with grouped-query attention."""
        return self.query_head_size * self.num_key_value_heads

    def window_of(self, layer: int) -> int | None:
        """Tokens that attention of a layer, by its index, looks back at most; None for all."""
        return None if layer in self.full_attention_layers else self.attention_window

    @property
    def norm_elements(self) -> int:
        """Elements a token that norms of a layer read, and that what follows them reads."""
        return self.hidden_size * (self.num_norms + min(self.num_norms, 2))

    def adds_bias(self, part: Bias) -> bool:
        """Whether a part of a layer adds a bias."""
        return not self.gated_ffn if self.biases is None else part in self.biases

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer, by its index, has experts."""
        return self.experts_of(layer) is not None

    def experts_of(self, layer: int) -> MixtureOfExperts | None:
        """Experts of a layer, by its index; None where it has one feed-forward."""
        experts = self.experts
        return None if experts is None or layer in experts.dense_layers else experts

    @property
    def latent_ranks(self) -> int:
        """Sizes of the vectors that queries, and keys and values, are projected from; else 0."""
        latent = self.latent_attention
        return 0 if latent is None else (latent.query_rank or 0) + latent.key_value_rank
