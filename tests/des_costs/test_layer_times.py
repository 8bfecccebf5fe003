"""Times of layers from shapes: by hand, their limits, and what the fraction keeps."""

from dataclasses import replace

import numpy as np
import pytest
from shapes import GATED, TINY, UNIT_GPU, UNIT_KERNELS, shape_of, tiny_job
from strategies import unit_domain, unit_workload

from des import Parallelism
from des.costs.layer_products import MatrixProduct
from des.costs.layer_times import (
    head_seconds,
    layer_seconds,
    least_work_before,
    product_s,
    work_before,
)
from des.job.transformer import layer_flops

ALONE = {"tensor": 1, "data": 1, "exchange_s": 0.0}


def shaped_domain(**changes):
    return replace(unit_domain("a"), kernels=replace(UNIT_KERNELS, **changes))


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


def test_the_fraction_keeps_the_sums_of_flops():
    job, sums = tiny_job(), tiny_job().sums_before

    assert tuple(work_before(job, unit_domain("a"))) == (
        sums.forward_flops,
        sums.backward_flops,
        sums.input_gradient_flops,
        sums.weight_gradient_flops,
    )


def test_work_from_shapes_takes_the_layer_times_at_the_peak():
    domain = shaped_domain()
    gpu = UNIT_GPU._replace(
        peak_flops_per_s=domain.gpu_peak_flops_per_s,
        memory_bandwidth_bytes_per_s=domain.gpu_memory_bandwidth_bytes_per_s,
    )
    parallelism = Parallelism(tensor=2, data=2)
    layer = layer_seconds(shape_of(), gpu, tensor=2, data=2, exchange_s=0.0)
    head = head_seconds(shape_of(), gpu, tensor=2, data=2)
    found = work_before(tiny_job(), domain, parallelism)

    rate = 4 * domain.gpu_peak_flops_per_s
    assert found.forward[1] / rate == pytest.approx(layer.forward)
    assert found.forward[-1] / rate == pytest.approx(4 * layer.forward + head.forward)
    assert found.weight_gradient[-1] / rate == pytest.approx(
        4 * layer.weight_gradient + head.weight_gradient
    )


def test_other_numbers_of_layers_divide_the_same_time():
    whole = work_before(tiny_job(), shaped_domain())
    divided = work_before(tiny_job(num_layers=8), shaped_domain())

    assert len(divided.forward) == 9
    assert divided.backward[-1] == pytest.approx(whole.backward[-1])
    assert divided.backward[2] == pytest.approx(whole.backward[-1] / 4)


def test_no_domain_has_less_than_the_least_work():
    domains = [unit_domain("a"), shaped_domain(), shaped_domain(matmul_efficiency=0.25)]
    least = least_work_before(tiny_job(), domains)

    for domain in domains:
        for lower, own in zip(least, work_before(tiny_job(), domain), strict=True):
            assert (np.diff(lower) <= np.diff(own) * (1 + 1e-12)).all()
    assert least_work_before(tiny_job(), domains[:1]) == work_before(tiny_job(), domains[0])


def test_a_workload_without_shapes_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^domain a: layer_times must be fraction for workload "):
        work_before(unit_workload([(1.0, 2.0)], num_microbatches=1), shaped_domain())
