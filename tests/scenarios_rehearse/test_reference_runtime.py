"""Pipelines over processes train a small Llama to the losses of one process, to the last bit."""

from functools import cache

import pytest
from bound_cases import bound_plan
from reference_runs import alone, launched, losses_of, train

from des import DiLoCo, Placement
from scenarios.iteration.runtime_job import RUNTIME, read_runtime_job

alone = cache(alone)

PIPELINES = {
    "1f1b, 20 and 12 layers": bound_plan("0*20,1*12", "8x1x1"),
    "zero bubble": bound_plan("0*16,1*16", "8x1x1", schedule="zb_h1"),
    "interleaved": bound_plan("0*32", "8x1x2v2", schedule="interleaved_1f1b"),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_trains_like_one_process(name, tmp_path):
    """Microbatches add their gradients in one order, so even the last bits are equal."""
    num_ranks = launched(tmp_path, PIPELINES[name])
    receives = "stock" if name == "interleaved" else "first"

    assert losses_of(train(tmp_path, num_ranks, "--receives", receives)) == alone((6,))


def test_replicas_of_unequal_shares_train_like_one_process(tmp_path):
    """Two replicas, of 4 and 2 microbatches, sum up as one process that adds their sums.

    Passes are slept as well: none is shorter than the plan says, and bytes are padded.
    """
    plan = bound_plan("0*32", "8x1x1", replicas=(Placement.parse("1*32"),), shares=(4, 2))
    flags = ("--connections", "1", "--passes", "slept", "--byte-scale", "0.001")
    records = train(tmp_path, launched(tmp_path, plan), *flags)

    assert losses_of(records) == alone((4, 2))
    job = read_runtime_job((tmp_path / RUNTIME).read_text("utf-8"))
    for own in records:
        for stage, kind, _, start_s, end_s in own[1]["spans"]:
            assert end_s - start_s >= job.stages[stage].durations_s["FBIW".index(kind)]


def test_replicas_of_diloco_agree_after_an_exchange_in_4_bits(tmp_path):
    """After every other step parameters are equal to the last bit."""
    mode = DiLoCo(steps_between=2, bits_per_value=4.0, behind_backward=False)
    shared = {"replicas": (Placement.parse("1*32"),), "shares": (4, 2)}
    plan = bound_plan("0*32", "8x1x1", synchronisation=mode, **shared)
    first, other = train(tmp_path, launched(tmp_path, plan), "--layers", "2", steps=4)

    assert first[-1] == other[-1]
    assert first[-2]["loss"] < first[1]["loss"]
