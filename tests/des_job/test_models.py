"""Model presets against published figures, and the workloads made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from des import ALIASES, ARCHITECTURES, Layer, Workload, build_workload
from des.job.models import architecture_named
from des.job.transformer import (
    boundary_message_bytes,
    head_forward_flops,
    layer_activation_bytes,
    layer_flops,
    layer_parameters,
    model_parameters,
)


@pytest.mark.parametrize(
    ("model", "num_parameters"),
    [
        ("llama2_7b", 6_738_415_616),  # Hugging Face: meta-llama/Llama-2-7b
        ("llama2_13b", 13_015_864_320),
        ("llama2_70b", 68_976_648_192),
        ("llama3_405b", 405_853_388_800),
    ],
)
def test_parameters_equal_the_released_weights(model, num_parameters):
    assert model_parameters(ARCHITECTURES[model]) == num_parameters
    assert sum(build_workload(model).num_parameters) == num_parameters


def test_gpt3_has_174_6_billion_parameters():
    """Brown et al., NeurIPS'20, table D.1: 174.6e9."""
    assert model_parameters(ARCHITECTURES["gpt3_175b"]) == pytest.approx(174.6e9, rel=1e-4)


def test_a_gpt_layer_by_hand():
    """12 h^2 weights + 9 h biases + 4 h of two LayerNorms, h = 12288."""
    assert layer_parameters(ARCHITECTURES["gpt3_175b"]) == 12 * 12288**2 + 13 * 12288


def test_a_llama_70b_layer_by_hand():
    """h = 8192, 8 of 64 heads hold keys and values, so these are 1024 wide; two RMSNorms."""
    h, key_value, ffn = 8192, 1024, 28672
    assert layer_parameters(ARCHITECTURES["llama2_70b"]) == (
        2 * h * h + 2 * h * key_value + 3 * h * ffn + 2 * h
    )


@given(batch_size=st.integers(1, 64), sequence=st.integers(1, 8192))
def test_gpt_forward_flops_match_the_published_formula(batch_size, sequence):
    """24 b s h^2 (1 + s / (6 h)): Narayanan et al., SC'21, a third of eq. 2 per layer pass."""
    h = 12288
    expected = 24 * batch_size * sequence * h**2 * (1 + sequence / (6 * h))

    flops = layer_flops(
        ARCHITECTURES["gpt3_175b"], batch_size=batch_size, sequence=sequence
    ).forward
    assert flops == pytest.approx(expected, rel=1e-12)


def test_iteration_flops_match_narayanan_et_al():
    """Without recomputation 72 B s l h^2 (1 + s / (6 h) + V / (12 l h)), SC'21, section 4."""
    layers, h, vocabulary, batch, s = 96, 12288, 50257, 1536, 2048
    workload = build_workload("gpt3_175b", num_microbatches=batch, sequence_length=s)

    expected = 72 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocabulary / (12 * layers * h))
    assert workload.flops_per_iteration == pytest.approx(expected, rel=1e-12)


def test_the_ends_of_the_model_carry_embedding_and_head():
    workload = build_workload("llama2_70b", microbatch_size=2, sequence_length=1024)
    llama = ARCHITECTURES["llama2_70b"]

    first, middle, last = workload.layers[0], workload.layers[1], workload.layers[-1]
    assert first.num_parameters - middle.num_parameters == 32000 * 8192
    assert last.num_parameters - middle.num_parameters == 32000 * 8192 + 8192  # and final norm
    assert first.forward_flops == middle.forward_flops
    head = 2 * 2 * 1024 * 8192 * 32000  # 2 b s h V
    assert head_forward_flops(llama, batch_size=2, sequence=1024) == head
    assert last.forward_flops - middle.forward_flops == head
    for layer in workload.layers:
        assert layer.backward_flops == 2 * layer.forward_flops
        assert layer.activation_bytes == 34 * 2 * 1024 * 8192
        assert layer.weight_input_bytes == 32 * 2 * 1024 * 8192
    attention = 4 * 2 * 1024 * 1024 * 8192  # 4 b s^2 h
    assert middle.weight_gradient_flops == middle.forward_flops - attention
    assert middle.input_gradient_flops == middle.forward_flops + attention


def test_messages_and_activations_by_hand():
    """b = 2, s = 4096, h = 8192: 2 b s h = 128 MiB, 34 b s h = 2176 MiB."""
    sizes = {"batch_size": 2, "sequence": 4096}

    assert boundary_message_bytes(**sizes, hidden_size=8192) == 128 * 1024**2
    assert layer_activation_bytes(ARCHITECTURES["llama2_70b"], **sizes) == 2176 * 1024**2


def test_recomputation_trades_memory_for_work():
    """b = 1, s = 4096, h = 8192, 64 heads: s b h = 32 Mi, 5 a s^2 b = 5 Gi."""
    unit, mebi = 4096 * 8192, 1024**2
    kept, again = {}, {}
    for how in ("none", "flash", "selective", "full"):
        layer = build_workload("llama2_70b", recomputation=how).layers[1]
        kept[how], again[how] = layer.activation_bytes, layer.recomputation_flops
        assert layer.weight_input_bytes == 32 * unit
        assert layer.backward_flops == 2 * layer.forward_flops + again[how]
        assert layer.useful_flops == 3 * layer.forward_flops

    assert kept == {
        "none": 34 * 32 * mebi + 5 * 64 * 16 * mebi,
        "flash": 34 * 32 * mebi,
        "selective": 34 * 32 * mebi,
        "full": 2 * 32 * mebi,
    }
    attention = 4 * 4096 * 4096 * 8192  # 4 b s^2 h
    assert again == {"none": 0, "flash": 0, "selective": attention, "full": layer.forward_flops}


def test_an_unknown_recomputation_is_refused():
    allowed = "recomputation must be one of flash, none, selective, full; got 'all'"
    with pytest.raises(ValueError, match=allowed):
        build_workload("llama2_7b", recomputation="all")


def test_the_default_workload_by_hand():
    workload = build_workload("llama_70b")

    assert workload.num_layers == 80
    assert workload.num_microbatches == 32
    assert workload.message_bytes == 64 * 1024**2  # 2 x 4096 x 8192
    assert workload.tokens_per_microbatch == 4096
    assert workload.tokens_per_iteration == 131_072


@given(model=st.sampled_from(sorted(ARCHITECTURES)), num_layers=st.integers(1, 200))
def test_redivision_keeps_the_totals(model, num_layers):
    own, divided = build_workload(model), build_workload(model, num_layers=num_layers)

    assert divided.num_layers == num_layers
    for field in (
        "forward_flops", "input_gradient_flops", "weight_gradient_flops", "num_parameters",
        "activation_bytes", "weight_input_bytes", "backward_flops",
    ):  # fmt: skip
        assert sum(getattr(divided, field)) == pytest.approx(sum(getattr(own, field)), rel=1e-12)
    assert divided.flops_per_iteration == pytest.approx(own.flops_per_iteration, rel=1e-12)
    assert divided.message_bytes == own.message_bytes


def test_redivision_to_96_makes_equal_layers():
    workload = build_workload("llama_70b", num_layers=96)

    assert len(set(workload.layers)) == 1
    assert workload.num_layers == 96


def test_its_own_number_of_layers_changes_nothing():
    assert build_workload("llama2_70b", num_layers=80) == build_workload("llama2_70b")


def test_an_alias_is_the_same_model():
    assert ALIASES["llama_70b"] == "llama2_70b"
    assert build_workload("llama_70b") == build_workload("llama2_70b")


def test_an_unknown_model_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"model: must be one of llama2_7b, .*llama_70b; got 'g'"):
        architecture_named("g")


@pytest.mark.parametrize(
    "field", ["num_layers", "num_microbatches", "microbatch_size", "sequence_length"]
)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, 10**9 + 1])
def test_counts_must_be_whole_and_positive(field, value):
    with pytest.raises(ValueError, match=f"{field} must be a whole number from 1 to 10+, got"):
        build_workload("llama2_7b", **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("forward_flops", 0.0, "positive and finite"),
        ("input_gradient_flops", float("nan"), "positive and finite"),
        ("weight_gradient_flops", -1.0, "finite and not negative"),
        ("weight_input_bytes", -1.0, "finite and not negative"),
        ("recomputation_flops", float("inf"), "finite and not negative"),
        ("num_parameters", -1.0, "finite and not negative"),
        ("activation_bytes", float("inf"), "finite and not negative"),
    ],
)
def test_a_layer_refuses_impossible_figures(field, value, allowed):
    figures = {
        "forward_flops": 1.0,
        "input_gradient_flops": 1.0,
        "weight_gradient_flops": 1.0,
        "num_parameters": 0.0,
        "activation_bytes": 0.0,
        "weight_input_bytes": 0.0,
    }
    with pytest.raises(ValueError, match=f"layer: {field} must be {allowed}, got {value!r}"):
        Layer(**(figures | {field: value}))


def test_a_workload_refuses_impossible_figures():
    layer = build_workload("llama2_7b").layers[0]
    figures = {
        "name": "w",
        "layers": (layer,),
        "num_microbatches": 1,
        "tokens_per_microbatch": 1,
        "message_bytes": 0.0,
    }
    with pytest.raises(ValueError, match="workload w: layers must hold at least one"):
        Workload(**(figures | {"layers": ()}))
    with pytest.raises(ValueError, match="workload w: message_bytes must be finite and not neg"):
        Workload(**(figures | {"message_bytes": -1.0}))
    with pytest.raises(ValueError, match="workload w: num_microbatches must be a whole number"):
        Workload(**(figures | {"num_microbatches": 0}))
