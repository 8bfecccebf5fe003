"""Binding: plans of domains completed for a trainer, against enumeration and the simulator."""

from dataclasses import replace
from itertools import pairwise, product

import pytest
from bound_cases import bind_plan, bound_plan, job, site, sites
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_candidates import sites_of_servers
from search_cases import fits

from agents.decision.trained_workload import trained_workload
from agents.search.bind import PlanBinder
from agents.trainers.table import TRAINERS, trainer_named
from agents.trainers.trainer import base_schedule
from des import (
    DiLoCo,
    InfeasiblePlacementError,
    Parallelism,
    Placement,
    Plan,
    build_workload,
    check_memory,
    simulate,
)

BOUND = [name for name, trainer in TRAINERS.items() if not trainer.is_ideal]


def plan_of(text, **changes):
    return Plan(placement=Placement.parse(text, ("A", "B", "C")), **changes)


def layers_of_domains(plan):
    return [(run.domain, run.num_layers) for run in plan.placement.stages]


@st.composite
def plans(draw, topology):
    """A chain of some of the domains, each with a few layers of 32."""
    chain = draw(st.lists(st.sampled_from(range(topology.num_domains)), min_size=1, unique=True))
    ends = draw(st.sets(st.integers(1, 31), min_size=len(chain) - 1, max_size=len(chain) - 1))
    bounds = [0, *sorted(ends), 32]
    counts = [end - first for first, end in pairwise(bounds)]
    schedule = draw(st.sampled_from(["1f1b", "gpipe", "zb_h1_2x"]))
    return Plan(placement=Placement.contiguous(chain, counts), schedule=schedule)


@pytest.mark.parametrize("name", BOUND)
@settings(max_examples=examples(25))
@given(topology=sites_of_servers(), data=st.data())
def test_domains_keep_their_order_and_layers_and_the_time_is_that_of_the_simulator(
    name, topology, data
):
    plan, trainer = data.draw(plans(topology)), trainer_named(name)
    workload = trained_workload(
        build_workload("llama2_7b", num_microbatches=8, sequence_length=2048), trainer
    )
    binder = PlanBinder(topology=topology, workload=workload, trainer=trainer)
    try:
        bound = binder.bind(plan)
    except InfeasiblePlacementError:
        return

    check_memory(topology, workload, bound.plan)
    assert bound.step_s == simulate(topology, workload, bound.plan).makespan_s
    assert binder.bind(bound.plan) == bound
    if trainer.runs_schedule(plan.schedule):
        assert base_schedule(bound.plan.schedule) == base_schedule(plan.schedule)
    interleaves = base_schedule(bound.plan.schedule) == "interleaved_1f1b"
    if trainer.uneven_layers and not interleaves:
        assert layers_of_domains(bound.plan) == layers_of_domains(plan)


def test_no_division_of_two_sites_is_quicker():
    """All degrees and stages of two sites, each plan simulated by itself."""
    topology, workload = sites(site("A", 16), site("B", 8), site("C", 8)), job()
    plan = plan_of("A*20,B*12")
    best_s = min(
        simulate(topology, workload, each).makespan_s
        for tensor in (1, 2, 4, 8)
        for here, there in product(range(1, 16 // tensor + 1), range(1, 8 // tensor + 1))
        for each in [
            replace(
                plan,
                sends="blocking",
                parallelism=(
                    Parallelism(tensor=tensor, pipeline=here),
                    Parallelism(tensor=tensor, pipeline=there),
                    Parallelism(),
                ),
            )
        ]
        if fits(topology, workload, each)
    )

    assert bind_plan(topology, workload, plan, trainer_named("megatron")).step_s == best_s


def test_deepspeed_gets_the_even_layers_next_to_those_given():
    """Of 8 stages of 4 layers the site with 20 of 32 layers gets 5."""
    topology = sites(site("A", 64), site("B", 64), site("C", 8))

    bound = bind_plan(topology, job(), plan_of("A*21,B*11"), trainer_named("deepspeed"))

    counts = {stage.num_layers for stage in bound.plan.stages_of_replicas[0]}
    (here, _), (there, _) = layers_of_domains(bound.plan)
    assert len(counts) == 1
    assert (here, there) == (0, 1)
    assert abs(layers_of_domains(bound.plan)[0][1] - 21) <= counts.pop() / 2


def test_copies_get_equal_stages_and_share_the_step():
    """Links of 1 TB/s make the sum of gradients short beside half of the microbatches."""
    topology = sites(site("A", 16), site("B", 24), site("C", 16))
    fast = [replace(link, bandwidth_bytes_per_s=1e12) for link in topology.links]
    topology = replace(topology, links=tuple(fast))
    plan = plan_of("A*32", replicas=(Placement.parse("B*32", ("A", "B", "C")),))

    bound = bind_plan(topology, job(), plan, trainer_named("megatron"))

    one, other = bound.plan.stages_of_replicas
    assert [each.num_layers for each in one] == [each.num_layers for each in other]
    assert bound.plan.microbatches_of_replicas(32) == (16, 16)
    assert bound.step_s < bind_plan(topology, job(), plan_of("A*32"), TRAINERS["megatron"]).step_s


def test_stages_given_layer_by_layer_stay():
    bound = bind_plan(sites(), job(), plan_of("A*9+11,B*12"), trainer_named("megatron"))

    assert [each.num_layers for each in bound.plan.stages_of_replicas[0]][:2] == [9, 11]


def test_a_complete_plan_takes_on_the_habit_of_sends_alone():
    complete = replace(bound_plan(), sends="overlapped")

    bound = bind_plan(sites(), job(), complete, trainer_named("megatron"))

    assert bound.plan == bound_plan()


def test_schedules_that_are_asked_for_are_the_only_ones():
    binder = PlanBinder(
        topology=sites(),
        workload=job(),
        trainer=trainer_named("megatron"),
        schedules=("interleaved_1f1b",),
    )

    assert base_schedule(binder.bind(plan_of("A*16,B*16")).plan.schedule) == "interleaved_1f1b"
    with pytest.raises(ValueError, match="schedules must be some of 1f1b, interleaved_1f1b"):
        replace(binder, schedules=("zb_auto",)).bind(plan_of("A*16,B*16"))


def test_a_job_that_does_not_fit_says_what_is_missing():
    small = [replace(site(name), gpu_memory_bytes=6e9) for name in "ABC"]

    with pytest.raises(InfeasiblePlacementError, match=r"A\*31,B\*1 .* a GPU lacks [0-9.]+ GB"):
        bind_plan(sites(*small), job(), plan_of("A*31,B*1"), trainer_named("megatron"))


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        (plan_of("A*8,B*16,A*8"), "a domain must come once"),
        (
            plan_of(
                "A*32", replicas=(Placement.parse("1*32"),), synchronisation=DiLoCo(steps_between=9)
            ),
            "must exchange after every step",
        ),
        (replace(bound_plan(), schedule="zb_h1"), "schedules must be some of 1f1b"),
        (
            plan_of("A*32", replicas=(Placement.parse("1*32"), Placement.parse("2*32"))),
            "multiple of the 3 replicas, which do equally many; got 32",
        ),
    ],
)
def test_plans_that_cannot_be_bound_are_refused(plan, match):
    with pytest.raises(ValueError, match=match):
        bind_plan(sites(), job(), plan, trainer_named("megatron"))


def test_gradients_are_of_the_type_that_the_trainer_keeps():
    plain = job(gradient_precision="bf16")

    assert trained_workload(plain, trainer_named("megatron")) == job()
    assert trained_workload(plain, trainer_named("ideal")) is plain
