"""Layer times from shapes in some domains and from FLOPs in others: engines are equal."""

import dataclasses
from typing import get_args

from examples import examples
from family_plans import families
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_plans import drawn_plans, judge_of, with_ample_memory
from strategies import corrections, topologies

from des import Parallelism, Placement, Plan, simulate
from des.compiled.many.simulation import simulate_many
from des.compiled.simulate import simulate_compiled
from des.job.architecture import Architecture
from des.job.models import build_workload
from des.plan.parallelism import Sharding
from des.world.kernel_figures import KernelFigures

FRACTIONS, TIMES_S = st.floats(0.05, 1.0), st.floats(0.0, 1.0)
KERNELS = st.builds(
    KernelFigures,
    matmul_efficiency=FRACTIONS,
    memory_efficiency=FRACTIONS,
    layer_launch_s=TIMES_S,
    iteration_overhead_s=TIMES_S,
)


@st.composite
def mixed_worlds(draw, **bounds):
    """Worlds whose domains have kernels or not."""
    world = with_ample_memory(draw(topologies(fully=True, **bounds)))
    domains = [dataclasses.replace(one, kernels=draw(st.none() | KERNELS)) for one in world.domains]
    return dataclasses.replace(world, domains=tuple(domains))


@st.composite
def jobs(draw):
    """Jobs of real architectures, small or of several thousand FLOPs a byte."""
    architecture = Architecture(
        name="drawn",
        num_layers=draw(st.integers(5, 8)),
        hidden_size=draw(st.sampled_from([8, 512, 4096])),
        num_heads=4,
        num_key_value_heads=draw(st.sampled_from([1, 4])),
        ffn_size=32,
        vocabulary_size=100,
        gated_ffn=draw(st.booleans()),
        tied_embeddings=False,
    )
    return build_workload(
        architecture,
        num_layers=draw(st.none() | st.integers(5, 8)),
        num_microbatches=draw(st.integers(1, 5)),
        microbatch_size=4,
        sequence_length=16,
        recomputation=draw(st.sampled_from(["none", "flash", "selective", "full"])),
    )


@settings(max_examples=examples(50))
@given(world=mixed_worlds(max_domains=4), job=jobs(), found=corrections(), seed=st.integers(0, 999))
def test_judged_times_are_the_simulated_ones_to_the_last_bit(world, job, found, seed):
    judge = judge_of(world, job, found=found)
    plans = drawn_plans(judge, seed, 12)
    placed = [judge.plan(plans, row) for row in range(12)]
    times_s = [simulate(world, job, one, found).makespan_s for one in placed]

    assert judge.scores(plans).tolist() == times_s
    assert simulate_many([world], job, placed, found)[0].tolist() == times_s


@settings(max_examples=examples(50))
@given(data=st.data(), world=mixed_worlds(max_domains=3), job=jobs(), found=corrections())
def test_compiled_results_are_equal_with_gpus_that_share(data, world, job, found):
    shared = tuple(
        Parallelism(
            tensor=data.draw(st.sampled_from([1, 2])),
            data=data.draw(st.sampled_from([1, 2])),
            sharding=data.draw(st.sampled_from(get_args(Sharding))),
        )
        for _ in world.domains
    )
    world = dataclasses.replace(
        world, domains=tuple(dataclasses.replace(one, num_gpus=4) for one in world.domains)
    )
    plan = Plan(placement=Placement.even(world.num_domains, job.num_layers), parallelism=shared)

    assert simulate_compiled(world, job, plan, found) == simulate(world, job, plan, found)


@settings(max_examples=examples(25), deadline=None)
@given(
    data=st.data(),
    world=mixed_worlds(min_domains=2, max_domains=4),
    job=jobs(),
    found=corrections(),
    step=st.integers(0, 1),
)
def test_replicas_update_in_the_same_time_as_in_the_readable_engine(data, world, job, found, step):
    plans = [data.draw(families(world, job)) for _ in range(3)]
    times_s = [simulate(world, job, one, found, step=step).makespan_s for one in plans]

    assert simulate_many([world], job, plans, found, steps=[step] * 3).tolist() == [times_s]
