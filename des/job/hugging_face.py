"""Architectures from the ``config.json`` of Hugging Face's models, by the table of kinds.

Keys that say nothing of sizes are skipped; a missing one has the default of the kind's own class.
Layers that predict further tokens (``num_nextn_predict_layers``) are no part of an architecture.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from des.base.checks import prefixed_errors
from des.base.extras import require_extra
from des.job import transformers_library
from des.job.architecture import Architecture, Bias, LatentAttention, MixtureOfExperts
from des.job.model_kinds import (
    KINDS,
    OTHER_LAYERS,
    OTHER_PARTS,
    SHAPE_KEYS,
    TEXT_KINDS,
    ModelKind,
)

_SAME: Mapping[str, str] = {
    "n_layer": "num_hidden_layers",
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "ffn_dim": "intermediate_size",
    "max_position_embeddings": "n_positions",
    "_sliding_window_pattern": "sliding_window_pattern",
    "num_local_experts": "num_experts",
    "n_routed_experts": "num_experts",
    "moe_num_experts": "num_experts",
    "moe_k": "num_experts_per_tok",
    "moe_num_shared_experts": "n_shared_experts",
    "moe_layer_start_index": "first_k_dense_replace",
}
"""Keys that mean the same; the second is the one of the table."""

_PARTS = ("text_config", "llm_config", "language_config")
_OF_KEY: Mapping[str, tuple[Bias, ...]] = {
    "attention_bias": ("qkv", "output"),
    "attention_out_bias": ("output",),
    "mlp_bias": ("ffn",),
    "qkv_bias": ("qkv",),
    "use_bias": ("qkv", "output", "ffn"),
    "bias": ("qkv", "output"),
    "use_qkv_bias": ("qkv",),
}
_WHOLE = ("full_attention", "attention")
_WINDOWED = ("sliding_attention", "chunked_attention")


class _Keys(BaseModel):
    """Values of all keys that some kind has; where a kind has none they mean nothing."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    intermediate_size: int | None
    vocab_size: int
    n_positions: int = 0
    multi_query: bool = False
    word_embed_proj_dim: int | None = None
    bias: bool = False
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    attention_out_bias: bool = False
    mlp_bias: bool = False
    qkv_bias: bool = False
    use_bias: bool = False
    use_qkv_bias: bool = False
    use_qk_norm: bool = True
    sliding_window: int | None = None
    attention_chunk_size: int | None = None
    use_sliding_window: bool = True
    max_window_layers: int = 0
    sliding_window_pattern: int | str | None = None
    no_rope_layer_interval: int | None = None
    layer_types: list[str] | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    topk_method: str = ""
    num_experts: int | None = None
    num_experts_per_tok: int | None = None
    moe_intermediate_size: int | None = None
    shared_expert_intermediate_size: int | None = None
    intermediate_size_mlp: int | None = None
    n_shared_experts: int | None = None
    mlp_only_layers: list[int] | None = None
    first_k_dense_replace: int = 0
    moe_layer_freq: int = 1
    decoder_sparse_step: int = 1
    interleave_moe_layer_step: int = 1


class _LatentKeys(_Keys):
    attention_bias: Literal[False] = False


def from_config(content: object, name: str) -> Architecture:
    """Make the architecture that the content of a ``config.json`` describes.

    Raises
    ------
    ValueError
        If the kind is unknown or a key is missing or wrong; the message names the key, what is
        allowed and what came, or it is a ``pydantic.ValidationError`` that does.
    """
    if not isinstance(content, Mapping):
        raise ValueError(f"file: must be an object of keys, got {type(content).__name__}")
    known = ", ".join((*KINDS, *TEXT_KINDS))
    if "model_type" not in content:
        raise ValueError(f"model_type: must be given, one of {known}")
    model_type = content["model_type"]
    part = next((content[key] for key in _PARTS if isinstance(content.get(key), Mapping)), None)
    if part is not None:
        outer = {key: content[key] for key in ("tie_word_embeddings",) if key in content}
        inner = part.get("model_type", TEXT_KINDS.get(str(model_type), model_type))
        is_known = isinstance(inner, str) and inner in KINDS
        defaults = dict(zip(SHAPE_KEYS, KINDS[inner].shape, strict=True)) if is_known else {}
        return from_config(defaults | _rename(part) | outer | {"model_type": inner}, name)
    kind = TEXT_KINDS.get(str(model_type), model_type)
    if isinstance(kind, str) and kind in KINDS:
        return architecture_of(KINDS[kind], content, name, kind)
    if str(model_type) in OTHER_LAYERS:
        raise ValueError(
            f"model_type: {model_type} has layers of {OTHER_LAYERS[model_type]}; only layers of "
            "attention and a feed-forward are counted"
        )
    refusal = f"model_type: must be one of {known}; got {model_type!r}"
    if str(model_type) in OTHER_PARTS:
        raise ValueError(
            f"model_type: {model_type} has {OTHER_PARTS[model_type]}; such parts are not counted"
        )
    if not isinstance(model_type, str):
        raise ValueError(refusal)
    require_extra(f"{refusal}; to read others", "transformers")
    with prefixed_errors(f"{refusal}; "):
        return transformers_library.architecture_by_library(
            content, lambda kind, keys: architecture_of(kind, keys, name, model_type)
        )


def _rename(content: Mapping[str, Any]) -> dict[str, Any]:
    return {_SAME.get(key, key): value for key, value in content.items()}


def architecture_of(
    kind: ModelKind, content: Mapping[str, Any], name: str, model_type: str
) -> Architecture:
    """Make the architecture of a file's keys by the row of its kind.

    Raises
    ------
    ValueError
        As `from_config`.
    """
    given = _rename(content)
    read = {key: given.get(key, default) for key, default in kind.defaults.items()}
    shape = {key: given[key] for key in SHAPE_KEYS if key in given}
    values = read | shape | {"layer_types": given.get("layer_types")}
    needed = [key for key in SHAPE_KEYS if key not in values]
    needed += [key for key in ("num_experts", "num_experts_per_tok")
               if key in kind.defaults and values[key] is None]  # fmt: skip
    if needed:
        raise ValueError(f"{', '.join(needed)}: must be given for model_type {model_type}")
    keys = (_LatentKeys if "kv_lora_rank" in read else _Keys).model_validate(values)
    window, whole = _window(keys)
    heads = keys.num_attention_heads
    if keys.word_embed_proj_dim not in (None, keys.hidden_size):
        raise ValueError(
            f"word_embed_proj_dim: must be hidden_size, {keys.hidden_size}, "
            f"got {keys.word_embed_proj_dim}"
        )
    latent = _latent_attention(keys)
    has_norms = keys.use_qk_norm and latent is None
    return Architecture(
        name=name,
        num_layers=keys.num_hidden_layers,
        hidden_size=keys.hidden_size,
        num_heads=heads,
        num_key_value_heads=heads if latent else _num_key_value_heads(keys),
        ffn_size=keys.intermediate_size_mlp or keys.intermediate_size or 4 * keys.hidden_size,
        vocabulary_size=keys.vocab_size,
        gated_ffn=kind.gated_ffn,
        tied_embeddings=keys.tie_word_embeddings,
        num_positions=keys.n_positions + kind.further_positions,
        head_size=None if latent else keys.head_dim,
        biases=_biases(kind, keys),
        num_norms=kind.num_norms,
        qk_norm=has_norms and kind.qk_norm == "head",
        whole_qk_norm=has_norms and kind.qk_norm == "all",
        attention_sinks=kind.attention_sinks,
        attention_window=window,
        full_attention_layers=whole,
        latent_attention=latent,
        experts=_experts(kind, keys),
    )


def _num_key_value_heads(keys: _Keys) -> int:
    return 1 if keys.multi_query else keys.num_key_value_heads or keys.num_attention_heads


def _biases(kind: ModelKind, keys: _Keys) -> tuple[Bias, ...]:
    found = dict.fromkeys(kind.biases)
    for key, parts in _OF_KEY.items():
        if getattr(keys, key):
            found |= dict.fromkeys(parts)
    if not kind.output_bias and not keys.attention_out_bias:
        found.pop("output", None)
    order: tuple[Bias, ...] = ("qkv", "output", "ffn", "norm")
    return tuple(part for part in order if part in found)


def _window(keys: _Keys) -> tuple[int | None, tuple[int, ...]]:
    """Window of attention, and the layers without it."""
    window = keys.attention_chunk_size or keys.sliding_window
    layers, types = range(keys.num_hidden_layers), keys.layer_types
    every = keys.sliding_window_pattern or keys.no_rope_layer_interval
    if types is None:
        number = len(every) if isinstance(every, str) else every
        whole = tuple(
            layer
            for layer in layers
            if layer < keys.max_window_layers or (number and not (layer + 1) % number)
        )
        if not keys.use_sliding_window:
            return None, ()
    else:
        for layer, each in enumerate(types):
            if each not in (*_WHOLE, *_WINDOWED):
                raise ValueError(
                    f"layer_types: must be of {', '.join((*_WHOLE, *_WINDOWED))}; got {each!r} "
                    f"for layer {layer}"
                )
        if len(types) != len(layers):
            raise ValueError(
                f"layer_types: must be one for each of {len(layers)} layers, got {len(types)}"
            )
        whole = tuple(layer for layer in layers if types[layer] in _WHOLE)
    return (window, whole) if window and len(whole) < len(layers) else (None, ())


def _latent_attention(keys: _Keys) -> LatentAttention | None:
    if keys.kv_lora_rank is None:
        return None
    return LatentAttention(
        query_rank=keys.q_lora_rank,
        key_value_rank=keys.kv_lora_rank,
        plain_head_size=keys.qk_nope_head_dim,
        rotary_head_size=keys.qk_rope_head_dim,
        value_head_size=keys.v_head_dim,
    )


def _experts(kind: ModelKind, keys: _Keys) -> MixtureOfExperts | None:
    if keys.num_experts is None or keys.num_experts_per_tok is None:
        return None
    steps = ("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step")
    for key in steps:
        if getattr(keys, key) < 1:
            raise ValueError(f"{key}: must be at least 1, got {getattr(keys, key)}")
    own = keys.moe_intermediate_size or keys.intermediate_size or 4 * keys.hidden_size
    shared = keys.shared_expert_intermediate_size
    return MixtureOfExperts(
        num_experts=keys.num_experts,
        experts_per_token=keys.num_experts_per_tok,
        expert_ffn_size=own,
        shared_ffn_size=own * (keys.n_shared_experts or 0) if shared is None else shared,
        shared_scale=bool(shared),
        router_bias=kind.router_bias or keys.topk_method == "noaux_tc",
        dense_layers=tuple(
            layer
            for layer in range(keys.num_hidden_layers)
            if layer in (keys.mlp_only_layers or ())
            or layer < keys.first_k_dense_replace
            or layer % keys.moe_layer_freq
            or (layer + 1) % keys.decoder_sparse_step
            or (layer + 1) % keys.interleave_moe_layer_step
        ),
    )
