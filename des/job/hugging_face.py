"""Architectures from the ``config.json`` of Hugging Face's models, by family.

Keys that say nothing of sizes are skipped. Layers that predict further tokens
(``num_nextn_predict_layers``) are no part of an architecture.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from des.job.architecture import Architecture, LatentAttention, MixtureOfExperts

_PROJECTIONS = ("qkv", "output")


class _Form(BaseModel, ABC):
    """Keys of a family; those with a default may be left out, as in the family's own class."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    vocab_size: int
    tie_word_embeddings: bool = False

    @abstractmethod
    def to_architecture(self, name: str) -> Architecture:
        """Make the value."""

    def shape(self, name: str, **further: Any) -> Architecture:
        """Make the value of the keys of all families and further fields."""
        return Architecture(
            name=name,
            num_layers=self.num_hidden_layers,
            hidden_size=self.hidden_size,
            num_heads=self.num_attention_heads,
            ffn_size=self.intermediate_size,
            vocabulary_size=self.vocab_size,
            gated_ffn=True,
            tied_embeddings=self.tie_word_embeddings,
            **further,
        )


class _LlamaForm(_Form):
    """Llama 1 to 3; configurations before grouped-query attention lack its key."""

    num_key_value_heads: int | None = None
    head_dim: int | None = None
    attention_bias: bool = False
    mlp_bias: bool = False

    def to_architecture(self, name: str) -> Architecture:
        heads = self.num_key_value_heads
        return self.shape(
            name,
            num_key_value_heads=self.num_attention_heads if heads is None else heads,
            head_size=self.head_dim,
            biases=(*(_PROJECTIONS * self.attention_bias), *(("ffn",) * self.mlp_bias)),
        )


class _MistralForm(_Form):
    num_key_value_heads: int
    head_dim: int | None = None
    sliding_window: int | None = None

    def to_architecture(self, name: str) -> Architecture:
        return self.shape(
            name,
            num_key_value_heads=self.num_key_value_heads,
            head_size=self.head_dim,
            attention_window=self.sliding_window,
        )


class _MixtralForm(_MistralForm):
    num_local_experts: int
    num_experts_per_tok: int

    def to_architecture(self, name: str) -> Architecture:
        return self.shape(
            name,
            num_key_value_heads=self.num_key_value_heads,
            head_size=self.head_dim,
            attention_window=self.sliding_window,
            experts=MixtureOfExperts(
                num_experts=self.num_local_experts,
                experts_per_token=self.num_experts_per_tok,
                expert_ffn_size=self.intermediate_size,
            ),
        )


class _QwenForm(_Form):
    """Keys of Qwen2 and Qwen3; their windows, which some layers have, are not read."""

    num_key_value_heads: int
    use_sliding_window: Literal[False] = False


class _Qwen2Form(_QwenForm):
    def to_architecture(self, name: str) -> Architecture:
        return self.shape(name, num_key_value_heads=self.num_key_value_heads, biases=("qkv",))


class _Qwen3Form(_QwenForm):
    head_dim: int
    attention_bias: bool = False

    def to_architecture(self, name: str) -> Architecture:
        return self.shape(name, **self.attention())

    def attention(self) -> dict[str, Any]:
        """Fields of attention."""
        return {
            "num_key_value_heads": self.num_key_value_heads,
            "head_size": self.head_dim,
            "biases": _PROJECTIONS * self.attention_bias,
            "qk_norm": True,
        }


class _QwenExpertsForm(_QwenForm):
    """Keys of the experts of Qwen2 and Qwen3: every ``decoder_sparse_step``-th layer has them."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    decoder_sparse_step: int = 1
    mlp_only_layers: list[int] = []

    def experts(self, **shared: Any) -> MixtureOfExperts:
        """Make the mixture of experts."""
        if self.decoder_sparse_step < 1:
            raise ValueError(
                f"decoder_sparse_step: must be at least 1, got {self.decoder_sparse_step}"
            )
        return MixtureOfExperts(
            num_experts=self.num_experts,
            experts_per_token=self.num_experts_per_tok,
            expert_ffn_size=self.moe_intermediate_size,
            dense_layers=tuple(
                layer
                for layer in range(self.num_hidden_layers)
                if layer in self.mlp_only_layers or (layer + 1) % self.decoder_sparse_step
            ),
            **shared,
        )


class _Qwen2ExpertsForm(_QwenExpertsForm):
    shared_expert_intermediate_size: int
    qkv_bias: bool = True

    def to_architecture(self, name: str) -> Architecture:
        return self.shape(
            name,
            num_key_value_heads=self.num_key_value_heads,
            biases=("qkv",) * self.qkv_bias,
            experts=self.experts(
                shared_ffn_size=self.shared_expert_intermediate_size, shared_scale=True
            ),
        )


class _Qwen3ExpertsForm(_QwenExpertsForm, _Qwen3Form):
    def to_architecture(self, name: str) -> Architecture:
        return self.shape(name, **self.attention(), experts=self.experts())


class _DeepSeekForm(_Form):
    """Keys of DeepSeek-V2 and V3; ``noaux_tc`` chooses experts by scores that have a bias."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    n_routed_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    n_shared_experts: int | None = None
    first_k_dense_replace: int
    moe_layer_freq: int = 1
    topk_method: str = "greedy"
    attention_bias: Literal[False] = False

    def to_architecture(self, name: str) -> Architecture:
        if self.moe_layer_freq < 1:
            raise ValueError(f"moe_layer_freq: must be at least 1, got {self.moe_layer_freq}")
        return self.shape(
            name,
            num_key_value_heads=self.num_attention_heads,
            latent_attention=LatentAttention(
                query_rank=self.q_lora_rank,
                key_value_rank=self.kv_lora_rank,
                plain_head_size=self.qk_nope_head_dim,
                rotary_head_size=self.qk_rope_head_dim,
                value_head_size=self.v_head_dim,
            ),
            experts=MixtureOfExperts(
                num_experts=self.n_routed_experts,
                experts_per_token=self.num_experts_per_tok,
                expert_ffn_size=self.moe_intermediate_size,
                shared_ffn_size=self.moe_intermediate_size * (self.n_shared_experts or 0),
                router_bias=self.topk_method == "noaux_tc",
                dense_layers=tuple(
                    layer
                    for layer in range(self.num_hidden_layers)
                    if layer < self.first_k_dense_replace or layer % self.moe_layer_freq
                ),
            ),
        )


class _DeepSeekV3Form(_DeepSeekForm):
    topk_method: str = "noaux_tc"


FAMILIES: Mapping[str, type[_Form]] = {
    "llama": _LlamaForm,
    "mistral": _MistralForm,
    "mixtral": _MixtralForm,
    "qwen2": _Qwen2Form,
    "qwen2_moe": _Qwen2ExpertsForm,
    "qwen3": _Qwen3Form,
    "qwen3_moe": _Qwen3ExpertsForm,
    "deepseek_v2": _DeepSeekForm,
    "deepseek_v3": _DeepSeekV3Form,
}
"""Forms by ``model_type``."""


def from_config(content: object, name: str) -> Architecture:
    """Make the architecture that the content of a ``config.json`` describes.

    Raises
    ------
    ValueError
        If the family is unknown or a key is missing or wrong; the message names the key, what is
        allowed and what came, or it is a ``pydantic.ValidationError`` that does.
    """
    if not isinstance(content, Mapping):
        raise ValueError(f"file: must be an object of keys, got {type(content).__name__}")
    known = ", ".join(FAMILIES)
    if "model_type" not in content:
        raise ValueError(f"model_type: must be given, one of {known}")
    family = content["model_type"]
    form = FAMILIES.get(family) if isinstance(family, str) else None
    if form is None:
        raise ValueError(f"model_type: must be one of {known}; got {family!r}")
    missing = [
        key
        for key, field in form.model_fields.items()
        if field.is_required() and key not in content
    ]
    if missing:
        raise ValueError(f"{', '.join(missing)}: must be given for model_type {family}")
    return form.model_validate(content).to_architecture(name)
