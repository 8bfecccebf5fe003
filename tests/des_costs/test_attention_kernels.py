"""Recomputation and the kernel of attention are two settings."""

from dataclasses import replace

import pytest
from shapes import TINY, UNIT_GPU, shape_of

from des import build_workload
from des.costs.layer_times import layer_seconds
from des.job.transformer import layer_flops

ALONE = {"tensor": 1, "data": 1, "exchange_s": 0.0}


@pytest.mark.parametrize("kernel", ["flash", "plain"])
def test_full_recomputation_is_the_forward_pass_once_more_with_either_kernel(kernel):
    kept = {"flash": "flash", "plain": "none"}[kernel]
    shape = replace(shape_of(TINY, "full"), attention=kernel)
    once = layer_seconds(shape_of(TINY, kept), UNIT_GPU, **ALONE)

    found = layer_seconds(shape, UNIT_GPU, **ALONE)

    assert found == once._replace(recomputation=once.forward)


def test_selective_recomputation_of_the_fused_kernel_moves_no_scores():
    """Plain attention moves 10 bytes for each of 2 x 2 x 4 x 4 scores, at 1 byte a second."""
    plain, fused = (
        layer_seconds(replace(shape_of(TINY, "selective"), attention=one), UNIT_GPU, **ALONE)
        for one in ("plain", "flash")
    )

    assert plain.recomputation - fused.recomputation == 10.0 * 2 * 2 * 4 * 4
    assert plain.forward - fused.forward == 10.0 * 2 * 2 * 4 * 4


def test_the_kernel_of_a_recomputation_goes_without_saying():
    def job(kept, kernel=None):
        return build_workload("llama2_7b", recomputation=kept, attention=kernel)

    assert job("full") == job("full", "flash")
    assert job("none") == job("none", "plain")
    assert job("selective") == job("selective", "plain")
    assert job("none", "flash") == job("flash", "flash") == job("flash")
    assert job("full", "plain") != job("full")
    assert job("full", "plain").layers == job("full").layers


@pytest.mark.parametrize(
    ("kept", "kernel", "message"),
    [
        ("full", "paged", "workload: attention must be one of flash, plain; got 'paged'"),
        ("flash", "plain", "workload: attention must be flash with recomputation flash; got 'pl"),
    ],
)
def test_other_kernels_are_refused(kept, kernel, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        build_workload("llama2_7b", recomputation=kept, attention=kernel)


def test_fused_attention_may_skip_what_a_causal_mask_hides():
    """Half of its products in all passes; plain attention does all of them."""
    half = UNIT_GPU._replace(kernels=replace(UNIT_GPU.kernels, attention_share=0.5))
    ample = {"memory_bandwidth_bytes_per_s": 1e30}
    flops = layer_flops(TINY, batch_size=2, sequence=4)

    found = layer_seconds(shape_of(TINY, "flash"), half._replace(**ample), **ALONE)

    assert found.forward == pytest.approx(flops.matrix_flops + flops.attention_flops / 2)
    assert found.input_gradient == pytest.approx(flops.matrix_flops + flops.attention_flops)
    plain = shape_of(TINY, "none")
    assert layer_seconds(plain, half, **ALONE) == layer_seconds(plain, UNIT_GPU, **ALONE)
