"""Times of layers from shapes: by hand, and their limits."""

from dataclasses import replace

import pytest
from shapes import GATED, TINY, UNIT_GPU, UNIT_KERNELS, shape_of

from des.costs.layer_products import MatrixProduct, Spread
from des.costs.layer_times import LowPrecision, layer_seconds, product_s
from des.job.architecture import MixtureOfExperts
from des.job.transformer import layer_flops

ALONE = {"tensor": 1, "data": 1, "exchange_s": 0.0}


def test_a_product_takes_its_flops_or_its_bytes():
    assert product_s(MatrixProduct(10.0, 10.0, 10.0), UNIT_GPU) == 2000.0  # 600 bytes
    assert product_s(MatrixProduct(1.0, 10.0, 1.0), UNIT_GPU) == 42.0  # 20 FLOP


def test_without_memory_traffic_times_are_flops_over_the_rate():
    """Ample bandwidth leaves the closed form of FLOPs, recomputation included."""
    gpu = UNIT_GPU._replace(memory_bandwidth_bytes_per_s=1e30)
    flops = layer_flops(TINY, batch_size=2, sequence=4)
    for kept, again in (
        ("none", 0.0),
        ("selective", flops.attention_flops),
        ("full", flops.forward),
    ):
        found = layer_seconds(shape_of(TINY, kept), gpu, **ALONE)
        assert found.forward == pytest.approx(flops.forward)
        assert found.input_gradient == pytest.approx(flops.input_gradient)
        assert found.weight_gradient == pytest.approx(flops.weight_gradient)
        assert found.recomputation == pytest.approx(again)


def test_small_layers_take_what_the_host_launches_in():
    gpu = UNIT_GPU._replace(kernels=replace(UNIT_KERNELS, layer_launch_s=1e9))
    found = layer_seconds(shape_of(TINY, "full"), gpu, tensor=2, data=1, exchange_s=5.0)

    assert found == (1e9, 1e9, 0.5e9, 1e9)


@pytest.mark.parametrize(
    ("graphs", "low", "kernels"),
    [
        ("none", False, (20 + 31 + 2 * 4, 10 + 2 * 4)),
        ("none", True, (20 + 31 + 4 * 4, 10 + 2 * 4)),
        ("partial", True, (4 * 4, 2 * 4)),
        ("full", True, (0, 0)),
    ],
)
def test_the_host_launches_a_router_and_each_expert_that_no_graph_holds(graphs, low, kernels):
    """4 of 8 experts on a GPU: 2 products each, and below 16 bits 2 conversions; 1 s a launch."""
    sparse = replace(GATED, experts=MixtureOfExperts(
        num_experts=8, experts_per_token=2, expert_ffn_size=16, dense_layers=(0,)
    ))  # fmt: skip
    gpu = UNIT_GPU._replace(
        peak_flops_per_s=1e30,
        memory_bandwidth_bytes_per_s=1e30,
        kernels=replace(UNIT_KERNELS, layer_launch_s=20.0, graphs=graphs),
        low=LowPrecision(1e30, 1.0) if low else None,
    )

    def passes_s(layer):
        return layer_seconds(shape_of(sparse), gpu, spread=Spread(expert=2), layer=layer, **ALONE)

    forward_s, weight_s = kernels
    assert passes_s(1) == pytest.approx((forward_s, forward_s, weight_s, 0.0))
    common_s = 20.0 if graphs == "none" else 0.0
    assert passes_s(0) == pytest.approx((common_s, common_s, common_s / 2, 0.0))


def test_unknown_graphs_are_refused():
    with pytest.raises(ValueError, match="graphs must be one of none, partial, full; got 'all'"):
        replace(UNIT_KERNELS, graphs="all")


def test_exchanges_are_waited_for_and_repeated_with_the_forward_pass():
    quiet = layer_seconds(shape_of(TINY, "full"), UNIT_GPU, **ALONE)
    found = layer_seconds(shape_of(TINY, "full"), UNIT_GPU, tensor=1, data=1, exchange_s=3.0)

    assert found.forward == quiet.forward + 3.0
    assert found.recomputation == quiet.recomputation + 3.0
    assert found.input_gradient == quiet.input_gradient + 3.0
    assert found.weight_gradient == quiet.weight_gradient


@pytest.mark.parametrize("architecture", [TINY, GATED])
def test_replicas_share_a_microbatch(architecture):
    """Half of the sequences each, with half the traffic but for the weights."""
    gpu = UNIT_GPU._replace(memory_bandwidth_bytes_per_s=1e30)
    whole = layer_seconds(shape_of(architecture), gpu, **ALONE)
    half = layer_seconds(shape_of(architecture), gpu, tensor=1, data=2, exchange_s=0.0)

    assert tuple(half) == pytest.approx([each / 2 for each in whole])
