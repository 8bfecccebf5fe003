"""Traces with layer times from shapes and profiles: passes and the update are those of `des`."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from profiled import profile_of_shapes
from strategies import plan, world
from test_trace_against_des import assert_equal
from trace_cases import engine
from traces_and_des import PAIRS

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import case_digest
from calibration.reference.chakra_trace import build_traces
from des import Domain, Transport
from des.costs.update_times import update_s
from des.job.architecture import Architecture
from des.job.models import build_workload
from des.plan.corrections import NO_CORRECTIONS
from des.world.kernel_figures import KernelFigures

ARCHITECTURE = Architecture(
    name="small", num_layers=6, hidden_size=64, num_heads=4, num_key_value_heads=4, ffn_size=256,
    vocabulary_size=1000, gated_ffn=True, tied_embeddings=False,
)  # fmt: skip
JOB = build_workload(
    ARCHITECTURE, num_microbatches=4, microbatch_size=2, sequence_length=32, recomputation="none"
)

UNIT_KERNELS = KernelFigures(
    matmul_efficiency=0.5, memory_efficiency=0.5, layer_launch_s=0.0, iteration_overhead_s=0.0
)


def sourced(domain: Domain, source: str, kernels: KernelFigures) -> Domain:
    """Domain of 1 GFLOP/s GPUs with a source of layer times; profiles are 1.5 times slower."""
    quick = replace(domain, gpu_peak_flops_per_s=1e9, gpu_memory_bandwidth_bytes_per_s=1e9)
    if source == "fraction":
        return quick
    shaped = replace(quick, kernels=kernels)
    if source == "shapes":
        return shaped
    profile = profile_of_shapes(JOB.shape, shaped, sizes=(2,), sequences=(32,))
    slower = [replace(one, forward_s=1.5 * one.forward_s) for one in profile.points]
    return replace(shaped, profile=replace(profile, points=tuple(slower)))


@st.composite
def cases(draw: st.DrawFn) -> PlacementCase:
    """Six layers on domains in a row, of which one at least has an update."""
    sources = draw(st.permutations(["fraction", "shapes", "profile"]))
    kernels = KernelFigures(
        matmul_efficiency=0.5,
        memory_efficiency=draw(st.floats(0.1, 1.0)),
        layer_launch_s=1e-3,
        iteration_overhead_s=draw(st.floats(0.0, 2.0)),
    )
    base = world("ABC", {ends: (1e6 * rate, delay) for ends, (rate, delay) in PAIRS.items()})
    domains = [
        sourced(one, source, kernels) for one, source in zip(base.domains, sources, strict=True)
    ]
    topology = replace(base, domains=tuple(domains))
    endpoints = draw(st.sampled_from(["overlapped", "one_in_flight"]))
    return PlacementCase(
        topology=replace(topology, transport=Transport(endpoints=endpoints)),
        workload=JOB,
        plan=plan(0, 0, 1, 1, 2, 2, schedule=draw(st.sampled_from(["gpipe", "1f1b", "zb_h1"]))),
    )


@settings(max_examples=examples(15))
@given(case=cases())
def test_iterations_with_an_update_take_as_long(case: PlacementCase):
    traces = build_traces(case)

    assert update_s(case.workload, case.stages, NO_CORRECTIONS) > 0.0
    assert_equal(case, traces, engine(case, traces))


def test_no_node_is_added_where_nothing_is_updated():
    base = world("ABC", PAIRS)
    domains = tuple(sourced(one, "fraction", UNIT_KERNELS) for one in base.domains)
    topology = replace(base, domains=domains)
    case = PlacementCase(topology=topology, workload=JOB, plan=plan(0, 0, 1, 1, 2, 2))

    names = {node.name for trace in build_traces(case).traces for node in trace.nodes}
    assert "update of the weights" not in names


@pytest.mark.parametrize("source", ["shapes", "profile"])
def test_cases_of_other_layer_times_have_other_digests(source: str):
    """Stored runs of one source are never taken for those of another."""
    base = world("ABC", PAIRS)
    digests = {
        case_digest(
            PlacementCase(
                topology=replace(
                    base, domains=(sourced(base.domains[0], one, UNIT_KERNELS), *base.domains[1:])
                ),
                workload=JOB,
                plan=plan(0, 0, 1, 1, 2, 2),
            )
        )
        for one in ("fraction", source)
    }
    assert len(digests) == 2
