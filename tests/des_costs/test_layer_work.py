"""Work of layers: from shapes, by FLOPs, and the least of several domains."""

from dataclasses import replace

import numpy as np
import pytest
from shapes import UNIT_GPU, UNIT_KERNELS, shape_of, tiny_job
from strategies import unit_domain, unit_workload

from des import Parallelism
from des.costs.layer_times import head_seconds, layer_seconds
from des.costs.layer_work import least_work_before, work_before


def shaped_domain(**changes):
    return replace(unit_domain("a"), kernels=replace(UNIT_KERNELS, **changes))


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
