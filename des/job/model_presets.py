"""Presets of published models, one row each."""

from des.job.architecture import Architecture, LatentAttention, MixtureOfExperts

_STUDIED = (
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

_FURTHER = (
    # Llama 3, 3.1 (8B and 70B are the same shapes) and 3.2: released configurations.
    Architecture(
        name="llama3_8b", num_layers=32, hidden_size=4096, num_heads=32, num_key_value_heads=8,
        ffn_size=14336, vocabulary_size=128256, gated_ffn=True, tied_embeddings=False,
    ),
    Architecture(
        name="llama3_70b", num_layers=80, hidden_size=8192, num_heads=64, num_key_value_heads=8,
        ffn_size=28672, vocabulary_size=128256, gated_ffn=True, tied_embeddings=False,
    ),
    Architecture(
        name="llama3_2_1b", num_layers=16, hidden_size=2048, num_heads=32, num_key_value_heads=8,
        ffn_size=8192, vocabulary_size=128256, gated_ffn=True, tied_embeddings=True,
    ),
    Architecture(
        name="llama3_2_3b", num_layers=28, hidden_size=3072, num_heads=24, num_key_value_heads=8,
        ffn_size=8192, vocabulary_size=128256, gated_ffn=True, tied_embeddings=True,
    ),
    # Mistral 7B v0.1: A. Jiang et al., arXiv:2310.06825, table 1; Nemo: released configuration.
    Architecture(
        name="mistral_7b", num_layers=32, hidden_size=4096, num_heads=32, num_key_value_heads=8,
        ffn_size=14336, vocabulary_size=32000, gated_ffn=True, tied_embeddings=False,
        attention_window=4096,
    ),
    Architecture(
        name="mistral_nemo_12b", num_layers=40, hidden_size=5120, num_heads=32, head_size=128,
        num_key_value_heads=8, ffn_size=14336, vocabulary_size=131072, gated_ffn=True,
        tied_embeddings=False,
    ),
    # Qwen2.5: arXiv:2412.15115, and the released configurations.
    Architecture(
        name="qwen2_5_0_5b", num_layers=24, hidden_size=896, num_heads=14, num_key_value_heads=2,
        ffn_size=4864, vocabulary_size=151936, gated_ffn=True, tied_embeddings=True,
        biases=("qkv",),
    ),
    Architecture(
        name="qwen2_5_7b", num_layers=28, hidden_size=3584, num_heads=28, num_key_value_heads=4,
        ffn_size=18944, vocabulary_size=152064, gated_ffn=True, tied_embeddings=False,
        biases=("qkv",),
    ),
    Architecture(
        name="qwen2_5_72b", num_layers=80, hidden_size=8192, num_heads=64, num_key_value_heads=8,
        ffn_size=29568, vocabulary_size=152064, gated_ffn=True, tied_embeddings=False,
        biases=("qkv",),
    ),
    # Qwen3: arXiv:2505.09388, tables 1 and 2, and the released configurations.
    Architecture(
        name="qwen3_0_6b", num_layers=28, hidden_size=1024, num_heads=16, head_size=128,
        num_key_value_heads=8, ffn_size=3072, vocabulary_size=151936, gated_ffn=True,
        tied_embeddings=True, qk_norm=True,
    ),
    Architecture(
        name="qwen3_8b", num_layers=36, hidden_size=4096, num_heads=32, head_size=128,
        num_key_value_heads=8, ffn_size=12288, vocabulary_size=151936, gated_ffn=True,
        tied_embeddings=False, qk_norm=True,
    ),
    Architecture(
        name="qwen3_32b", num_layers=64, hidden_size=5120, num_heads=64, head_size=128,
        num_key_value_heads=8, ffn_size=25600, vocabulary_size=151936, gated_ffn=True,
        tied_embeddings=False, qk_norm=True,
    ),
    Architecture(
        name="qwen3_30b_a3b", num_layers=48, hidden_size=2048, num_heads=32, head_size=128,
        num_key_value_heads=4, ffn_size=6144, vocabulary_size=151936, gated_ffn=True,
        tied_embeddings=False, qk_norm=True,
        experts=MixtureOfExperts(num_experts=128, experts_per_token=8, expert_ffn_size=768),
    ),
    Architecture(
        name="qwen3_235b_a22b", num_layers=94, hidden_size=4096, num_heads=64, head_size=128,
        num_key_value_heads=4, ffn_size=12288, vocabulary_size=151936, gated_ffn=True,
        tied_embeddings=False, qk_norm=True,
        experts=MixtureOfExperts(num_experts=128, experts_per_token=8, expert_ffn_size=1536),
    ),
    # Mixtral 8x7B v0.1 (A. Jiang et al., arXiv:2401.04088, table 1) and 8x22B Instruct v0.1.
    Architecture(
        name="mixtral_8x7b", num_layers=32, hidden_size=4096, num_heads=32, num_key_value_heads=8,
        ffn_size=14336, vocabulary_size=32000, gated_ffn=True, tied_embeddings=False,
        experts=MixtureOfExperts(num_experts=8, experts_per_token=2, expert_ffn_size=14336),
    ),
    Architecture(
        name="mixtral_8x22b", num_layers=56, hidden_size=6144, num_heads=48, num_key_value_heads=8,
        ffn_size=16384, vocabulary_size=32768, gated_ffn=True, tied_embeddings=False,
        experts=MixtureOfExperts(num_experts=8, experts_per_token=2, expert_ffn_size=16384),
    ),
    # DeepSeek-V2: arXiv:2405.04434, section 3.1.2; V3: arXiv:2412.19437, section 4.2, without its
    # head for the token after the next.
    Architecture(
        name="deepseek_v2", num_layers=60, hidden_size=5120, num_heads=128,
        num_key_value_heads=128, ffn_size=12288, vocabulary_size=102400, gated_ffn=True,
        tied_embeddings=False,
        latent_attention=LatentAttention(
            query_rank=1536, key_value_rank=512, plain_head_size=128, rotary_head_size=64,
            value_head_size=128,
        ),
        experts=MixtureOfExperts(
            num_experts=160, experts_per_token=6, expert_ffn_size=1536, shared_ffn_size=2 * 1536,
            dense_layers=(0,),
        ),
    ),
    Architecture(
        name="deepseek_v3", num_layers=61, hidden_size=7168, num_heads=128,
        num_key_value_heads=128, ffn_size=18432, vocabulary_size=129280, gated_ffn=True,
        tied_embeddings=False,
        latent_attention=LatentAttention(
            query_rank=1536, key_value_rank=512, plain_head_size=128, rotary_head_size=64,
            value_head_size=128,
        ),
        experts=MixtureOfExperts(
            num_experts=256, experts_per_token=8, expert_ffn_size=2048, shared_ffn_size=2048,
            router_bias=True, dense_layers=(0, 1, 2),
        ),
    ),
)  # fmt: skip

ARCHITECTURES = {architecture.name: architecture for architecture in (*_STUDIED, *_FURTHER)}
"""Model presets by name."""

STUDIED_MODELS = tuple(architecture.name for architecture in _STUDIED)
"""Models of suites of worlds and of training cases, which stay as they are drawn."""

ALIASES = {"llama_70b": "llama2_70b"}
"""Other names under which users know a preset."""
