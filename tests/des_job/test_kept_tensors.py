"""Kept tensors of layers with experts and latent attention, by hand."""

from dataclasses import replace

import pytest

from des import ARCHITECTURES, build_workload
from des.job.kept_tensors import is_like_gpt, kept_elements, weight_gradient_elements
from des.job.model_presets import STUDIED_MODELS
from des.job.transformer import layer_activation_bytes, layer_weight_input_bytes

TOKENS = 2 * 512


def test_the_first_presets_keep_the_published_sums():
    """Korthikanti et al., MLSys'23: 34 s b h; Qi et al., ICLR'24: 32 s b h."""
    for name in STUDIED_MODELS:
        model = ARCHITECTURES[name]
        assert is_like_gpt(model)
        assert layer_activation_bytes(model, batch_size=2, sequence=512) == (
            34 * TOKENS * model.hidden_size
        )
        assert layer_weight_input_bytes(model, batch_size=2, sequence=512) == (
            32 * TOKENS * model.hidden_size
        )


def test_a_gpt_layer_counted_by_tensors_is_the_published_sum_without_masks_of_dropout():
    gpt = ARCHITECTURES["gpt3_175b"]

    assert 2 * kept_elements(gpt) == (34 - 2) * gpt.hidden_size
    assert 2 * weight_gradient_elements(gpt) == 32 * gpt.hidden_size


def test_mixtral_by_hand():
    """h = 4096, keys and values 1024 wide; 2 of 8 experts of 14336."""
    mixtral, h, kv, ffn = ARCHITECTURES["mixtral_8x7b"], 4096, 1024, 14336

    attention = 2 * h + (h + 2 * kv) + h  # norm's input and output; queries, keys, values; sum
    assert kept_elements(mixtral) == attention + 2 * h + 2 * 8 + 2 * (2 * h + 4 * ffn)
    inputs = h + h + h + 2 * (h + ffn)  # of queries, of output, of router; of two experts
    outputs = (h + 2 * kv) + h + 8 + 2 * (2 * ffn + h)
    assert weight_gradient_elements(mixtral) == inputs + outputs
    layer = build_workload("mixtral_8x7b", sequence_length=512, microbatch_size=2).layers[7]
    assert layer.activation_bytes == 2 * TOKENS * kept_elements(mixtral)
    assert layer.weight_input_bytes == 2 * TOKENS * weight_gradient_elements(mixtral)


def test_deepseek_v3_by_hand():
    """128 heads of 192 and 128, vectors of 1536 and 512 + 64; layer 0 dense, layer 3 sparse."""
    v3, h, query, value = ARCHITECTURES["deepseek_v3"], 7168, 128 * 192, 128 * 128
    attention = 2 * h + 2 * 1536 + (512 + 64) + 512 + query + query + value + value

    assert kept_elements(v3, 0) == attention + 2 * h + 4 * 18432
    sparse = 2 * 256 + 8 * (2 * h + 4 * 2048) + 4 * 2048
    assert kept_elements(v3, 3) == attention + 2 * h + sparse
    workload = build_workload("deepseek_v3", sequence_length=512, microbatch_size=2)
    assert [workload.layers[layer].activation_bytes for layer in (1, 30)] == [
        2 * TOKENS * kept_elements(v3, layer) for layer in (0, 3)
    ]


def test_norms_and_widths_of_heads_are_counted():
    """Qwen3 0.6B: h = 1024, queries of 16 x 128 = 2048, keys of 8 x 128 = 1024, ffn 3072."""
    qwen = ARCHITECTURES["qwen3_0_6b"]
    without = replace(qwen, qk_norm=False)

    assert kept_elements(without) == 4 * 1024 + 2048 + 2 * 1024 + 2048 + 4 * 3072
    assert kept_elements(qwen) - kept_elements(without) == 2048 + 1024
    assert not is_like_gpt(without)


@pytest.mark.parametrize("model", sorted(set(ARCHITECTURES) - set(STUDIED_MODELS)))
def test_recomputation_keeps_less_in_every_model(model):
    kept = {
        how: build_workload(model, recomputation=how).layers[-1].activation_bytes
        for how in ("full", "selective", "flash", "none")
    }
    scores = 5 * ARCHITECTURES[model].num_heads * 4096 * 4096

    assert kept["full"] == 2 * 4096 * ARCHITECTURES[model].hidden_size < kept["flash"]
    assert kept["selective"] == kept["flash"] == kept["none"] - scores
