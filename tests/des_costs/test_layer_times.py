"""Times of layers from shapes: by hand, and their limits."""

from dataclasses import replace

import pytest
from shapes import GATED, TINY, UNIT_GPU, UNIT_KERNELS, shape_of

from des.costs.layer_products import MatrixProduct
from des.costs.layer_times import (
    layer_seconds,
    product_s,
)
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
