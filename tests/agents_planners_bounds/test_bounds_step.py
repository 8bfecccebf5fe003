"""Lower bound of a step: hand cases, all plans of small worlds, monotonicity, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from all_plans import shortest_steps_s
from hypothesis import given
from hypothesis import strategies as st
from limited_worlds import limited
from sharing import with_parameters
from strategies import corrections, free_world, topologies, unit_workload, workloads, world

from agents.decision.families import FAMILIES, SYNCHRONOUS
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds import family_bounds
from agents.planners.bounds.domain_sets import DomainSets
from agents.planners.bounds.family_bounds import family_lower_bound_s
from agents.planners.bounds.job_figures import JobFigures
from agents.planners.bounds.step_bound import least_bound_s, step_lower_bound_s
from des import (
    STEADY,
    Corrections,
    GradientExchange,
    Placement,
    Plan,
    Topology,
    Transport,
    Workload,
    simulate,
)
from des.plan.corrections import NO_CORRECTIONS

PRECISION = 1e-3
"""Relative distance at which a search by halves ends, twice."""

SCHEDULES = [("1f1b", "zb_h2"), ("gpipe", "greedy"), ("1f1b", "gpipe"), ("zb_h1", "zb_auto")]


def problem_of(
    topology: Topology, space: PlanSpace, corrections: Corrections = NO_CORRECTIONS
) -> WholeProblem:
    job = TrainingJob(model="llama2_7b", num_sequences=16)
    return WholeProblem(topology=topology, job=job, space=space, corrections=corrections)


def sets_of(
    topology: Topology,
    workload: Workload,
    space: PlanSpace,
    corrections: Corrections = NO_CORRECTIONS,
) -> DomainSets:
    return DomainSets(figures=JobFigures.of(problem_of(topology, space, corrections), workload))


def spread(topology: Topology, factor: float) -> Topology:
    """The same world with all bandwidths times a factor."""
    count = len(topology.links)
    return topology.scaled(np.full(count, factor), np.ones(count))


@pytest.mark.parametrize(
    ("family", "schedule", "expected"),
    [
        ("single", "1f1b", 4 * 6.0),
        ("pipeline", "1f1b", (4 + 1) * 3.0),
        ("pipeline", "zb_h2", 1.0 + 4 * 3.0),
        ("diloco", "1f1b", 2 * 6.0),
        ("streaming_diloco", "zb_h2", 2 * 6.0),
    ],
)
def test_two_equal_domains_of_free_links_by_hand(family, schedule, expected):
    """Two layers of F 1, D 1 and W 1 s in four microbatches; F and D of the second are waited for.

    With halves the second stage starts a second late, or the first ends its last D behind the last
    one of the second: 13 s, or ``1 + 4 * 2 + 1`` s, which is less.
    """
    space = PlanSpace(families=FAMILIES, schedules=(schedule,))
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=4)
    found = family_lower_bound_s(sets_of(free_world(2), workload, space), space, family)

    assert found == pytest.approx(expected, rel=PRECISION)
    assert found <= expected


@given(
    topology=topologies(min_domains=1, max_domains=3),
    workload=workloads(num_layers=3, max_microbatches=3),
    corrections=corrections(),
    schedules=st.sampled_from(SCHEDULES),
    data=st.data(),
)
def test_no_plan_of_a_small_world_is_below_the_bound(
    topology, workload, corrections, schedules, data
):
    """Neither where sites have uplinks and caps."""
    topology = replace(topology, dynamics=STEADY)
    if topology.links and data.draw(st.booleans()):
        topology = data.draw(limited(topology))
    space = PlanSpace(
        families=FAMILIES if topology.num_domains < 3 else SYNCHRONOUS,
        schedules=schedules,
        compressions=(1.0, 2.0),
        period_steps=3,
        bits=(4.0,),
    )
    sets = sets_of(topology, workload, space, corrections)
    shortest_s = shortest_steps_s(topology, workload, space, corrections)
    with pytest.MonkeyPatch.context() as patch:
        for most_in_sets in (10, 1):
            patch.setattr(family_bounds, "MOST_DOMAINS_IN_SETS", most_in_sets)
            for family, step_s in shortest_s.items():
                assert family_lower_bound_s(sets, space, family) <= step_s * (1.0 + 1e-12)


@given(
    topology=topologies(min_domains=2, max_domains=3),
    workload=workloads(num_layers=2, max_microbatches=3),
    fraction=st.floats(0.3, 1.2),
    precision=st.sampled_from(["bf16", "fp32"]),
)
def test_no_copies_are_below_the_bound_where_some_fit_that_share_the_optimiser_alone(
    topology, workload, fraction, precision
):
    """Every domain has about the memory of a copy: of a third of it more may fit than of all."""
    workload = replace(workload, gradient_precision=precision)
    whole_bytes = workload.state_bytes * sum(workload.num_parameters)
    whole_bytes += sum(workload.activation_bytes)
    domains = tuple(
        replace(domain, gpu_memory_bytes=(fraction * whole_bytes + 1.0) / domain.num_gpus)
        for domain in topology.domains
    )
    topology = replace(topology, domains=domains, dynamics=STEADY)
    space = PlanSpace(families=("replicas", "hybrid"), schedules=("1f1b",))
    sets = sets_of(topology, workload, space)
    shortest_s = shortest_steps_s(topology, workload, space, NO_CORRECTIONS)
    for family, step_s in shortest_s.items():
        assert family_lower_bound_s(sets, space, family) <= step_s * (1.0 + 1e-12)


def test_copies_that_share_the_optimiser_are_bound_by_both_halves_of_the_exchange():
    """6 s of work; half of 20 bytes of gradients, 1 s + 0.5 s, and of weights behind them.

    Each domain has room for 10 parameters of 4 + 6 bytes, not of 16.
    """
    space = PlanSpace(families=("replicas",), schedules=("1f1b",))
    workload = with_parameters(unit_workload([(1.0, 2.0)], num_microbatches=4), 10.0)
    slow = world("AB", dict.fromkeys(["AB", "BA"], (10.0, 0.5)))
    domains = tuple(replace(domain, gpu_memory_bytes=110.0) for domain in slow.domains)
    slow = replace(slow, domains=domains)
    pair = [Placement(domain_of_layer=(domain,)) for domain in range(2)]
    sharded = Plan(placement=pair[0], replicas=(pair[1],), exchange=GradientExchange(sharded=True))

    found = family_lower_bound_s(sets_of(slow, workload, space), space, "replicas")
    assert simulate(slow, workload, sharded).makespan_s == 6 + 1.5 + 1.5
    assert found == pytest.approx(9.0, rel=PRECISION)
    assert found <= 9.0


@given(topology=topologies(min_domains=2, max_domains=4), factor=st.floats(1.0, 100.0))
def test_more_bandwidth_never_raises_the_bound(topology, factor):
    space = PlanSpace(families=FAMILIES, period_steps=10)
    topology = replace(topology, dynamics=STEADY)

    slow = step_lower_bound_s(problem_of(topology, space))
    fast = step_lower_bound_s(problem_of(spread(topology, factor), space))

    assert fast.work_s == slow.work_s
    for family, step_s in fast.family_s.items():
        assert step_s <= slow.family_s[family] * (1.0 + PRECISION)


@given(topology=topologies(min_domains=1, max_domains=4))
def test_a_larger_space_never_raises_the_bound_and_work_is_below_it(topology):
    topology = replace(topology, dynamics=STEADY)
    small = step_lower_bound_s(problem_of(topology, PlanSpace(schedules=("1f1b",))))
    whole = problem_of(topology, PlanSpace(families=FAMILIES))
    large = step_lower_bound_s(whole)

    assert large.step_s == min(large.family_s.values()) <= small.step_s * (1.0 + PRECISION)
    assert least_bound_s(whole) == pytest.approx(large.step_s, rel=PRECISION)
    assert large.work_s <= large.step_s * (1.0 + 1e-8)


@pytest.mark.parametrize("num_domains", [11, 16])
def test_plans_over_many_domains_are_not_below_the_bound(num_domains):
    space = PlanSpace(schedules=("zb_h2",))
    workload = unit_workload([(1.0, 2.0)] * num_domains, num_microbatches=8, message_bytes=1e300)
    topology = free_world(num_domains)
    plan = Plan(placement=Placement.even(num_domains, num_domains), schedule="zb_h2")

    found = family_lower_bound_s(sets_of(topology, workload, space), space, "pipeline")

    assert 0.0 < found <= simulate(topology, workload, plan).makespan_s


def test_memory_binds_where_no_domain_has_room_for_the_model():
    topology = free_world(3)
    tight = [
        replace(each, gpu_memory_bytes=6e10, gpu_peak_flops_per_s=1e15) for each in topology.domains
    ]
    found = step_lower_bound_s(problem_of(replace(topology, domains=tuple(tight)), PlanSpace()))

    assert found.family_s["single"] == found.family_s["replicas"] == np.inf
    assert found.work_s <= found.family_s["pipeline"] == found.step_s < np.inf

    none = [replace(each, gpu_memory_bytes=1e9) for each in topology.domains]
    found = step_lower_bound_s(problem_of(replace(topology, domains=tuple(none)), PlanSpace()))
    assert (found.step_s, found.binds) == (np.inf, "memory")


def test_equal_domains_of_slow_links_are_bound_by_bytes_and_of_free_ones_by_work():
    space = PlanSpace(families=("pipeline",))
    free, slow = (spread(free_world(2), factor) for factor in (1.0, 1e-300))
    domains = tuple(replace(each, gpu_peak_flops_per_s=1e15) for each in free.domains)

    assert step_lower_bound_s(problem_of(replace(slow, domains=domains), space)).binds == "bytes"
    assert step_lower_bound_s(problem_of(replace(free, domains=domains), space)).binds != "bytes"


@pytest.mark.parametrize(
    ("transport", "space", "message"),
    [
        (Transport(sharing="fair"), {}, "transport must be plain"),
        (Transport(), {"schedules": ("1f1b", "interleaved_1f1b")}, "a single stage in each domain"),
        (Transport(), {"families": ("diloco",), "period_steps": 1}, "period_steps must be at"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(transport, space, message):
    topology = replace(free_world(2), transport=transport)
    with pytest.raises(ValueError, match=message):
        step_lower_bound_s(problem_of(topology, PlanSpace(**space)))


def test_a_star_of_far_replicas_is_not_below_the_bound_though_a_ring_is_far_above():
    """3 s of work; a star has two flights of 1 s, a ring of three four of them."""
    space = PlanSpace(schedules=("1f1b",))
    topology = world("ABC", dict.fromkeys(["AB", "BA", "AC", "CA", "BC", "CB"], (1e300, 1.0)))
    workload = unit_workload([(1.0, 2.0)], num_microbatches=3)
    ring, star = (
        simulate(
            topology,
            workload,
            Plan(
                placement=Placement.even(1, 1),
                replicas=tuple(Placement(domain_of_layer=(domain,)) for domain in (1, 2)),
                exchange=GradientExchange(tree=tree),
            ),
        ).makespan_s
        for tree in ((), (0, 0))
    )
    found = family_lower_bound_s(sets_of(topology, workload, space), space, "replicas")

    assert (ring, star) == (3 + 4, 3 + 2)
    assert found == pytest.approx(3 + 1, rel=PRECISION)
