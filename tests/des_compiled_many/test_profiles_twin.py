"""Layer times from profiles in some domains, shapes and FLOPs in others: engines are equal."""

import dataclasses

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_plans import drawn_plans, judge_of
from profiled import point
from strategies import corrections
from test_shapes_twin import jobs, mixed_worlds

from des import Parallelism, Placement, Plan, simulate
from des.compiled.many.simulation import simulate_many
from des.compiled.simulate import simulate_compiled
from des.world.kernel_figures import FITTED_KERNELS
from des.world.layer_profiles import LayerProfile, ProfiledLayer

TIMES_S = st.floats(1e-3, 10.0)
HIDDEN = (8, 512, 4096)


@st.composite
def profiles(draw):
    """Times of layers of every width that `jobs` draws, on one and on two GPUs."""
    points = [
        point(
            ProfiledLayer(kind=kind, hidden_size=hidden_size),
            (tensor, size, 16),
            (draw(TIMES_S), draw(TIMES_S), draw(TIMES_S)),
        )
        for hidden_size in HIDDEN
        for kind in ("dense", "head")
        for tensor in (1, 2)
        for size in (1, 8)
    ]
    return LayerProfile(
        name="drawn.csv",
        gpu="h100",
        points=tuple(points),
        includes_exchanges=draw(st.booleans()),
    )


@st.composite
def profiled_worlds(draw, **bounds):
    """Worlds of which some domains have measured times."""
    world, profile = draw(mixed_worlds(**bounds)), draw(profiles())
    domains = [
        dataclasses.replace(one, kernels=one.kernels or FITTED_KERNELS, profile=profile)
        if draw(st.booleans())
        else one
        for one in world.domains
    ]
    return dataclasses.replace(world, domains=tuple(domains))


@settings(max_examples=examples(30))
@given(
    world=profiled_worlds(max_domains=3), job=jobs(), found=corrections(), seed=st.integers(0, 999)
)
def test_judged_times_are_the_simulated_ones_to_the_last_bit(world, job, found, seed):
    judge = judge_of(world, job, found=found)
    plans = drawn_plans(judge, seed, 8)
    placed = [judge.plan(plans, row) for row in range(8)]
    times_s = [simulate(world, job, one, found).makespan_s for one in placed]

    assert judge.scores(plans).tolist() == times_s
    assert simulate_many([world], job, placed, found)[0].tolist() == times_s


@settings(max_examples=examples(30))
@given(data=st.data(), world=profiled_worlds(max_domains=3), job=jobs(), found=corrections())
def test_compiled_results_are_equal_with_gpus_that_share(data, world, job, found):
    shared = tuple(
        Parallelism(
            tensor=data.draw(st.sampled_from([1, 2])), data=data.draw(st.sampled_from([1, 2]))
        )
        for _ in world.domains
    )
    world = dataclasses.replace(
        world, domains=tuple(dataclasses.replace(one, num_gpus=4) for one in world.domains)
    )
    plan = Plan(placement=Placement.even(world.num_domains, job.num_layers), parallelism=shared)

    assert simulate_compiled(world, job, plan, found) == simulate(world, job, plan, found)
