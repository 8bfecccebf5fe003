"""Pipelines over processes train a small Llama to the losses of one process, to the last bit."""

import pytest
from bound_cases import bound_plan
from reference_runs import Training, alone, launched, losses_of, streamed, train

from des import DiLoCo, Placement, StreamingDiLoCo
from scenarios.iteration.runtime_job import RUNTIME, read_runtime_job

PIPELINES = {
    "1f1b, 20 and 12 layers": bound_plan("0*20,1*12", "8x1x1"),
    "zero bubble": bound_plan("0*16,1*16", "8x1x1", schedule="zb_h1"),
    "interleaved": bound_plan("0*32", "8x1x2v2", schedule="interleaved_1f1b"),
}
SHARED = {"replicas": (Placement.parse("1*32"),), "shares": (4, 2)}
SLEPT = ("--connections", "1", "--passes", "slept", "--byte-scale", "0.001")
DILOCO = DiLoCo(steps_between=2, bits_per_value=4.0, behind_backward=False)
STREAMING = StreamingDiLoCo(
    steps_between=4, layers_per_fragment=16, overlap_steps=1, bits_per_value=32.0
)
PLANS = {
    **PIPELINES,
    "replicas": bound_plan("0*32", "8x1x1", **SHARED),
    "diloco": bound_plan("0*32", "8x1x1", synchronisation=DILOCO, **SHARED),
    "streaming": bound_plan("0*32", "8x1x1", synchronisation=STREAMING, **SHARED),
}
FLAGS = {
    **dict.fromkeys(PIPELINES, ("--receives", "first")),
    "interleaved": ("--receives", "stock"),
    "replicas": SLEPT,
    "diloco": ("--layers", "2"),
    "streaming": ("--layers", "2"),
}
STEPS = {"diloco": 4, "streaming": 6}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for the launch of each plan."""
    return {name: tmp_path_factory.mktemp("launch") for name in PLANS}


@pytest.fixture(scope="module")
def trained(folders):
    """Records of the ranks of each plan."""
    trainings = [
        Training(folders[name], launched(folders[name], plan), FLAGS[name], STEPS.get(name, 3))
        for name, plan in PLANS.items()
    ]
    return dict(zip(PLANS, train(trainings), strict=True))


@pytest.fixture(scope="module")
def losses_alone():
    """Losses of one process, of one pipeline with six microbatches."""
    return alone((6,))


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_trains_like_one_process(name, trained, losses_alone):
    """Microbatches add their gradients in one order, so even the last bits are equal."""
    assert losses_of(trained[name]) == losses_alone


def test_replicas_of_unequal_shares_train_like_one_process(trained, folders):
    """Two replicas, of 4 and 2 microbatches, sum up as one process that adds their sums.

    Passes are slept as well: none is shorter than the plan says, and bytes are padded.
    """
    records = trained["replicas"]

    assert losses_of(records) == alone((4, 2))
    job = read_runtime_job((folders["replicas"] / RUNTIME).read_text("utf-8"))
    for own in records:
        for stage, kind, _, start_s, end_s in own[1]["spans"]:
            assert end_s - start_s >= job.stages[stage].durations_s["FBIW".index(kind)]


def test_replicas_of_diloco_agree_after_an_exchange_in_4_bits(trained):
    """After every other step parameters are equal to the last bit."""
    first, other = trained["diloco"]

    assert first[-1] == other[-1]
    assert first[-2]["loss"] < first[1]["loss"]


def test_fragments_of_streaming_diloco_come_back_a_step_later_as_in_one_process(trained):
    """Layer 0 is due after step 2 of 4, layer 1 after step 4; losses are equal to the last bit."""
    losses = losses_of(trained["streaming"], steps=6)

    assert losses == streamed((4, 2), 2, steps=6, period=4, overlap=1)
    assert losses != streamed((4, 2), 2, steps=6, period=4, overlap=2)
