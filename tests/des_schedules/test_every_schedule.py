"""Properties of every schedule, on any network and in any memory."""

import dataclasses
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from sending import transports
from strategies import free_world, plan, topologies, unit_domain, workloads, world
from strategies import unit_workload as units

from agents.decision.problem import PlanningProblem
from agents.flat.task import PlacementTask
from agents.flat.worlds import GivenWorld
from agents.planners.table import reference_planners
from des import (
    NO_CORRECTIONS,
    SCHEDULES,
    Corrections,
    InfeasiblePlacementError,
    Placement,
    Plan,
    Topology,
    Transport,
    build_workload,
    check_memory,
    simulate,
)
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import pipeline_of
from des.schedules import Border
from des.schedules.exact import exact
from des.schedules.pipeline import Pipeline

QUICK = [name for name, schedule in SCHEDULES.items() if not schedule.is_slow]
ON_ANY_PLACEMENT = [name for name in QUICK if name not in ("deep_1f1b", "interleaved_1f1b")]
NAMES = [*ON_ANY_PLACEMENT, "1f1b_3x"]


@st.composite
def iterations(draw):
    """A world that may move, a job, and a plan by any schedule that is quick to make."""
    topology = draw(topologies(max_domains=4))
    topology = dataclasses.replace(
        topology, movement=draw(st.none() | movements()), transport=draw(transports())
    )
    workload = draw(workloads(max_microbatches=6))
    order = draw(st.permutations(range(topology.num_domains)))
    domains = order[: draw(st.integers(1, min(len(order), workload.num_layers)))]
    placement = Placement.contiguous(
        domains,
        [workload.num_layers - len(domains) + 1, *[1] * (len(domains) - 1)],
    )
    return topology, workload, Plan(placement=placement, schedule=draw(st.sampled_from(NAMES)))


@settings(max_examples=examples(60))
@given(case=iterations())
def test_every_schedule_keeps_the_laws_on_any_network(case):
    """Passes of a domain follow each other, time adds up, all bytes arrive, twice the same."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen)

    of_domain = defaultdict(list)
    for span in result.spans:
        of_domain[result.stages[span.stage].domain].append(span)
    for spans in of_domain.values():
        for earlier, later in pairwise(sorted(spans, key=lambda span: (span.start_s, span.end_s))):
            assert earlier.end_s <= later.start_s
    for stage in result.stages:
        assert stage.busy_s + stage.idle_s == pytest.approx(result.makespan_s)
    hops = [
        topology.route(*ends)
        for one, other in pairwise(chosen.placement.stages)
        for ends in ((one.domain, other.domain), (other.domain, one.domain))
    ]
    sent = workload.num_microbatches * workload.message_bytes * sum(map(len, hops))
    assert result.communication_cost_bytes == pytest.approx(sent)
    assert simulate(topology, workload, chosen) == result


@pytest.mark.parametrize("schedule", ON_ANY_PLACEMENT)
def test_every_planner_and_the_environment_judge_plans_that_do_not_fit(schedule):
    """70B on one domain of 640 GB does not: it is judged as if it did, and fined."""
    workload = build_workload("llama2_70b", num_layers=6, num_microbatches=4)
    task = PlacementTask(
        world=GivenWorld(topology=_shipped()), workload=workload, schedule=schedule
    )
    together = Placement(domain_of_layer=(0,) * 6)

    result = task.simulate(_shipped(), together)
    assert not result.fits_memory
    problem = PlanningProblem(topology=_shipped(), workload=workload, schedule=schedule)
    for name, planner in reference_planners().items():
        chosen = planner(problem, np.random.default_rng(0))
        assert problem.judge(chosen).makespan_s > 0
        assert name != "exact" or problem.judge(chosen).fits_memory


def _shipped() -> Topology:
    return dataclasses.replace(free_world(3), domains=tuple(_domain(name) for name in "ABC"))


def _domain(name):
    return dataclasses.replace(unit_domain(name, flops_per_s=1e15, memory_bytes=8e10), num_gpus=8)


def test_a_plan_over_memory_is_refused_naming_the_first_operation_that_does_not_fit():
    """16 bytes of model state a layer and one a microbatch: room for two of them."""
    topology = Topology.of(
        [unit_domain(name, memory_bytes=18.0) for name in "AB"], free_world(2).links
    )
    workload = units([(1, 1), (1, 1)], num_microbatches=4)

    check_memory(topology, workload, plan(0, 1))
    with pytest.raises(InfeasiblePlacementError, match=r"; F2 of stage 0 is the first not to fit$"):
        check_memory(topology, workload, plan(0, 1, schedule="gpipe"))
    tight = Topology.of(
        [unit_domain(name, memory_bytes=15.0) for name in "AB"], free_world(2).links
    )
    with pytest.raises(InfeasiblePlacementError, match=r"0\.0 GB activations\)$"):
        check_memory(tight, workload, plan(0, 1))


def test_schedules_see_the_tcp_window():
    """1 byte a window over 2 x 0.5 s: 1 byte/s of the link's 100."""
    links = {"AB": (100.0, 0.5), "BA": (100.0, 0.5)}
    topology = dataclasses.replace(world("AB", links), transport=Transport(window_bytes=1.0))
    workload = units([(1, 1), (1, 1)], num_microbatches=2, message_bytes=20.0)

    stages = bound_stages(topology, plan(0, 1))
    pipeline = pipeline_of(topology, workload, stages, NO_CORRECTIONS, 2)
    assert pipeline.down == (Border(transfer_s=20.0, latency_s=0.5),)


def test_schedules_see_what_calibration_found():
    links = {"AB": (100.0, 0.5), "BA": (100.0, 0.5)}
    workload = units([(1, 1), (1, 1)], num_microbatches=2, message_bytes=20.0)
    found = Corrections(wan_latency_factor=2.0, message_overhead_s=0.25, compute_time_factor=3.0)

    topology = world("AB", links)
    stages = bound_stages(topology, plan(0, 1))
    pipeline = pipeline_of(topology, workload, stages, found, 2)
    assert pipeline.up == (Border(transfer_s=0.45, latency_s=1.0),)
    assert pipeline.forward_s == (3.0, 3.0)


def test_the_exact_schedule_of_full_recomputation_keeps_to_memory():
    """Halves of a backward pass keep more than the forward pass did: 32 instead of 2."""
    pipeline = dataclasses.replace(
        Pipeline.uniform(2, 4, border=Border(latency_s=1.0)),
        activation_bytes=(2.0, 2.0),
        weight_input_bytes=(32.0, 32.0),
        memory_bytes=(34.0, 34.0),
    )

    found = exact(pipeline, work_limit=1.0)
    assert found.lower_bound_s <= found.makespan_s


def test_slow_schedules_are_refused_where_many_plans_are_judged():
    workload = units([(1, 1), (1, 1)], num_microbatches=2)

    with pytest.raises(ValueError, match=r"environment: schedule must be quick .*; got 'exact'"):
        PlacementTask(world=GivenWorld(topology=free_world(2)), workload=workload, schedule="exact")
    with pytest.raises(ValueError, match="planning problem: schedule must be quick"):
        PlanningProblem(topology=free_world(2), workload=workload, schedule="exact_1x")


def test_interleaving_needs_several_stages_a_device():
    workload = units([(1, 1)] * 4, num_microbatches=2)

    with pytest.raises(ValueError, match="interleaved_1f1b needs several stages a device, got one"):
        simulate(free_world(2), workload, plan(0, 0, 1, 1, schedule="interleaved_1f1b"))
    result = simulate(free_world(2), workload, plan(0, 1, 0, 1, schedule="interleaved_1f1b"))
    assert result.makespan_s == 10.0  # 2 x 2 x (1 + 1) of work and a bubble of (p - 1) (F + B) / 2
