"""Context and expert parallelism: both engines are equal, and laws that hold for any plan."""

import dataclasses

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW
from sparse_jobs import EXPERTS, noded_worlds, small, small_job, two_replicas
from strategies import corrections, topologies

from des import GradientExchange, simulate
from des.compiled.simulate import simulate_compiled
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import stage_times_s
from des.world.kernel_figures import KernelFigures

KERNELS = KernelFigures(
    matmul_efficiency=0.8, memory_efficiency=0.7, layer_launch_s=1e-9, iteration_overhead_s=1e-6
)


@st.composite
def cases(draw):
    """A world, a job with or without experts, and a plan of one or two replicas."""
    topology = draw(topologies(min_domains=2, max_domains=3, fully=True))
    experts = draw(st.sampled_from([EXPERTS, EXPERTS, None]))
    num_layers = draw(st.sampled_from([3, 4]))
    workload = small_job(
        small(num_layers, experts=experts),
        recomputation=draw(st.sampled_from(["none", "flash", "selective", "full"])),
        num_layers=draw(st.sampled_from([None, 6])),
    )
    plan = dataclasses.replace(
        draw(two_replicas(workload, topology.num_domains)),
        exchange=GradientExchange(overlapped=draw(st.booleans())),
    )
    world = draw(noded_worlds(topology, plan))
    kernels = [draw(st.sampled_from([None, KERNELS])) for _ in world.domains]
    domains = [
        dataclasses.replace(one, kernels=each)
        for one, each in zip(world.domains, kernels, strict=True)
    ]
    return dataclasses.replace(world, domains=tuple(domains)), workload, plan


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=cases(), found=corrections())
def test_compiled_results_are_equal(case, found):
    world, workload, plan = case

    assert simulate_compiled(world, workload, plan, found) == simulate(world, workload, plan, found)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=cases(), found=corrections())
def test_a_backward_pass_is_its_halves_and_more_load_is_never_quicker(case, found):
    world, workload, plan = case
    shared = [dataclasses.replace(one, sharding="none") for one in plan.parallelism]
    even = [dataclasses.replace(one, expert_skew=1.0) for one in shared]
    plans = [dataclasses.replace(plan, parallelism=tuple(each)) for each in (shared, even)]
    skewed_s, even_s = (stage_times_s(workload, bound_stages(world, each), found) for each in plans)

    for skewed, plain in zip(skewed_s, even_s, strict=True):
        assert skewed["B"] == pytest.approx(skewed["D"] + skewed["W"])
        assert all(skewed[kind] >= plain[kind] * (1 - 1e-12) for kind in "FBDW")
