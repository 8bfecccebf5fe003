"""Matrix products of a layer: FLOPs against the closed form, shares against the whole."""

from dataclasses import replace

import pytest
from shapes import GATED, TINY

from des import ARCHITECTURES
from des.costs.layer_products import MatrixProduct, Spread, head_work, layer_work
from des.job.architecture import MixtureOfExperts
from des.job.transformer import head_forward_flops, layer_flops

MODELS = [TINY, GATED, *ARCHITECTURES.values()]
SIZES = {"batch_size": 2.0, "sequence": 4}


def test_a_product_by_hand():
    product = MatrixProduct(2.0, 3.0, 5.0, repeats=7.0)

    assert product.flops == 2 * 7 * 2 * 3 * 5
    assert product.moved_bytes == 2 * 7 * (2 * 5 + 5 * 3 + 2 * 3)
    assert product.of_left == MatrixProduct(2.0, 5.0, 3.0, repeats=7.0)
    assert product.of_right == MatrixProduct(5.0, 3.0, 2.0, repeats=7.0)


@pytest.mark.parametrize("layer", [0, -1])
@pytest.mark.parametrize(
    "architecture", [TINY, GATED, *ARCHITECTURES.values()], ids=lambda one: one.name
)
def test_products_have_the_flops_of_the_layer(architecture, layer):
    """Also with experts, shared or routed, and with latent attention."""
    layer %= architecture.num_layers
    work = layer_work(architecture, tensor=1, scores=True, layer=layer, **SIZES)
    expected = layer_flops(architecture, batch_size=2, sequence=4, layer=layer)

    assert sum(one.flops for one in work.weights) == pytest.approx(expected.matrix_flops, rel=1e-12)
    assert sum(one.flops for one in work.attention) == expected.attention_flops


@pytest.mark.parametrize("architecture", [TINY, GATED])
def test_gradients_have_as_many_flops_as_their_product(architecture):
    for product in layer_work(architecture, tensor=1, scores=True, **SIZES).weights:
        assert product.of_left.flops == product.of_right.flops == product.flops


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_a_tensor_group_does_the_work_of_one_gpu(tensor):
    shared = layer_work(TINY, tensor=tensor, scores=True, **SIZES)
    alone = layer_work(TINY, tensor=1, scores=True, **SIZES)

    parts, wholes = shared.weights + shared.attention, alone.weights + alone.attention
    assert [tensor * part.flops for part in parts] == [whole.flops for whole in wholes]


def test_whole_experts_do_the_work_of_cut_ones_in_larger_products():
    """Experts over 8 GPUs: 2 tensor ranks each with a half of 8 / 4, or each with 8 / 8 whole."""
    sizes = SIZES | {"tensor": 2, "scores": False, "layer": 0}
    experts = MixtureOfExperts(num_experts=8, experts_per_token=2, expert_ffn_size=16)
    architecture = replace(GATED, experts=experts)
    cut = layer_work(architecture, spread=Spread(expert=4), **sizes)
    whole = layer_work(architecture, spread=Spread(expert=8, whole_experts=True), **sizes)

    assert sum(one.flops for one in whole.weights) == sum(one.flops for one in cut.weights)
    assert whole.moved_bytes == cut.moved_bytes
    changed = [pair for pair in zip(cut.weights, whole.weights, strict=True) if len(set(pair)) > 1]
    (up, up_whole), (down, down_whole) = changed  # 2 experts a GPU in place of 1
    assert (up.repeats, down.repeats, up_whole.repeats, down_whole.repeats) == (2, 2, 1, 1)
    assert up_whole.rows == up.rows == 8 * 2 / 8 * 4
    assert (up_whole.columns, down_whole.inner) == (2 * up.columns, 2 * down.inner) == (32, 16)


def test_norms_and_residuals_are_shared_only_by_sequence_parallelism():
    replicated_bytes = 24.0 * 8 * TINY.hidden_size
    every = Spread(sequence_parallel=False)
    shared = layer_work(TINY, tensor=4, scores=True, spread=every, **SIZES)
    alone = layer_work(TINY, tensor=1, scores=True, **SIZES)
    assert layer_work(TINY, tensor=4, scores=True, **SIZES).moved_bytes == alone.moved_bytes / 4

    divided_bytes = alone.moved_bytes - replicated_bytes
    assert shared.moved_bytes == replicated_bytes + divided_bytes / 4


def test_what_is_placed_is_read_and_written_by_hand():
    """8 tokens: queries and keys of 2 + 1 heads of 4, rotated and normed; 2 copies of 8, twice."""
    normed = replace(GATED, qk_norm=True)
    sparse = replace(
        GATED, experts=MixtureOfExperts(num_experts=8, experts_per_token=2, expert_ffn_size=16)
    )

    def placed_bytes(architecture, tensor=1):
        return layer_work(architecture, tensor=tensor, scores=False, **SIZES).placed_bytes

    assert placed_bytes(TINY) == 0.0  # learned positions
    assert placed_bytes(GATED) == 8 * 3 * 4 * 4
    assert placed_bytes(normed) == 2 * placed_bytes(GATED)
    assert placed_bytes(sparse) - placed_bytes(GATED) == 8 * 2 * 8 * 2 * 4
    assert placed_bytes(sparse, tensor=2) == placed_bytes(sparse) / 2


def test_fused_attention_does_not_write_scores():
    written = layer_work(TINY, tensor=1, scores=True, **SIZES)
    fused = layer_work(TINY, tensor=1, scores=False, **SIZES)

    assert written.moved_bytes - fused.moved_bytes == 10.0 * 2 * TINY.num_heads * 4 * 4


def test_the_head_has_the_flops_of_the_closed_form():
    work = head_work(TINY, tensor=1, **SIZES)

    assert sum(one.flops for one in work.weights) == head_forward_flops(
        TINY, batch_size=2, sequence=4
    )


def test_experts_share_the_tokens_and_all_their_weights_are_read():
    """Mixtral's layer: 8 experts of which each token meets two."""
    mixtral = ARCHITECTURES["mixtral_8x7b"]
    *_, into, out_of = layer_work(mixtral, tensor=1, scores=False, **SIZES).weights

    assert into == MatrixProduct(2 * 4 * 2 / 8, 2 * 14336, 4096, 8)
    assert out_of == MatrixProduct(2 * 4 * 2 / 8, 4096, 14336, 8)


def test_what_leads_into_latent_space_is_whole_on_every_gpu():
    deepseek = ARCHITECTURES["deepseek_v3"]
    shared = layer_work(deepseek, tensor=8, scores=False, **SIZES).weights

    assert shared[0] == MatrixProduct(8.0, 1536, 7168)
    assert shared[1] == MatrixProduct(8.0, 128 * 192 / 8, 1536)
    assert shared[2] == MatrixProduct(8.0, 512 + 64, 7168)
