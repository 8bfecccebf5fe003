"""Kinds of the table, and kinds that it lacks, against transformers' own count of parameters."""

import importlib.util

import pytest

from des.job import hugging_face
from des.job.architecture import Architecture
from des.job.hugging_face import from_config
from des.job.model_kinds import KINDS, TEXT_KINDS
from des.job.transformer import model_parameters
from des.job.transformers_library import count_parameters

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="transformers is not installed; pip install -e '.[hf]'",
)

SMALL = {
    "num_hidden_layers": 6,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "intermediate_size": 320,
    "vocab_size": 160_000,
}
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
FURTHER = {
    "dots1": {"n_shared_experts": 1, "n_group": 1, "topk_group": 1},
    "gpt2": {"n_inner": 320},
    "gpt_bigcode": {"n_inner": 320},
    "opt": {"ffn_dim": 320, "word_embed_proj_dim": 256},
}
UNTIED = {"tie_word_embeddings": False}
OUTER = {
    "aya_vision": {"vision_config": {"num_attention_heads": 16}},
    "internvl": UNTIED,
    "mistral3": UNTIED,
}
"""Further keys; the classes of the last two tie embeddings by default, published weights do not."""

WITHOUT_CLASS = ("kimi_k2", "kimi_k25", "internlm2", "deepseek")
"""Kinds whose code their repositories carry; `test_model_kinds` has their published totals."""

IN_CAUSAL_MODELS = [one for one in KINDS if one not in WITHOUT_CLASS and "_vl_" not in one]


def configuration(kind: str) -> dict[str, object]:
    """A small file of the kind: eight experts, two of them for each token."""
    known = pytest.importorskip("transformers").AutoConfig.for_model(kind).to_dict()
    experts = {key: 8 for key in EXPERTS if key in known}
    experts |= {"num_experts_per_tok": 2} if experts else {}
    return {"model_type": kind, **SMALL, **experts, **FURTHER.get(kind, {})}


@pytest.mark.parametrize("kind", IN_CAUSAL_MODELS)
def test_a_kind_has_as_many_parameters_as_the_library_counts_and_the_same_windows(kind):
    transformers = pytest.importorskip("transformers")
    content = configuration(kind)
    config = transformers.AutoConfig.for_model(**content)
    read = from_config(content, "it")

    assert model_parameters(read) == count_parameters(config)
    if kind != "dots1" and getattr(config, "layer_types", None):
        whole = [one == "full_attention" for one in config.layer_types]
        assert [read.window_of(layer) is None for layer in range(6)] == whole


@pytest.mark.parametrize("kind", [one for one in TEXT_KINDS if one not in WITHOUT_CLASS])
def test_the_decoder_of_a_kind_with_pictures_has_as_many_parameters_as_the_library_counts(kind):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    part = configuration(TEXT_KINDS[kind]) | {"model_type": TEXT_KINDS[kind]}
    content = {"model_type": kind, "text_config": part, **OUTER.get(kind, {})}
    config = transformers.AutoConfig.for_model(**content)
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config)
    weights = {id(one): one for one in model.get_decoder().parameters()}
    weights |= {id(one): one for one in model.get_output_embeddings().parameters()}

    read = from_config(content, "it")
    assert model_parameters(read) == sum(one.numel() for one in weights.values())


@pytest.mark.parametrize("kind", ["arcee", "helium", "olmo2"])
def test_a_kind_that_the_table_lacks_is_read_by_the_library(kind, monkeypatch):
    """Also one of the table's that is taken out of it, which is then like another row."""
    transformers = pytest.importorskip("transformers")
    content = configuration(kind)
    monkeypatch.setattr(hugging_face, "KINDS", {"llama": KINDS["llama"]})
    read = from_config(content, "it")

    assert isinstance(read, Architecture)
    config = transformers.AutoConfig.for_model(**content)
    assert model_parameters(read) == count_parameters(config)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("no_such_kind", "transformers cannot read it: "), ("bloom", "counts [0-9,]+ parameters, wh")],
)
def test_what_the_library_cannot_read_either_is_refused(kind, message):
    with pytest.raises(ValueError, match=f"must be one of .*; got '{kind}'; .*{message}"):
        from_config({"model_type": kind, **SMALL}, "it")
