"""Kinds of ``config.json``: defaults, windows, parts of other files, and published totals.

Totals are the elements of the weights of the named repositories on huggingface.co, as their
safetensors indices count them; of Llama 4 Scout those of its decoder.
"""

import pytest
from published_models import DEEPSEEK_V3, PUBLISHED, SHAPE

from des.job.hugging_face import from_config
from des.job.model_kinds import KINDS, OTHER_LAYERS, OTHER_PARTS, TEXT_KINDS
from des.job.transformer import layer_flops, layer_parameters, model_parameters

MISTRAL = {
    "model_type": "mistral",
    **dict(zip(SHAPE, (8, 4096, 32, 8, 14336, 32000), strict=True)),
}
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
KIMI = DEEPSEEK_V3 | {
    "model_type": "kimi_k2", "num_attention_heads": 64, "vocab_size": 163840,
    "n_routed_experts": 384, "first_k_dense_replace": 1,
}  # fmt: skip
UNGIVEN = {"num_key_value_heads": None}
TOTALS = [
    ("google/gemma-2b", "gemma", (18, 2048, 8, 1, 16384, 256000), {}, 2_506_172_416),
    ("google/gemma-2-9b", "gemma2", (42, 3584, 16, 8, 14336, 256000), {}, 9_241_705_984),
    ("google/gemma-3-1b-it", "gemma3_text", (26, 1152, 4, 1, 6912, 262144), {}, 999_885_952),
    ("microsoft/phi-4", "phi3", (40, 5120, 40, 10, 17920, 100352), {}, 14_659_507_200),
    ("bigcode/starcoder2-3b", "starcoder2", (30, 3072, 24, 2, 12288, 49152), {}, 3_030_371_328),
    ("allenai/OLMo-2-1124-7B", "olmo2", (32, 4096, 32, 32, 11008, 100352), {}, 7_298_617_344),
    ("allenai/OLMoE-1B-7B-0924", "olmoe", (16, 2048, 16, 16, 1024, 50304), {}, 6_919_161_856),
    ("HuggingFaceTB/SmolLM3-3B", "smollm3", (36, 2048, 16, 4, 11008, 128256), {}, 3_075_098_624),
    ("EleutherAI/gpt-neox-20b", "gpt_neox", (44, 6144, 64, 64, 24576, 50432), {}, 20_554_567_680),
    ("CohereForAI/c4ai-command-r-v01", "cohere", (40, 8192, 64, 64, 22528, 256000), {},
     34_980_831_232),
    ("openai/gpt-oss-20b", "gpt_oss", (24, 2880, 64, 8, 2880, 201088), {"num_local_experts": 32},
     20_914_757_184),
    ("openai/gpt-oss-120b", "gpt_oss", (36, 2880, 64, 8, 2880, 201088), {}, 116_829_156_672),
    ("ibm-granite/granite-3.0-8b-base", "granite", (40, 4096, 32, 8, 12800, 49155),
     {"tie_word_embeddings": True}, 8_170_848_256),
    ("THUDM/glm-4-9b-chat-hf", "glm", (40, 4096, 32, 2, 13696, 151552), {}, 9_399_951_360),
    ("THUDM/GLM-4-32B-0414", "glm4", (61, 6144, 48, 2, 23040, 151552), {"attention_bias": False},
     32_566_081_536),
    ("stabilityai/stablelm-3b-4e1t", "stablelm", (32, 2560, 32, 32, 6912, 50304), {},
     2_795_443_200),
    ("ByteDance-Seed/Seed-OSS-36B-Base", "seed_oss", (64, 5120, 80, 8, 27648, 155136), {},
     36_151_104_512),
    ("baidu/ERNIE-4.5-0.3B-PT", "ernie4_5", (18, 1024, 16, 2, 3072, 103424), {}, 360_748_032),
    ("baidu/ERNIE-4.5-21B-A3B-PT", "ernie4_5_moe", (28, 2560, 20, 4, 12288, 103424), {},
     21_825_437_888),
    ("internlm/internlm2_5-7b", "internlm2", (32, 4096, 32, 8, 14336, 92544), {}, 7_737_708_544),
    ("facebook/opt-125m", "opt", (12, 768, 12, 12, 3072, 50272), {"max_position_embeddings": 2048},
     125_239_296),
    ("bigcode/gpt_bigcode-santacoder", "gpt_bigcode", (24, 2048, 16, 16, 8192, 49280),
     {"n_positions": 2048}, 1_124_886_528),
    ("deepseek-ai/deepseek-moe-16b-base", "deepseek", (28, 2048, 16, 16, 10944, 102400),
     {"n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
      "moe_intermediate_size": 1408, "first_k_dense_replace": 1}, 16_375_728_128),
    ("meta-llama/Llama-4-Scout-17B-16E", "llama4_text", (48, 5120, 40, 8, 8192, 202048), {},
     107_769_861_120),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "shape", "further", "total"), [row[1:] for row in TOTALS], ids=[r[0] for r in TOTALS]
)
def test_a_model_has_its_published_total_of_parameters(kind, shape, further, total):
    content = {"model_type": kind, **dict(zip(SHAPE, shape, strict=True)), **further}

    assert model_parameters(from_config(content, "it")) == total


def test_kimi_k2_and_gpt2_have_their_published_totals():
    assert model_parameters(from_config(KIMI, "kimi")) == 1_026_408_232_448
    assert model_parameters(from_config(GPT2, "gpt2")) == 124_439_808


# Defaults.


def test_a_mistral_file_without_a_window_has_that_of_its_class_and_null_has_none():
    """4,096 of 32,768 tokens: an eighth of the work of attention."""
    missing, null = (from_config(MISTRAL | one, "it") for one in ({}, {"sliding_window": None}))
    looked_back, all_tokens = (
        layer_flops(one, batch_size=1, sequence=32_768).attention_flops for one in (missing, null)
    )

    assert (missing.attention_window, null.attention_window) == (4096, None)
    assert all_tokens == 8 * looked_back


def test_a_window_is_one_of_the_layers_that_layer_types_names():
    types = ["full_attention", *["sliding_attention"] * 3] * 2
    read = from_config(MISTRAL | {"layer_types": types}, "it")

    assert [read.window_of(layer) for layer in range(8)] == [None, 4096, 4096, 4096] * 2
    flops = [layer_flops(read, batch_size=1, sequence=8192, layer=layer) for layer in (0, 1)]
    assert flops[0].attention_flops == 2 * flops[1].attention_flops == 4 * 8192**2 * 4096


@pytest.mark.parametrize(
    ("kind", "further", "whole"),
    [
        ("mistral", {"layer_types": ["full_attention"] * 8}, range(8)),
        ("gemma2", {}, (1, 3, 5, 7)),
        ("gemma3_text", {}, (5,)),
        ("gemma3_text", {"sliding_window_pattern": 2}, (1, 3, 5, 7)),
        ("gpt_oss", {}, (1, 3, 5, 7)),
        ("llama4_text", {}, (3, 7)),
        ("exaone4", {"sliding_window_pattern": "LLLG"}, (3, 7)),
        ("qwen2", {}, range(8)),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 6}, range(6)),
        ("mixtral", {}, range(8)),
        ("phi3", {"sliding_window": 2047}, ()),
    ],
)
def test_layers_without_a_window_are_those_of_the_kind(kind, further, whole):
    read = from_config(MISTRAL | {"model_type": kind} | further, "it")

    assert [layer for layer in range(8) if read.window_of(layer) is None] == list(whole)


def test_null_heads_of_keys_and_values_are_as_many_as_heads_and_missing_ones_the_default():
    given = {key: value for key, value in MISTRAL.items() if key != "num_key_value_heads"}

    assert from_config(MISTRAL | UNGIVEN, "it").num_key_value_heads == 32
    assert from_config(given, "it").num_key_value_heads == 8


def test_deepseek_has_the_shared_experts_of_its_class_where_the_file_has_none():
    """Three matrices of 7168 x 2048 a shared expert: one in V3, none where the key is null."""
    v3 = {key: value for key, value in DEEPSEEK_V3.items() if key != "n_shared_experts"}
    sizes = [
        layer_parameters(from_config(v3 | further, "it"), 60)
        for further in ({"n_shared_experts": None}, {}, {"n_shared_experts": 2})
    ]

    assert sizes[1] - sizes[0] == sizes[2] - sizes[1] == 3 * 7168 * 2048
    assert from_config(v3, "it") == from_config(DEEPSEEK_V3, "it")
    v2 = DEEPSEEK_V3 | {"model_type": "deepseek_v2", "moe_intermediate_size": 1536}
    del v2["n_shared_experts"], v2["topk_method"]
    assert from_config(v2, "it").experts.shared_ffn_size == 2 * 1536


def test_mixtures_have_the_experts_of_their_class():
    read = from_config(MISTRAL | {"model_type": "mixtral"}, "it").experts

    assert (read.num_experts, read.experts_per_token, read.expert_ffn_size) == (8, 2, 14336)
    with pytest.raises(ValueError, match="num_experts_per_tok: must be given for model_type deeps"):
        from_config(
            {key: value for key, value in DEEPSEEK_V3.items() if key != "num_experts_per_tok"}
            | {"model_type": "deepseek_v2"},
            "it",
        )


def test_dense_layers_of_llama4_have_their_own_width():
    """Every second layer has experts of 8192 and one shared; others a feed-forward of 16384."""
    llama4 = from_config(
        MISTRAL | {"model_type": "llama4_text", "interleave_moe_layer_step": 2}, "it"
    )

    assert llama4.experts.dense_layers == (0, 2, 4, 6)
    assert (llama4.ffn_size, llama4.experts.expert_ffn_size) == (16384, 14336)
    assert llama4.experts.shared_ffn_size == 14336


# Parts of other files.


def test_the_decoder_of_a_model_that_sees_pictures_is_read_from_its_part():
    """LLaVA 1.5 gives the vocabulary alone; the rest is LlamaConfig's, 7B."""
    llava = {"model_type": "llava", "vision_config": {"hidden_size": 1024, "model_type": "clip"}}
    part = {"model_type": "llama", "vocab_size": 32064}
    read = from_config(llava | {"text_config": part}, "it")

    assert model_parameters(read) == 6_738_415_616 + 2 * 64 * 4096
    assert from_config(llava | {"text_config": {"vocab_size": 32064}}, "it") == read
    tied = from_config(llava | {"text_config": part, "tie_word_embeddings": True}, "it")
    assert tied.tied_embeddings


def test_qwen2_vl_files_without_a_part_are_flat():
    flat = MISTRAL | {"model_type": "qwen2_vl", "vision_config": {"depth": 32}}

    assert from_config(flat, "it").biases == ("qkv",)
    assert from_config(flat, "it") == from_config(
        {"model_type": "qwen2_vl", "text_config": MISTRAL | {"model_type": "qwen2_vl_text"}}, "it"
    )


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_the_part_of_every_kind_with_pictures_has_a_row(kind):
    assert TEXT_KINDS[kind] in KINDS
    part = MISTRAL | {"model_type": TEXT_KINDS[kind]}
    assert from_config({"model_type": kind, "text_config": MISTRAL}, "it").num_layers == 8
    assert from_config({"model_type": kind, "text_config": part}, "it").num_layers == 8


# Refusals.


@pytest.mark.parametrize("kind", OTHER_LAYERS)
def test_kinds_with_other_layers_are_refused_by_the_name_of_the_layer(kind):
    with pytest.raises(ValueError, match=f"model_type: {kind} has layers of {OTHER_LAYERS[kind]};"):
        from_config(MISTRAL | {"model_type": kind}, "it")


@pytest.mark.parametrize("kind", OTHER_PARTS)
def test_kinds_with_other_parts_are_refused_by_the_name_of_the_part(kind):
    with pytest.raises(ValueError, match=f"model_type: {kind} has {OTHER_PARTS[kind]}; such par"):
        from_config(MISTRAL | {"model_type": kind}, "it")


def test_an_embedding_of_another_width_is_refused_by_its_key():
    """OPT 350M: 512 of 1024, with two projections."""
    narrow = MISTRAL | {"model_type": "opt", "word_embed_proj_dim": 512}

    with pytest.raises(ValueError, match="word_embed_proj_dim: must be hidden_size, 4096, got 512"):
        from_config(narrow, "it")


MOST_USED = (
    *("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen2_vl"),
    *("qwen2_5_vl", "qwen3_vl", "qwen3_next", "qwen3_5", "gemma", "gemma2", "gemma3", "gemma3n"),
    *("gemma4", "phi", "phi3", "phimoe", "gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode"),
    *("opt", "falcon", "deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2"),
    *("gpt_oss", "glm4", "glm4_moe", "llama4", "mistral3", "llava", "olmo", "olmo2", "stablelm"),
    *("starcoder2", "granite", "granitemoehybrid", "cohere", "nemotron_h", "internlm2", "mpt"),
    *("minimax_m2", "smollm3", "mamba", "lfm2", "falcon_h1", "jamba", "seed_oss", "exaone4"),
)
"""Decoders of the text generators that most people download, by name of the kind."""


@pytest.mark.parametrize("kind", MOST_USED)
def test_the_families_in_most_use_are_read_or_refused_by_what_they_have(kind):
    if kind in {**KINDS, **TEXT_KINDS}:
        content = MISTRAL | {"model_type": kind, "num_experts_per_tok": 2}
        assert model_parameters(from_config(content, "it")) > 1e9
    else:
        with pytest.raises(ValueError, match=f"model_type: {kind} has .*(counted)$"):
            from_config(MISTRAL | {"model_type": kind}, "it")


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["full_attention"] * 7, "layer_types: must be one for each of 8 layers, got 7"),
        (["full_attention", "mamba"] * 4, "layer_types: must be of .*; got 'mamba' for layer 1"),
    ],
)
def test_other_types_of_layers_are_named(types, message):
    with pytest.raises(ValueError, match=message):
        from_config(MISTRAL | {"layer_types": types}, "it")


def test_a_row_leaves_published_configurations_as_they_were():
    """Every key of a published file that its row does not read says nothing of sizes."""
    for model in PUBLISHED:
        kind = KINDS[model.config["model_type"]]
        assert set(kind.defaults) & set(model.config), model.repository
