"""Architectures read from published configurations against published totals of parameters."""

import json
from dataclasses import replace
from math import ceil

import pytest
from published_models import (
    DEEPSEEK_V3_PUBLISHED,
    PUBLISHED,
    PublishedModel,
)

from des import ARCHITECTURES, build_workload
from des.job.architecture_files import read_architecture
from des.job.matrices import layer_matrices
from des.job.model_presets import STUDIED_MODELS
from des.job.transformer import layer_flops, layer_parameters, model_parameters

BY_REPOSITORY = pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.repository)
PRESETS = [model for model in PUBLISHED if model.preset]


@BY_REPOSITORY
def test_a_configuration_has_the_published_total(model: PublishedModel, tmp_path):
    """Every parameter, to the unit, from the folder and from the file."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(model.config), "utf-8")

    assert model_parameters(read_architecture(str(path))) == model.num_parameters
    assert sum(build_workload(str(tmp_path)).num_parameters) == model.num_parameters


@pytest.mark.parametrize("model", PRESETS, ids=lambda model: model.preset)
def test_a_preset_is_its_published_configuration(model: PublishedModel, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(model.config), "utf-8")
    preset, read = ARCHITECTURES[model.preset], read_architecture(str(path))

    same = {"name": preset.name, "biases": preset.biases, "head_size": preset.head_size}
    assert replace(read, **same) == preset
    assert preset.query_head_size == read.query_head_size
    assert [matrix.adds_bias for matrix in layer_matrices(preset)] == [
        matrix.adds_bias for matrix in layer_matrices(read)
    ]


def test_every_preset_but_gpt3_has_a_published_configuration():
    assert {model.preset for model in PRESETS} == set(ARCHITECTURES) - {"gpt3_175b"}
    assert set(ARCHITECTURES) > set(STUDIED_MODELS)


def test_deepseek_v3_with_its_further_parts_is_all_that_was_published():
    """684,531,386,000 elements: the main model, one more layer, and a scale for each FP8 block."""
    v3, h, vocabulary = ARCHITECTURES["deepseek_v3"], 7168, 129280
    predicting = layer_parameters(v3, 60) + 2 * h * h + 3 * h + 2 * vocabulary * h
    scales = 0
    for layer in (*range(61), 60):  # the further layer is as the last one
        for matrix in layer_matrices(v3, layer):
            if matrix.name != "router":  # not in FP8
                scales += matrix.copies * ceil(matrix.inputs / 128) * ceil(matrix.outputs / 128)

    assert model_parameters(v3) + predicting + scales == DEEPSEEK_V3_PUBLISHED


def test_flops_count_the_experts_a_token_goes_through_and_memory_all():
    """Mixtral 8x7B: attention 4096 x (4096 + 1024) x 2, router 4096 x 8, 2 of 8 experts."""
    mixtral, expert = ARCHITECTURES["mixtral_8x7b"], 3 * 4096 * 14336
    rest = 2 * 4096 * (4096 + 1024) + 4096 * 8

    flops = layer_flops(mixtral, batch_size=3, sequence=512)
    assert flops.matrix_flops == 2 * 3 * 512 * (rest + 2 * expert)
    assert flops.attention_flops == 4 * 3 * 512 * 512 * 4096
    assert layer_parameters(mixtral) == rest + 8 * expert + 2 * 4096


def test_deepseek_v3_activates_the_published_37_billion():
    """DeepSeek-AI, arXiv:2412.19437: 37B of 671B for each token, the embedding's table left out."""
    workload = build_workload("deepseek_v3", sequence_length=1)
    attention = 2 * 128 * (192 + 128)  # of a sequence of one token
    active = sum(layer.forward_flops - attention for layer in workload.layers) / 2

    assert active == pytest.approx(36.6e9, rel=2e-3)
    assert round(workload.layers[3].num_parameters / workload.layers[1].num_parameters) == 20


def test_deepseek_v3_has_three_dense_layers_of_their_own_work():
    workload = build_workload("deepseek_v3")
    dense, sparse = workload.layers[1], workload.layers[30]

    assert workload.layers[2] == dense
    assert workload.layers[3] == sparse
    attention = 187_107_328  # by hand: sum of the five projections and two norms
    assert dense.num_parameters == attention + 2 * 7168 + 3 * 7168 * 18432
    assert sparse.num_parameters == (
        attention + 2 * 7168 + 257 * 3 * 7168 * 2048 + 7168 * 256 + 256
    )
    tokens, heads = 4096, 128
    per_token = attention - 1536 - 512 + 9 * 3 * 7168 * 2048 + 7168 * 256
    scores = 2 * tokens * tokens * heads * (192 + 128)
    assert sparse.forward_flops == 2 * tokens * per_token + scores


def test_a_window_limits_the_work_of_attention():
    """Mistral 7B looks back at most 4096 tokens: beyond, work grows with the sequence."""
    mistral = ARCHITECTURES["mistral_7b"]
    short, long = (layer_flops(mistral, batch_size=1, sequence=s) for s in (4096, 16384))

    assert short.attention_flops == 4 * 4096 * 4096 * 4096
    assert long.attention_flops == 4 * short.attention_flops
