"""Published configurations and totals of parameters.

Configurations are the figures of ``config.json`` of the named repository on huggingface.co; totals
are the elements of its weights as its safetensors index counts them (half of ``total_size`` where
all are BF16). The total of DeepSeek-V3 is that of `DEEPSEEK_V3_PUBLISHED` without its further
parts, by hand.
"""

from typing import Any, NamedTuple

Config = dict[str, Any]


class PublishedModel(NamedTuple):
    """A released model; ``preset`` is its name among ours, if it is there."""

    repository: str
    config: Config
    num_parameters: int
    preset: str = ""


SHAPE = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
    "intermediate_size", "vocab_size",
)  # fmt: skip


def _config(
    family: str, shape: tuple[int, ...], *, tied: bool = False, **further: object
) -> Config:
    """Keys of a family, those of `SHAPE` in their order."""
    return {
        "model_type": family,
        **dict(zip(SHAPE, shape, strict=True)),
        "tie_word_embeddings": tied,
        "rms_norm_eps": 1e-05,  # every file says it, and it has nothing to do with sizes
        "torch_dtype": "bfloat16",
        **further,
    }


def _deepseek(family: str, **figures: object) -> Config:
    shared = {
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "moe_layer_freq": 1,
        "attention_bias": False,
        "tie_word_embeddings": False,
    }
    return {"model_type": family, **shared, **figures}


_QWEN3_EXPERTS: Config = {"head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8}
_DEEPSEEK_V2 = _deepseek(
    "deepseek_v2", num_hidden_layers=60, hidden_size=5120, num_attention_heads=128,
    intermediate_size=12288, vocab_size=102400, q_lora_rank=1536, n_routed_experts=160,
    num_experts_per_tok=6, moe_intermediate_size=1536, n_shared_experts=2,
    first_k_dense_replace=1, topk_method="group_limited_greedy",
)  # fmt: skip
_DEEPSEEK_V2_LITE = _deepseek(
    "deepseek_v2", num_hidden_layers=27, hidden_size=2048, num_attention_heads=16,
    intermediate_size=10944, vocab_size=102400, q_lora_rank=None, n_routed_experts=64,
    num_experts_per_tok=6, moe_intermediate_size=1408, n_shared_experts=2,
    first_k_dense_replace=1, topk_method="greedy",
)  # fmt: skip
DEEPSEEK_V3 = _deepseek(
    "deepseek_v3", num_hidden_layers=61, hidden_size=7168, num_attention_heads=128,
    intermediate_size=18432, vocab_size=129280, q_lora_rank=1536, n_routed_experts=256,
    num_experts_per_tok=8, moe_intermediate_size=2048, n_shared_experts=1,
    first_k_dense_replace=3, topk_method="noaux_tc", num_nextn_predict_layers=1,
)  # fmt: skip

DEEPSEEK_V3_PUBLISHED = 684_531_386_000
"""All elements of deepseek-ai/DeepSeek-V3: the model, the scales of its FP8 matrices in blocks of
128 x 128, and one layer for the token after the next with copies of embedding and head."""

PUBLISHED = (
    PublishedModel("meta-llama/Llama-2-7b-hf", _config(
        "llama", (32, 4096, 32, 32, 11008, 32000)), 6_738_415_616, "llama2_7b"),
    PublishedModel("meta-llama/Llama-2-13b-hf", _config(
        "llama", (40, 5120, 40, 40, 13824, 32000)), 13_015_864_320, "llama2_13b"),
    PublishedModel("meta-llama/Llama-2-70b-hf", _config(
        "llama", (80, 8192, 64, 8, 28672, 32000)), 68_976_648_192, "llama2_70b"),
    PublishedModel("meta-llama/Meta-Llama-3-8B", _config(
        "llama", (32, 4096, 32, 8, 14336, 128256)), 8_030_261_248, "llama3_8b"),
    PublishedModel("meta-llama/Meta-Llama-3-70B", _config(
        "llama", (80, 8192, 64, 8, 28672, 128256)), 70_553_706_496, "llama3_70b"),
    PublishedModel("meta-llama/Llama-3.1-405B", _config(
        "llama", (126, 16384, 128, 8, 53248, 128256)), 405_853_388_800, "llama3_405b"),
    PublishedModel("meta-llama/Llama-3.2-1B", _config(
        "llama", (16, 2048, 32, 8, 8192, 128256), tied=True, head_dim=64),
        1_235_814_400, "llama3_2_1b"),
    PublishedModel("meta-llama/Llama-3.2-3B", _config(
        "llama", (28, 3072, 24, 8, 8192, 128256), tied=True, head_dim=128),
        3_212_749_824, "llama3_2_3b"),
    PublishedModel("mistralai/Mistral-7B-v0.1", _config(
        "mistral", (32, 4096, 32, 8, 14336, 32000), sliding_window=4096),
        7_241_732_096, "mistral_7b"),
    PublishedModel("mistralai/Mistral-7B-v0.3", _config(
        "mistral", (32, 4096, 32, 8, 14336, 32768), sliding_window=None), 7_248_023_552),
    PublishedModel("mistralai/Mistral-Nemo-Base-2407", _config(
        "mistral", (40, 5120, 32, 8, 14336, 131072), head_dim=128, sliding_window=None),
        12_247_782_400, "mistral_nemo_12b"),
    PublishedModel("Qwen/Qwen2.5-0.5B", _config(
        "qwen2", (24, 896, 14, 2, 4864, 151936), tied=True, use_sliding_window=False),
        494_032_768, "qwen2_5_0_5b"),
    PublishedModel("Qwen/Qwen2.5-7B", _config(
        "qwen2", (28, 3584, 28, 4, 18944, 152064)), 7_615_616_512, "qwen2_5_7b"),
    PublishedModel("Qwen/Qwen2.5-14B", _config(
        "qwen2", (48, 5120, 40, 8, 13824, 152064)), 14_770_033_664),
    PublishedModel("Qwen/Qwen2.5-72B", _config(
        "qwen2", (80, 8192, 64, 8, 29568, 152064)), 72_706_203_648, "qwen2_5_72b"),
    PublishedModel("Qwen/Qwen3-0.6B", _config(
        "qwen3", (28, 1024, 16, 8, 3072, 151936), tied=True, head_dim=128, attention_bias=False),
        596_049_920, "qwen3_0_6b"),
    PublishedModel("Qwen/Qwen3-8B", _config(
        "qwen3", (36, 4096, 32, 8, 12288, 151936), head_dim=128), 8_190_735_360, "qwen3_8b"),
    PublishedModel("Qwen/Qwen3-32B", _config(
        "qwen3", (64, 5120, 64, 8, 25600, 151936), head_dim=128), 32_762_123_264, "qwen3_32b"),
    PublishedModel("Qwen/Qwen3-30B-A3B", _config(
        "qwen3_moe", (48, 2048, 32, 4, 6144, 151936), moe_intermediate_size=768,
        decoder_sparse_step=1, mlp_only_layers=[], **_QWEN3_EXPERTS),
        30_532_122_624, "qwen3_30b_a3b"),
    PublishedModel("Qwen/Qwen3-235B-A22B", _config(
        "qwen3_moe", (94, 4096, 64, 4, 12288, 151936), moe_intermediate_size=1536,
        decoder_sparse_step=1, mlp_only_layers=[], **_QWEN3_EXPERTS),
        235_093_634_560, "qwen3_235b_a22b"),
    PublishedModel("Qwen/Qwen1.5-MoE-A2.7B", _config(
        "qwen2_moe", (24, 2048, 16, 16, 5632, 151936), num_experts=60, num_experts_per_tok=4,
        moe_intermediate_size=1408, shared_expert_intermediate_size=5632, decoder_sparse_step=1),
        14_315_784_192),
    PublishedModel("mistralai/Mixtral-8x7B-v0.1", _config(
        "mixtral", (32, 4096, 32, 8, 14336, 32000), num_local_experts=8, num_experts_per_tok=2,
        sliding_window=None), 46_702_792_704, "mixtral_8x7b"),
    PublishedModel("mistralai/Mixtral-8x22B-Instruct-v0.1", _config(
        "mixtral", (56, 6144, 48, 8, 16384, 32768), num_local_experts=8, num_experts_per_tok=2),
        140_630_071_296, "mixtral_8x22b"),
    PublishedModel("mistral-community/Mixtral-8x22B-v0.1", _config(
        "mixtral", (56, 6144, 48, 8, 16384, 32000), num_local_experts=8, num_experts_per_tok=2),
        140_620_634_112),
    PublishedModel("deepseek-ai/DeepSeek-V2-Lite", _DEEPSEEK_V2_LITE, 15_706_484_224),
    PublishedModel("deepseek-ai/DeepSeek-V2", _DEEPSEEK_V2, 235_741_434_880, "deepseek_v2"),
    PublishedModel("deepseek-ai/DeepSeek-V3", DEEPSEEK_V3, 671_026_419_200, "deepseek_v3"),
)  # fmt: skip
