"""Files of models: our own fields in YAML, and errors that name the key, what is allowed and came.

Published configurations are read in `test_published_models`.
"""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from published_models import DEEPSEEK_V3, PUBLISHED

from des import ARCHITECTURES, build_workload
from des.job.architecture import Architecture, LatentAttention, MixtureOfExperts
from des.job.architecture_files import read_architecture
from des.job.model_kinds import KINDS, TEXT_KINDS
from des.job.models import architecture_named
from des.job.transformer import model_parameters

SHAPES = (Architecture, LatentAttention, MixtureOfExperts)
SMALL = {
    "num_layers": 3,
    "hidden_size": 64,
    "num_heads": 4,
    "num_key_value_heads": 2,
    "ffn_size": 256,
    "vocabulary_size": 1000,
    "gated_ffn": True,
    "tied_embeddings": False,
}
EXPERTS = {"num_experts": 4, "experts_per_token": 2, "expert_ffn_size": 32, "dense_layers": [0]}
LATENT = {
    "key_value_rank": 16,
    "plain_head_size": 8,
    "rotary_head_size": 4,
    "value_head_size": 8,
}
LLAMA = PUBLISHED[0].config
QWEN_EXPERTS = next(
    model.config for model in PUBLISHED if model.config["model_type"] == "qwen3_moe"
)


def written(folder: Path, content: object, suffix: str = "yaml") -> str:
    """Path of a file with the content."""
    path = folder / f"model.{suffix}"
    path.write_text(json.dumps(content) if suffix == "json" else yaml.safe_dump(content), "utf-8")
    return str(path)


def test_own_fields_by_hand(tmp_path):
    """h = 64, heads of 24 in place of 16; layer 0 is dense, two layers have 4 experts."""
    further = {"head_size": 24, "biases": ["qkv"], "qk_norm": True, "attention_window": 128}
    name = written(tmp_path, SMALL | further | {"experts": EXPERTS})
    read = read_architecture(name)

    attention = 64 * 96 + 96 + 2 * (64 * 48 + 48) + 96 * 64 + 2 * 24
    dense, sparse = 3 * 64 * 256, 4 * 3 * 64 * 32 + 64 * 4
    assert model_parameters(read) == (
        2 * 1000 * 64 + 64 + 3 * (attention + 2 * 64) + dense + 2 * sparse
    )
    assert read.experts == MixtureOfExperts(
        num_experts=4, experts_per_token=2, expert_ffn_size=32, dense_layers=(0,)
    )
    assert read.attention_window == 128
    assert build_workload(name).name == read.name == name


def test_the_file_in_the_page_on_models_can_be_read(tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs/worlds.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(# model.yaml.*?)```", page, re.DOTALL)
    path = tmp_path / "mine.yaml"
    path.write_text(block, "utf-8")

    read = read_architecture(str(path))
    assert [read.is_sparse(layer) for layer in range(3)] == [False, True, True]
    keys = {field.name for shape in SHAPES for field in fields(shape)} - {"name"}
    assert keys <= set(re.findall(r"\w+", page))


def test_latent_attention_by_hand(tmp_path):
    """Queries from the hidden state, 4 heads of 8 + 4; keys and values through 16."""
    read = read_architecture(
        written(tmp_path, SMALL | {"num_key_value_heads": 4, "latent_attention": LATENT})
    )

    attention = 64 * 48 + 64 * 20 + 16 + 16 * 4 * 16 + 32 * 64
    assert read.latent_attention == LatentAttention(**LATENT)
    assert model_parameters(read) == (2 * 1000 * 64 + 64 + 3 * (attention + 2 * 64 + 3 * 64 * 256))


def test_a_plain_block_may_leave_biases_out(tmp_path):
    plain = SMALL | {"gated_ffn": False, "num_positions": 10}
    none, norms = plain | {"biases": []}, plain | {"biases": ["norm"]}
    sizes = [
        model_parameters(read_architecture(written(tmp_path, one))) for one in (none, norms, plain)
    ]

    biases = 64 + 2 * 32 + 64 + 256 + 64  # of queries, keys, values, output and both matrices
    assert sizes[1] - sizes[0] == 3 * 2 * 64 + 64
    assert sizes[2] - sizes[1] == 3 * biases


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hidden", 64, "hidden: unknown key; did you mean 'hidden_size'?"),
        ("name", "mine", "name: unknown key; "),
        ("num_layers", 0, "architecture: num_layers must be a whole number from 1 to 100000"),
        ("num_layers", 2.5, "num_layers: Input should be a valid integer, got 2.5"),
        ("gated_ffn", 1, "gated_ffn: Input should be a valid boolean, got 1"),
        ("num_heads", 3, "num_key_value_heads must divide the 3 num_heads, got 2"),
        ("hidden_size", 66, "num_heads must divide hidden_size 66 if no head_size is given, got 4"),
        ("num_positions", -1, "num_positions must be a whole number from 1 to 1000000000, got -1"),
        ("attention_window", 0, "attention_window must be a whole number from 1 to"),
        ("biases", ["key"], "biases[0]: Input should be 'qkv', 'output', 'ffn' or 'norm'"),
        ("experts", EXPERTS | {"num_expert": 1}, "experts.num_expert: unknown key; did you mean"),
        ("experts", {"num_experts": 4}, "experts.experts_per_token: must be given"),
        ("experts", EXPERTS | {"experts_per_token": 5}, "experts: experts_per_token must be a"),
        ("experts", EXPERTS | {"dense_layers": [3]}, "dense_layers must be from 0 to 2, got 3"),
        ("experts", EXPERTS | {"dense_layers": [1, 1]}, "experts: dense_layers must be unique"),
        ("experts", EXPERTS | {"shared_scale": True}, "shared_scale needs a shared_ffn_size"),
        ("latent_attention", LATENT, "num_key_value_heads must be the 4 num_heads with latent_att"),
        ("latent_attention", LATENT | {"query_rank": 0}, "latent_attention: query_rank must be"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(key, value, message, tmp_path):
    name = written(tmp_path, SMALL | {key: value})

    with pytest.raises(ValueError, match=r"model\.yaml: ") as raised:
        read_architecture(name)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"head_size": 8}, "head_size must not be given with latent_attention, got 8"),
        ({"qk_norm": True}, "qk_norm must not be given with latent_attention, got True"),
        ({"biases": ["qkv"]}, "biases must not name qkv with latent_attention"),
    ],
)
def test_latent_attention_refuses_fields_that_it_replaces(further, message, tmp_path):
    content = SMALL | {"num_key_value_heads": 4, "latent_attention": LATENT} | further

    with pytest.raises(ValueError, match=message):
        read_architecture(written(tmp_path, content))


def test_a_missing_field_is_named(tmp_path):
    content = {key: value for key, value in SMALL.items() if key != "ffn_size"}

    with pytest.raises(ValueError, match=r"model\.yaml: ffn_size: must be given"):
        read_architecture(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LLAMA | {"model_type": "bert"},
         f"model_type: must be one of {', '.join((*KINDS, *TEXT_KINDS))}; got"),
        (LLAMA | {"model_type": ["llama"]}, "model_type: must be one of llama, "),
        ({"topology": "hierarchical"}, "model_type: must be given, one of llama, mistral, "),
        ([], "file: must be an object of keys, got list"),
        (LLAMA | {"hidden_size": "4096"}, "hidden_size: Input should be a valid integer"),
        (LLAMA | {"num_attention_heads": 33}, "num_key_value_heads must divide the 33 num_heads"),
        (LLAMA | {"model_type": "qwen2", "use_sliding_window": 1},
         "use_sliding_window: Input should be a valid boolean, got 1"),
        (QWEN_EXPERTS | {"decoder_sparse_step": 0}, "decoder_sparse_step: must be at least 1"),
        (DEEPSEEK_V3 | {"moe_layer_freq": 0}, "moe_layer_freq: must be at least 1, got 0"),
        (DEEPSEEK_V3 | {"num_experts_per_tok": 257}, "experts: experts_per_token must be a whole"),
        (DEEPSEEK_V3 | {"attention_bias": True}, "attention_bias: Input should be False, got True"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_in_one_line(content, message, tmp_path):
    with pytest.raises(ValueError, match=r"model\.json: ") as raised:
        read_architecture(written(tmp_path, content, "json"))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("model", PUBLISHED[::4], ids=lambda model: model.repository)
def test_missing_keys_are_all_named(model, tmp_path):
    gone = ("vocab_size", "hidden_size")
    content = {key: value for key, value in model.config.items() if key not in gone}
    family = model.config["model_type"]

    with pytest.raises(
        ValueError, match=f"hidden_size, vocab_size: must be given for model_type {family}"
    ):
        read_architecture(written(tmp_path, content, "json"))


def test_biases_and_sparse_layers_of_configurations(tmp_path):
    llama = LLAMA | {"attention_bias": True, "mlp_bias": True}
    qwen = QWEN_EXPERTS | {"num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [3]}
    deepseek = DEEPSEEK_V3 | {"num_hidden_layers": 8, "moe_layer_freq": 2}

    assert read_architecture(written(tmp_path, llama, "json")).biases == ("qkv", "output", "ffn")
    for content, sparse in ((qwen, [1, 5]), (deepseek, [4, 6])):
        read = read_architecture(written(tmp_path, content, "json"))
        assert [layer for layer in range(read.num_layers) if read.is_sparse(layer)] == sparse


def test_a_llama_configuration_before_grouped_queries_has_full_heads(tmp_path):
    content = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}

    assert read_architecture(written(tmp_path, content, "json")).num_key_value_heads == 32


def test_names_of_presets_come_before_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llama2_7b").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.json").write_text(json.dumps(LLAMA), "utf-8")

    assert architecture_named("llama2_7b") is ARCHITECTURES["llama2_7b"]
    assert isinstance(architecture_named("mine"), Architecture)
    with pytest.raises(ValueError, match="got 'other', which is no file or folder"):
        architecture_named("other")
    with pytest.raises(ValueError, match=r"^other.yaml: cannot be read: No such file"):
        architecture_named("other.yaml")
    (tmp_path / "weights.bin").touch()
    with pytest.raises(ValueError, match=r"weights.bin: a model must be a folder with a config"):
        architecture_named("weights.bin")
    (tmp_path / "mine/config.json").unlink()
    with pytest.raises(ValueError, match=r"mine/config.json: cannot be read: No such file"):
        architecture_named("mine")
