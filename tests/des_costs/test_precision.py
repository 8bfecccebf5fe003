"""Passes below 16 bits: products of linear layers are quicker, all else is as in BF16."""

from dataclasses import replace

import pytest
from shapes import TINY, UNIT_GPU, UNIT_KERNELS, shape_of, tiny_job

from des import ARCHITECTURES, build_workload, read_topology
from des.costs.layer_products import MatrixProduct, layer_work
from des.costs.layer_times import LowPrecision, conversion_s, layer_seconds, product_s, speed_of
from des.costs.layer_work import work_before
from des.devices.gpu_kinds import GPU_KINDS
from des.job.transformer import layer_flops

LOW = UNIT_GPU._replace(low=LowPrecision(8.0, 1.0))
"""1 FLOP and 1 byte a second; 4 FLOP a second where factors have a byte an element."""

ALONE = {"tensor": 1, "data": 1, "exchange_s": 0.0}
EAST = read_topology("east_central_west").domains[0]


def test_a_linear_product_takes_a_quarter_and_reads_half():
    linear = MatrixProduct(10.0, 10.0, 10.0)
    thin = MatrixProduct(1.0, 10.0, 1.0)

    assert product_s(linear, LOW) == 2 * 1000 / 4
    assert product_s(thin, LOW) == 1 * (1 + 10) + 2 * 10
    assert product_s(linear._replace(in_bf16=True), LOW) == product_s(linear, UNIT_GPU) == 2000


def test_inputs_and_gradients_are_read_once_and_written_twice():
    """TINY: 8 tokens times 24 + 8 + 32 + 8 outputs, of 8 + 8 + 8 + 32 inputs, at 2 + 2 bytes."""
    work = layer_work(TINY, batch_size=2, sequence=4, tensor=1, scores=False)

    assert conversion_s(work, LOW) == (4 * 8 * (8 + 8 + 8 + 32), 4 * 8 * (24 + 8 + 32 + 8))
    assert conversion_s(work, UNIT_GPU) == (0.0, 0.0)


def test_a_scale_of_the_whole_tensor_is_read_for_once_more():
    """NVFP4, 9 bits and a half of each of two copies: 2 x 2 + 2 x 9 / 16 bytes an element."""
    work = layer_work(TINY, batch_size=2, sequence=4, tensor=1, scores=False)
    gpu = UNIT_GPU._replace(low=LowPrecision(8.0, 9 / 16))

    assert conversion_s(work, gpu) == ((4 + 9 / 8) * 8 * 56, (4 + 9 / 8) * 8 * 72)


def test_with_ample_bandwidth_matrices_alone_are_quicker():
    gpu = LOW._replace(memory_bandwidth_bytes_per_s=1e30)
    flops = layer_flops(TINY, batch_size=2, sequence=4)

    found = layer_seconds(shape_of(TINY, "full"), gpu, **ALONE)

    matrices = flops.matrix_flops / 4.0
    assert found.forward == pytest.approx(matrices + flops.attention_flops)
    assert found.input_gradient == pytest.approx(matrices + 2.0 * flops.attention_flops)
    assert found.weight_gradient == pytest.approx(matrices)
    assert found.recomputation == found.forward


def test_the_router_stays_in_bf16():
    sparse = ARCHITECTURES["deepseek_v3"]
    work = layer_work(sparse, batch_size=1, sequence=64, tensor=1, scores=False, layer=10)

    columns = {one.columns for one in work.weights if one.in_bf16}
    assert columns == {float(sparse.experts.num_experts)}


@pytest.mark.parametrize("kept", ["flash", "full"])
@pytest.mark.parametrize("num_layers", [None, 2])
def test_from_flops_the_same_products_are_quicker_as_from_shapes(kept, num_layers):
    """A GPU with ample bandwidth does layers from shapes in the time of their FLOPs."""
    kernels = replace(UNIT_KERNELS, matmul_efficiency=1.0, memory_efficiency=1.0)
    domain = replace(EAST, gpu_kind="h100", gpu_memory_bandwidth_bytes_per_s=1e30)
    job = replace(tiny_job(TINY, kept, num_layers), precision="fp8")

    plain = work_before(job, domain)
    shaped = work_before(job, replace(domain, kernels=kernels))

    for one, other in zip(plain, shaped, strict=True):
        assert one == pytest.approx(other)
    assert plain.forward[-1] < job.sums_before.forward_flops[-1]


@pytest.mark.parametrize(
    ("change", "precision", "message"),
    [
        ({"gpu_kind": "a100_80"}, "fp8", "GPU a100_80: precision must be one of bf16; got fp8"),
        ({"gpu_kind": "h100"}, "nvfp4", "GPU h100: precision must be one of bf16, fp8; got nvfp4"),
        ({}, "fp8", "domain East: precision must be bf16, as its peak in others is that of a kind"),
    ],
)
@pytest.mark.parametrize("kernels", [None, UNIT_KERNELS])
def test_gpus_that_lack_a_precision_are_refused(change, precision, message, kernels):
    domain = replace(EAST, kernels=kernels, **change)

    with pytest.raises(ValueError, match=f"^{message}"):
        work_before(build_workload("llama2_7b", precision=precision), domain)


def test_an_unknown_precision_and_a_job_without_sizes_are_refused():
    with pytest.raises(ValueError, match="precision must be one of bf16, fp8, mxfp8, nvfp4; got"):
        build_workload("llama2_7b", precision="int8")
    bare = replace(build_workload("llama2_7b", precision="fp8"), shape=None)
    with pytest.raises(ValueError, match="precision must be bf16 where sizes of matrices are not"):
        work_before(bare, replace(EAST, gpu_kind="h100"))


def test_the_peak_follows_that_of_the_gpus():
    """A kind that is slowed down in BF16 is as much slower in FP8."""
    slowed = replace(EAST, gpu_kind="h100", kernels=UNIT_KERNELS, gpu_peak_flops_per_s=989.5e12 / 2)

    assert speed_of(slowed, "fp8").low == LowPrecision(pytest.approx(1979e12 / 2), 1.0)
    assert speed_of(slowed).low is None


@pytest.mark.parametrize("kind", GPU_KINDS.values(), ids=GPU_KINDS)
def test_low_peaks_are_dense_multiples(kind):
    """FP8 is twice BF16 within rounding, NVFP4 two or three times FP8, MXFP8 as FP8."""
    peaks = dict(kind.low_peaks_flops_per_s)

    if "fp8" in peaks:
        assert peaks["fp8"] == pytest.approx(2.0 * kind.peak_flops_per_s, rel=0.015)
    if "nvfp4" in peaks:
        assert peaks["nvfp4"] / peaks["fp8"] in (2.0, 3.0)
    assert peaks.get("mxfp8", peaks.get("fp8")) == peaks.get("fp8")
