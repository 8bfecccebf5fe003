"""Kinds of decoders in ``config.json`` files, with the defaults of their configuration classes.

Shapes and defaults are facts of transformers 5.24.0: those of the class that a row names (of
``kimi_k2``, ``internlm2`` and ``deepseek``, which have no class there, those of the code that their
repositories carry, the first like DeepSeek-V3's). Keys that a row lacks say nothing of its sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from des.job.architecture import Bias

SHAPE_KEYS = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"),
    "vocab_size",
)
"""Keys that a file must give, unless it is a part of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKind:
    """Facts that all models of a kind share.

    Parameters
    ----------
    configuration
        Class of transformers that has the defaults.
    shape
        Defaults of `SHAPE_KEYS` in their order.
    defaults
        Other keys that are read, with their defaults.
    biases
        Parts that always add a bias; keys such as ``attention_bias`` add others.
    output_bias
        ``attention_bias`` is one of the output projection as well.
    qk_norm
        Norms of queries and keys: of each head, or of all heads together.
    further_positions
        Rows of the table of positions beyond those that the file gives.
    """

    configuration: str
    shape: tuple[int, int, int, int, int]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    gated_ffn: bool = True
    num_norms: int = 2
    biases: tuple[Bias, ...] = ()
    output_bias: bool = True
    qk_norm: Literal["none", "head", "all"] = "none"
    attention_sinks: bool = False
    router_bias: bool = False
    further_positions: int = 0


def _kind(
    configuration: str,
    shape: tuple[int, int, int, int, int],
    defaults: dict[str, Any],
    *,
    tied: bool = False,
    **traits: Any,
) -> ModelKind:
    keys: dict[str, Any] = {
        "num_key_value_heads": None,
        "head_dim": None,
        "tie_word_embeddings": tied,
    }
    return ModelKind(configuration=configuration, shape=shape, defaults=keys | defaults, **traits)


_BIASES = {"attention_bias": False, "mlp_bias": False}
_ATTENTION_BIAS = {"attention_bias": False}
_WINDOW = {"sliding_window": 4096, "layer_types": None}
_QWEN_WINDOW = _WINDOW | {"use_sliding_window": False, "max_window_layers": 28}
_QWEN_EXPERTS = {"decoder_sparse_step": 1, "mlp_only_layers": None}
_LATENT = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
}


def _heads(number: int | None, size: int | None = None) -> dict[str, Any]:
    return {"num_key_value_heads": number, "head_dim": size}


def _experts(number: int | None, per_token: int | None, **further: Any) -> dict[str, Any]:
    return {"num_experts": number, "num_experts_per_tok": per_token, **further}


_DEEPSEEK_V3 = _kind(
    "DeepseekV3Config", (61, 7168, 128, 18432, 129280),
    _LATENT | _ATTENTION_BIAS | {"topk_method": "noaux_tc"} | _experts(
        256, 8, moe_intermediate_size=2048, n_shared_experts=1, first_k_dense_replace=3),
)  # fmt: skip
_LLAMA_SHAPE = (32, 4096, 32, 11008, 32000)
_MISTRAL_SHAPE = (32, 4096, 32, 14336, 32000)
_OLMO_SHAPE = (32, 4096, 32, 11008, 50304)
_QWEN_VL = _heads(8) | _QWEN_WINDOW | {"max_window_layers": 80}

KINDS: Mapping[str, ModelKind] = {
    "llama": _kind("LlamaConfig", _LLAMA_SHAPE, _BIASES),
    "mistral": _kind("MistralConfig", _MISTRAL_SHAPE, _heads(8) | _WINDOW),
    "mixtral": _kind("MixtralConfig", _MISTRAL_SHAPE,
        _heads(8) | _WINDOW | {"sliding_window": None} | _experts(8, 2)),
    "qwen2": _kind("Qwen2Config", (32, 4096, 32, 22016, 151936), _heads(32) | _QWEN_WINDOW,
        biases=("qkv",)),
    "qwen2_moe": _kind("Qwen2MoeConfig", (24, 2048, 16, 5632, 151936),
        _heads(16) | _QWEN_WINDOW | {"qkv_bias": True} | _QWEN_EXPERTS | _experts(
            60, 4, moe_intermediate_size=1408, shared_expert_intermediate_size=5632)),
    "qwen3": _kind("Qwen3Config", (32, 4096, 32, 22016, 151936),
        _heads(32, 128) | _QWEN_WINDOW | _ATTENTION_BIAS, qk_norm="head"),
    "qwen3_moe": _kind("Qwen3MoeConfig", (24, 2048, 32, 6144, 151936),
        _heads(4) | _WINDOW | {"use_sliding_window": False} | _ATTENTION_BIAS | _QWEN_EXPERTS
        | _experts(128, 8, moe_intermediate_size=768), qk_norm="head"),
    "deepseek_v2": _kind("DeepseekV2Config", (32, 4096, 32, 11008, 102400),
        _LATENT | _ATTENTION_BIAS | {"topk_method": "greedy"} | _experts(
            64, None, moe_intermediate_size=1407, n_shared_experts=2, first_k_dense_replace=0)),
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "gpt_oss": _kind("GptOssConfig", (36, 2880, 64, 2880, 201088),
        _heads(8, 64) | _WINDOW | {"sliding_window": 128, "sliding_window_pattern": 2,
        "attention_bias": True} | _experts(128, 4),
        biases=("ffn",), attention_sinks=True, router_bias=True),
    "glm": _kind("GlmConfig", (40, 4096, 32, 13696, 151552),
        _heads(2, 128) | {"attention_bias": True}, output_bias=False),
    "glm4": _kind("Glm4Config", (40, 4096, 32, 13696, 151552),
        _heads(2, 128) | {"attention_bias": True}, output_bias=False, num_norms=4),
    "glm4_moe": _kind("Glm4MoeConfig", (46, 4096, 96, 10944, 151552),
        _heads(8) | _ATTENTION_BIAS | {"use_qk_norm": False} | _experts(
            128, 8, moe_intermediate_size=1408, n_shared_experts=1, first_k_dense_replace=1),
        output_bias=False, qk_norm="head", router_bias=True),
    "llama4_text": _kind("Llama4TextConfig", (48, 5120, 40, 8192, 202048),
        _heads(8, 128) | _ATTENTION_BIAS | {"attention_chunk_size": 8192, "layer_types": None,
        "no_rope_layer_interval": 4, "interleave_moe_layer_step": 1,
        "intermediate_size_mlp": 16384, "n_shared_experts": 1} | _experts(16, 1)),
    "gemma": _kind("GemmaConfig", (28, 3072, 16, 24576, 256000),
        _heads(16, 256) | _ATTENTION_BIAS, tied=True),
    "gemma2": _kind("Gemma2Config", (26, 2304, 8, 9216, 256000),
        _heads(4, 256) | _ATTENTION_BIAS | _WINDOW | {"sliding_window_pattern": 2},
        tied=True, num_norms=4),
    "gemma3_text": _kind("Gemma3TextConfig", (26, 2304, 8, 9216, 262208),
        _heads(4, 256) | _ATTENTION_BIAS | _WINDOW | {"sliding_window_pattern": 6},
        tied=True, num_norms=4, qk_norm="head"),
    "ministral": _kind("MinistralConfig", _MISTRAL_SHAPE, _heads(8) | _WINDOW),
    "ministral3": _kind("Ministral3Config", (34, 4096, 32, 14336, 131072),
        _heads(8, 128) | _WINDOW | {"sliding_window": None}),
    "qwen2_vl_text": _kind("Qwen2VLTextConfig", (80, 8192, 64, 29568, 152064), _QWEN_VL,
        biases=("qkv",)),
    "qwen2_5_vl_text": _kind("Qwen2_5_VLTextConfig", (80, 8192, 64, 29568, 152064), _QWEN_VL,
        biases=("qkv",)),
    "qwen3_vl_text": _kind("Qwen3VLTextConfig", (32, 4096, 32, 22016, 151936),
        _heads(32, 128) | _ATTENTION_BIAS, qk_norm="head"),
    "qwen3_vl_moe_text": _kind("Qwen3VLMoeTextConfig", (24, 2048, 16, 5632, 151936),
        _heads(16) | _ATTENTION_BIAS | _QWEN_EXPERTS
        | _experts(60, 4, moe_intermediate_size=1408), qk_norm="head"),
    "phi3": _kind("Phi3Config", (32, 3072, 32, 8192, 32064),
        _WINDOW | {"sliding_window": None}),
    "starcoder2": _kind("Starcoder2Config", (30, 3072, 24, 12288, 49152),
        _heads(2) | _WINDOW | {"sliding_window": None, "use_bias": True},
        tied=True, gated_ffn=False, biases=("norm",)),
    "olmo2": _kind("Olmo2Config", _OLMO_SHAPE, _ATTENTION_BIAS, qk_norm="all"),
    "olmo3": _kind("Olmo3Config", _OLMO_SHAPE,
        _ATTENTION_BIAS | _WINDOW | {"sliding_window_pattern": 4}, qk_norm="all"),
    "olmoe": _kind("OlmoeConfig", (16, 2048, 16, 2048, 50304),
        _ATTENTION_BIAS | _experts(64, 8), qk_norm="all"),
    "granite": _kind("GraniteConfig", _LLAMA_SHAPE, _BIASES),
    "granitemoe": _kind("GraniteMoeConfig", _LLAMA_SHAPE, _ATTENTION_BIAS | _experts(8, 2)),
    "cohere": _kind("CohereConfig", (40, 8192, 64, 22528, 256000),
        _ATTENTION_BIAS | {"use_qk_norm": False}, tied=True, num_norms=1, qk_norm="all"),
    "cohere2": _kind("Cohere2Config", (40, 8192, 64, 22528, 256000),
        _ATTENTION_BIAS | _WINDOW | {"sliding_window_pattern": 4}, tied=True, num_norms=1),
    "stablelm": _kind("StableLmConfig", (32, 2560, 32, 6912, 50304),
        _heads(32) | {"use_qkv_bias": False}, biases=("norm",)),
    "smollm3": _kind("SmolLM3Config", (36, 2048, 16, 11008, 128256), _heads(4) | _BIASES,
        tied=True),
    "ernie4_5": _kind("Ernie4_5Config", (18, 1024, 16, 3072, 103424),
        _heads(2, 128) | {"use_bias": False}, tied=True),
    "ernie4_5_moe": _kind("Ernie4_5_MoeConfig", (28, 2560, 20, 12288, 103424),
        _heads(4) | {"use_bias": False} | _experts(
            64, 6, moe_intermediate_size=1536, n_shared_experts=2, first_k_dense_replace=1),
        tied=True, router_bias=True),
    "seed_oss": _kind("SeedOssConfig", (64, 4096, 80, 27648, 155136),
        _heads(8, 128) | {"attention_bias": True, "attention_out_bias": False, "mlp_bias": False},
        output_bias=False),
    "exaone4": _kind("Exaone4Config", (32, 4096, 32, 16384, 102400),
        _heads(32) | _WINDOW | {"sliding_window_pattern": 4}, qk_norm="head"),
    "hunyuan_v1_dense": _kind("HunYuanDenseV1Config", (32, 4096, 32, 11008, 290943),
        _ATTENTION_BIAS, qk_norm="head"),
    "minimax_m2": _kind("MiniMaxM2Config", (62, 3072, 48, 1536, 200064),
        _heads(8, 128) | _experts(256, 8), qk_norm="all", router_bias=True),
    "dots1": _kind("Dots1Config", (62, 4608, 32, 10944, 152064),
        _heads(32) | _ATTENTION_BIAS | _experts(
            None, None, moe_intermediate_size=1408, n_shared_experts=None,
            first_k_dense_replace=0), qk_norm="head", router_bias=True),
    "nemotron": _kind("NemotronConfig", (32, 6144, 48, 24576, 256000), _BIASES,
        gated_ffn=False, biases=("norm",)),
    "gpt2": ModelKind(configuration="GPT2Config", shape=(12, 768, 12, 3072, 50257),
        defaults={"intermediate_size": None, "n_positions": 1024, "tie_word_embeddings": True},
        gated_ffn=False, biases=("qkv", "output", "ffn", "norm")),
    "gpt_bigcode": ModelKind(configuration="GPTBigCodeConfig", shape=(12, 768, 12, 3072, 50257),
        defaults={"intermediate_size": None, "n_positions": 1024, "tie_word_embeddings": True,
        "multi_query": True},
        gated_ffn=False, biases=("qkv", "output", "ffn", "norm")),
    "opt": ModelKind(configuration="OPTConfig", shape=(12, 768, 12, 3072, 50272),
        defaults={"n_positions": 2048, "tie_word_embeddings": True,
        "word_embed_proj_dim": None}, further_positions=2,
        gated_ffn=False, biases=("qkv", "output", "ffn", "norm")),
    "internlm2": _kind("InternLM2Config", (32, 4096, 32, 11008, 103168), {"bias": False}),
    "deepseek": _kind("DeepseekConfig", (30, 4096, 32, 11008, 102400), _ATTENTION_BIAS | _experts(
        None, None, moe_intermediate_size=1407, n_shared_experts=None, first_k_dense_replace=0,
        moe_layer_freq=1)),
    "gpt_neox": ModelKind(configuration="GPTNeoXConfig", shape=(44, 6144, 64, 24576, 50432),
        defaults={"attention_bias": True, "tie_word_embeddings": False},
        gated_ffn=False, biases=("ffn", "norm")),
}  # fmt: skip
"""Kinds by ``model_type``."""

TEXT_KINDS: Mapping[str, str] = {
    "aya_vision": "cohere2",
    "gemma3": "gemma3_text",
    "idefics3": "llama",
    "internvl": "qwen2",
    "kimi_k25": "deepseek_v3",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "mistral3": "mistral",
    "paligemma": "gemma",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "smolvlm": "llama",
}
"""Kinds whose decoder is a part of the file, with the kind of that part if it names none.

The decoder alone is read: no tower of pictures, and no projector.
"""

OTHER_LAYERS: Mapping[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), "mamba"),
    **dict.fromkeys(("nemotron_h", "jamba", "bamba", "falcon_h1", "zamba", "zamba2"), "mamba"),
    "granitemoehybrid": "mamba",
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_moe", "kimi_linear"), "linear_attention"),
    "minimax": "linear_attention",
    **dict.fromkeys(("lfm2", "lfm2_moe"), "conv"),
    **dict.fromkeys(("recurrent_gemma", "rwkv"), "recurrent"),
}
"""Kinds with layers that are not attention and a feed-forward, and what those are called."""

OTHER_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("codegen", "gptj", "phi", "phimoe"), "a bias of the output layer"),
    **dict.fromkeys(("apertus", "falcon", "gpt_neo", "mpt", "olmo"), "norms or biases of its own"),
    **dict.fromkeys(("gemma3n", "gemma3n_text", "gemma4", "gemma4_text"), "embeddings of layers"),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), "an index of sparse attention"),
}
"""Kinds of attention and a feed-forward with parts that an architecture does not have."""
