"""Presets of published models, one row each."""

from typing import Any

from des.job.architecture import Architecture, LatentAttention, MixtureOfExperts

_Row = tuple[str, tuple[int, int, int, int, int, int], dict[str, Any]]
_SHAPE = (
    *("num_layers", "hidden_size", "num_heads", "num_key_value_heads"),
    *("ffn_size", "vocabulary_size"),
)
"""Fields of the figures of a row, in their order."""

_USUAL: dict[str, Any] = {"gated_ffn": True, "tied_embeddings": False}
_TIED: dict[str, Any] = {"tied_embeddings": True}
_QWEN2_5: dict[str, Any] = {"biases": ("qkv",)}
_QWEN3: dict[str, Any] = {"head_size": 128, "qk_norm": True}
_LATENT = LatentAttention(
    query_rank=1536,
    key_value_rank=512,
    plain_head_size=128,
    rotary_head_size=64,
    value_head_size=128,
)


def _experts(number: int, per_token: int, ffn_size: int, **further: Any) -> dict[str, Any]:
    return {
        "experts": MixtureOfExperts(
            num_experts=number, experts_per_token=per_token, expert_ffn_size=ffn_size, **further
        )
    }


_STUDIED: tuple[_Row, ...] = (
    # Llama 2: H. Touvron et al., arXiv:2307.09288, and the released configurations.
    ("llama2_7b", (32, 4096, 32, 32, 11008, 32000), {}),
    ("llama2_13b", (40, 5120, 40, 40, 13824, 32000), {}),
    ("llama2_70b", (80, 8192, 64, 8, 28672, 32000), {}),
    # GPT-3: T. Brown et al., NeurIPS'20, table 2.1; vocabulary of the released tokeniser.
    (
        "gpt3_175b",
        (96, 12288, 96, 96, 49152, 50257),
        _TIED | {"gated_ffn": False, "num_positions": 2048},
    ),
    # Llama 3: A. Dubey et al., arXiv:2407.21783, table 3.
    ("llama3_405b", (126, 16384, 128, 8, 53248, 128256), {}),
)

_FURTHER: tuple[_Row, ...] = (
    # Llama 3, 3.1 (8B and 70B are the same shapes) and 3.2: released configurations.
    ("llama3_8b", (32, 4096, 32, 8, 14336, 128256), {}),
    ("llama3_70b", (80, 8192, 64, 8, 28672, 128256), {}),
    ("llama3_2_1b", (16, 2048, 32, 8, 8192, 128256), _TIED),
    ("llama3_2_3b", (28, 3072, 24, 8, 8192, 128256), _TIED),
    # Mistral 7B v0.1: A. Jiang et al., arXiv:2310.06825, table 1; Nemo: released configuration.
    ("mistral_7b", (32, 4096, 32, 8, 14336, 32000), {"attention_window": 4096}),
    ("mistral_nemo_12b", (40, 5120, 32, 8, 14336, 131072), {"head_size": 128}),
    # Qwen2.5: arXiv:2412.15115, and the released configurations.
    ("qwen2_5_0_5b", (24, 896, 14, 2, 4864, 151936), _TIED | _QWEN2_5),
    ("qwen2_5_7b", (28, 3584, 28, 4, 18944, 152064), _QWEN2_5),
    ("qwen2_5_72b", (80, 8192, 64, 8, 29568, 152064), _QWEN2_5),
    # Qwen3: arXiv:2505.09388, tables 1 and 2, and the released configurations.
    ("qwen3_0_6b", (28, 1024, 16, 8, 3072, 151936), _TIED | _QWEN3),
    ("qwen3_8b", (36, 4096, 32, 8, 12288, 151936), _QWEN3),
    ("qwen3_32b", (64, 5120, 64, 8, 25600, 151936), _QWEN3),
    ("qwen3_30b_a3b", (48, 2048, 32, 4, 6144, 151936), _QWEN3 | _experts(128, 8, 768)),
    ("qwen3_235b_a22b", (94, 4096, 64, 4, 12288, 151936), _QWEN3 | _experts(128, 8, 1536)),
    # Mixtral 8x7B v0.1 (A. Jiang et al., arXiv:2401.04088, table 1) and 8x22B Instruct v0.1.
    ("mixtral_8x7b", (32, 4096, 32, 8, 14336, 32000), _experts(8, 2, 14336)),
    ("mixtral_8x22b", (56, 6144, 48, 8, 16384, 32768), _experts(8, 2, 16384)),
    # DeepSeek-V2: arXiv:2405.04434, section 3.1.2; V3: arXiv:2412.19437, section 4.2, without its
    # head for the token after the next.
    (
        "deepseek_v2",
        (60, 5120, 128, 128, 12288, 102400),
        {"latent_attention": _LATENT}
        | _experts(160, 6, 1536, shared_ffn_size=2 * 1536, dense_layers=(0,)),
    ),
    (
        "deepseek_v3",
        (61, 7168, 128, 128, 18432, 129280),
        {"latent_attention": _LATENT}
        | _experts(256, 8, 2048, shared_ffn_size=2048, router_bias=True, dense_layers=(0, 1, 2)),
    ),
)
"""Names, figures as `_SHAPE` names them, and the fields that are not those of `_USUAL`."""


def _architecture(name: str, shape: tuple[int, ...], further: dict[str, Any]) -> Architecture:
    figures: dict[str, Any] = dict(zip(_SHAPE, shape, strict=True))
    return Architecture(name=name, **figures, **_USUAL | further)


ARCHITECTURES = {row[0]: _architecture(*row) for row in (*_STUDIED, *_FURTHER)}
"""Model presets by name."""

STUDIED_MODELS = tuple(name for name, _, _ in _STUDIED)
"""Models of suites of worlds and of training cases, which stay as they are drawn."""

ALIASES = {"llama_70b": "llama2_70b"}
"""Other names under which users know a preset."""
