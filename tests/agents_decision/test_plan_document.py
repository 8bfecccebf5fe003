"""Plans as documents: what they say, and that they are read back to the last bit."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from bound_cases import bound_plan, job, site, sites
from hypothesis import given
from hypothesis import strategies as st
from profiled import profile_of_shapes

from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import read_document, write_document
from des import (
    Corrections,
    DecoupledDiLoCo,
    DiLoCo,
    GradientExchange,
    Parallelism,
    Placement,
    StreamingDiLoCo,
    UniformLaw,
    build_workload,
    simulate,
)
from des.job.models import architecture_named
from des.plan.transport_law import TransportLaw
from des.world.kernel_figures import FITTED_KERNELS


def bound(plan=None, **changes):
    """A plan of Megatron-LM on sites of two servers, with its simulated time."""
    topology, workload = changes.pop("topology", sites()), changes.pop("workload", job())
    plan = bound_plan() if plan is None else plan
    settings = {"trainer": "megatron", "step_s": simulate(topology, workload, plan).makespan_s}
    return BoundPlan(topology=topology, workload=workload, plan=plan, **(settings | changes))


def through_json(document):
    return json.loads(json.dumps(document, allow_nan=False))


TWO = (Placement.parse("1*32"),)
EXPERTS = {
    "workload": build_workload(
        "mixtral_8x7b",
        num_layers=8,
        num_microbatches=4,
        microbatch_size=2,
        sequence_length=512,
        gradient_precision="fp32",
    ),
    "topology": sites(*(replace(site(name), gpu_memory_bytes=1e13) for name in "ABC")),
}

PLANS = {
    "a pipeline": bound(),
    "layers of each stage": bound(bound_plan("0*9+7,1*5+11")),
    "interleaved": bound(
        bound_plan("0*8,1*8,0*8,1*8", schedule="interleaved_1f1b_2x", sends="overlapped")
    ),
    "replicas": bound(
        bound_plan(
            "0*32",
            "4x1x2",
            replicas=TWO,
            exchange=GradientExchange(bucket_bytes=25e6, sharded=True),
            parallelism=(Parallelism(tensor=4, pipeline=2, sharding="optimiser"),) * 3,
        )
    ),
    "apart": bound(
        bound_plan("0*32", replicas=TWO, synchronisation=StreamingDiLoCo(bits_per_value=8.0)),
        trainer="torchtitan",
    ),
    "learners": bound(
        bound_plan(
            "0*32",
            replicas=TWO,
            synchronisation=DecoupledDiLoCo(quorum=2, grace_steps=0.5, overlap_steps=3),
        ),
        trainer="reference",
    ),
    "without limits": bound(
        bound_plan(
            "0*32",
            replicas=TWO,
            shares=(20, 12),
            schedule="zb_h1_2x",
            exchange=GradientExchange(overlapped=False, tree=(0,)),
            synchronisation=DiLoCo(steps_between=7, outer_state="cpu"),
            activation_compression=2,
            sends="overlapped",
        ),
        trainer="reference",
        corrections=Corrections(
            wan_latency_factor=1.1,
            transport=TransportLaw(
                connections="reused",
                first_window_bytes=14600.0,
                segment_bytes=1460.0,
                start_up_round_trips=1.0,
                is_paced=False,
                efficiency=0.95,
                recovery_round_trips=0.0,
                recovery_after_products=None,
            ),
        ),
    ),
    "perfect devices": bound(
        bound_plan(parallelism=(), schedule="zb_auto", sends="overlapped"), trainer="ideal"
    ),
    "experts": bound(bound_plan("0*4,1*4", "1x2x1e2", schedule="1f1b"), **EXPERTS),
    "whole experts": bound(bound_plan("0*4,1*4", "2x2x1e4t1", schedule="1f1b"), **EXPERTS),
    "a model of one's own": bound(
        workload=build_workload(
            replace(architecture_named("llama2_7b"), name="own", ffn_size=11264),
            num_microbatches=32,
            microbatch_size=1,
            sequence_length=1024,
            recomputation="selective",
            gradient_precision="fp32",
        )
    ),
    "fp8 with full recomputation of plain attention": bound(
        topology=sites(*(replace(site(name), gpu_kind="h100") for name in "ABC")),
        workload=build_workload(
            "llama2_7b",
            sequence_length=1024,
            recomputation="full",
            attention="plain",
            precision="fp8",
            gradient_precision="fp32",
        ),
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_read_back_to_the_last_bit(name):
    found = read_document(through_json(write_document(PLANS[name])))

    assert found == PLANS[name]
    again = simulate(found.topology, found.workload, found.plan, found.corrections)
    assert again == simulate(
        PLANS[name].topology, PLANS[name].workload, PLANS[name].plan, PLANS[name].corrections
    )


def test_measured_times_of_layers_are_in_the_document():
    profiled = replace(site("A"), kernels=FITTED_KERNELS, attainable_fraction=1.0)
    shape = job().shape
    profile = profile_of_shapes(shape, profiled, tensors=(8,), sizes=(1,), sequences=(4096,))
    plan = bound(topology=sites(replace(profiled, profile=profile), site("B"), site("C")))

    document = through_json(write_document(plan))
    assert read_document(document) == plan
    assert document["profiles"]["A"]["points"][0]["layer"] == "dense"
    moved = document | {"profiles": {"Mars": document["profiles"]["A"]}}
    with pytest.raises(ValueError, match="profiles: must be of domains A, B, C; got 'Mars'"):
        read_document(moved)


def test_an_epoch_that_was_drawn_keeps_the_latencies_of_its_routes():
    law = UniformLaw(bandwidth_fluctuation=0.2, latency_jitter=0.3)
    drawn = replace(sites(), dynamics=law).draw_epoch(np.random.default_rng(3))
    assert drawn.routing_latencies_s is not None

    plan = bound(topology=drawn)
    assert read_document(through_json(write_document(plan))) == plan


@given(
    bandwidth=st.floats(1e6, 1e12),
    latency_s=st.just(0.0) | st.floats(1e-15, 1.0),
    step_s=st.floats(1e-300, 1e300),
    flops=st.floats(1e9, 1e18),
)
def test_any_floats_are_read_back_to_the_last_bit(bandwidth, latency_s, step_s, flops):
    topology = sites(*(replace(site(name), gpu_peak_flops_per_s=flops) for name in "ABC"))
    links = tuple(
        replace(link, bandwidth_bytes_per_s=bandwidth, latency_s=latency_s)
        for link in topology.links
    )
    plan = bound(topology=replace(topology, links=links), step_s=step_s)

    assert read_document(through_json(write_document(plan))) == plan


def test_a_document_says_servers_degrees_layers_and_gpus_of_each_site():
    """Site A: two servers of 8; its second stage, of 11 layers, has the 4 GPUs from the fourth."""
    plan = bound_plan("0*5+11,1*16", "4x1x2")
    first, second = write_document(bound(plan))["sites"]

    assert second["name"] == "B"
    assert first == {
        "name": "A",
        "servers": 2,
        "gpus_per_server": 8,
        "assumed": False,
        "tensor": 4,
        "data": 1,
        "pipeline": 2,
        "context": 1,
        "expert": 1,
        "microbatch_size": 1.0,
        "stages": [
            {
                "replica": 0,
                "stage": stage,
                "first_layer": first_layer,
                "num_layers": num_layers,
                "gpus": [f"0/{gpu}" for gpu in gpus],
            }
            for stage, first_layer, num_layers, gpus in (
                (0, 0, 5, range(4)),
                (1, 5, 11, range(4, 8)),
            )
        ],
    }


def test_servers_that_are_not_known_count_as_one_and_are_marked():
    topology = sites(*(site(name, 24, None) for name in "ABC"))
    document = write_document(bound(bound_plan(each="8x1x2"), topology=topology))
    found = document["sites"][1]

    assert (found["servers"], found["gpus_per_server"], found["assumed"]) == (1, 24, True)
    assert found["stages"][1]["gpus"] == [f"0/{gpu}" for gpu in range(8, 16)]


def test_a_microbatch_is_counted_as_trainers_do_on_a_data_rank():
    plan = bound(bound_plan(each="2x4x2"), workload=job(microbatch_size=8))
    document = write_document(plan)

    assert plan.microbatch_size == 2.0
    assert document["job"]["microbatch_size"] == 8
    assert [each["microbatch_size"] for each in document["sites"]] == [2.0, 2.0]


def changed(document, path, value):
    """The document with another value at a path such as ``job.model``."""
    *parents, last = path.split(".")
    place = document
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 2, "format and version must be eastwest-plan 1; got eastwest-plan 2"),
        ("step_s", "fast", "step_s: Input should be a valid number, got 'fast'"),
        ("step_s", 0.0, "bound plan: step_s must be positive and finite, got 0.0"),
        ("trainer", "nemo", "trainer: must be one of megatron"),
        ("job.model", "llama9", "model: must be one of"),
        ("job.microbatch_size", 5, "job: microbatch_size must divide the 32 sequences, got 5"),
        ("plan.pipelines.0", "A*31", "must hold one domain for each of the 32 layers"),
        ("plan.schedule", "gpipe", "--trainer megatron: schedules must be some of 1f1b"),
        ("plan.sends", "maybe", "plan: sends must be one of overlapped, blocking; got 'maybe'"),
        ("plan.synchronisation.kind", "never", "kind must be one of every_step, diloco, streaming"),
        ("plan.parallelism.A.tenso", 3, "tenso: unknown key; did you mean 'tensor'?"),
        ("sites.0.stages.0.gpus.0", "1/7", "sites: stages of A must be that of the plan"),
        ("sites.1.servers", 3, "sites: servers of B must be that of the plan, 2; got 3"),
        ("routing_latencies_s", [0.1], "must be one for each of 6 directions of links; got 1"),
        ("world.topology.domains", [], "topology: domains must hold at least one domain"),
    ],
)
def test_a_wrong_document_is_refused_by_its_field(path, value, message):
    document = changed(through_json(write_document(bound())), path, value)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_document(document)


def test_a_plan_that_does_not_fit_or_that_the_trainer_cannot_run_is_none():
    with pytest.raises(ValueError, match=r"plan: .* GB"):
        bound(bound_plan("0*16,1*16", "1x1x1"), workload=job(sequence_length=65536))
    with pytest.raises(ValueError, match="trainer deepspeed: layers must be divided evenly"):
        bound(bound_plan("0*10,1*22"), trainer="deepspeed")
