"""The simulator against closed forms, and what it refuses."""

from itertools import pairwise

import pytest
from hand_pipelines import ASYMMETRIC, times
from hypothesis import given
from hypothesis import strategies as st
from strategies import STATIC_SCHEDULES, cases, free_world, plan, unit_workload, world

from des import (
    NO_CORRECTIONS,
    DeadlockError,
    Link,
    Operation,
    Plan,
    Topology,
    UnreachableError,
    Workload,
    simulate,
)
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import stage_times_s
from des.schedules import stage_orders


def orders(*texts: str) -> list[tuple[Operation, ...]]:
    """One order a stage from texts such as ``"F0 B0"``."""
    return [
        tuple(Operation(item[0], int(item[1:]), stage) for item in text.split())
        for stage, text in enumerate(texts)
    ]


def two_stages(num_microbatches: int) -> tuple[Topology, Workload, Plan]:
    """Two unit stages on free links."""
    return (
        free_world(2),
        unit_workload([(1, 1), (1, 1)], num_microbatches=num_microbatches),
        plan(0, 1),
    )


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@given(num_stages=st.integers(1, 8), num_microbatches=st.integers(1, 16))
def test_equal_stages_on_free_links_match_the_closed_form(schedule, num_stages, num_microbatches):
    """Makespan is (m + p - 1)(f + b) for p equal stages, m microbatches and free links."""
    workload = unit_workload([(1, 2)] * num_stages, num_microbatches=num_microbatches)

    result = simulate(free_world(num_stages), workload, plan(*range(num_stages), schedule=schedule))
    assert result.makespan_s == 3 * (num_microbatches + num_stages - 1)


@given(case=cases(fully=True, single_visit=True))
def test_gpipe_matches_the_closed_form_of_a_flow_shop(case):
    """Equal jobs on machines in a row: the sum of all times, plus m - 1 times the longest.

    Stages and wires are the machines, latencies pure delays; once forward, then once backward.
    """
    topology, workload, chosen = case
    stages = chosen.placement.stages
    passes_s = stage_times_s(workload, bound_stages(topology, chosen), NO_CORRECTIONS)
    expected = 0.0
    for direction, passed in enumerate((stages, stages[::-1])):
        hops = [
            topology.link_between(here.domain, there.domain) for here, there in pairwise(passed)
        ]
        machines = [times_s["FB"[direction]] for times_s in passes_s]
        machines += [workload.message_bytes / hop.bandwidth_bytes_per_s for hop in hops]
        expected += sum(machines) + (workload.num_microbatches - 1) * max(machines)
        expected += sum(hop.latency_s for hop in hops)

    gpipe = Plan(placement=chosen.placement, schedule="gpipe")
    assert simulate(topology, workload, gpipe).makespan_s == pytest.approx(expected)


def test_one_domain_works_without_a_break():
    workload = unit_workload([(1, 2), (3, 4)], num_microbatches=5)

    for schedule in STATIC_SCHEDULES:
        result = simulate(free_world(2), workload, plan(1, 1, schedule=schedule))
        assert result.makespan_s == 5 * 10
        assert result.transfers == ()


@given(case=cases())
def test_a_schedule_by_its_orders_is_the_same_iteration(case):
    topology, workload, chosen = case
    num_stages = len(chosen.placement.stages)
    for name in STATIC_SCHEDULES:
        by_name = stage_orders(name, num_stages, workload.num_microbatches)
        named = simulate(topology, workload, Plan(placement=chosen.placement, schedule=name))

        by_orders = simulate(topology, workload, chosen, orders=by_name)
        assert by_orders.spans == named.spans
        assert by_orders.makespan_s == named.makespan_s


def test_memory_is_that_of_the_orders_given():
    """gpipe holds 4 microbatches on each stage, whatever schedule the plan names."""
    topology, workload, chosen = two_stages(4)
    assert chosen.schedule == "1f1b"

    result = simulate(topology, workload, chosen, orders=stage_orders("gpipe", 2, 4))
    assert [domain.activation_bytes for domain in result.memory] == [4.0, 4.0]


def test_orders_that_wait_for_each_other_deadlock_by_name():
    """A wants B0 before it sends F1, B wants F1 before it sends B0: both orders are valid alone."""
    waiting = orders("F0 B0 F1 B1", "F0 F1 B0 B1")

    message = "deadlock, waiting for their inputs: B0 of stage 0, F1 of stage 1"
    with pytest.raises(DeadlockError, match=message):
        simulate(*two_stages(2), orders=waiting)


def test_microbatches_may_change_order():
    """A sends F1 first; B takes F1 first, too: as good as the other way round."""
    swapped = orders("F1 F0 B1 B0", "F1 B1 F0 B0")

    result = simulate(*two_stages(2), orders=swapped)
    assert result.makespan_s == 6
    assert times(result, 1) == {"F1": (1, 2), "B1": (2, 3), "F0": (3, 4), "B0": (4, 5)}


def test_invalid_orders_are_refused():
    with pytest.raises(ValueError, match="schedule: stage 1 must do F0 before B0"):
        simulate(*two_stages(1), orders=orders("F0 B0", "B0 F0"))
    with pytest.raises(ValueError, match=r"schedule: stage 1 must do .* microbatch 0; got nothing"):
        simulate(*two_stages(1), orders=orders("F0 B0"))


def test_unreachable_domains_are_an_error_only_where_the_plan_needs_them():
    topology = world("ABC", {"AB": (1.0, 0.0), "BA": (1.0, 0.0), "AC": (1.0, 0.0)})
    workload = unit_workload([(1, 1), (1, 1)], num_microbatches=1)

    assert simulate(topology, workload, plan(0, 1)).makespan_s == 4
    assert simulate(topology, workload, plan(2, 2)).makespan_s == 4
    with pytest.raises(UnreachableError, match="no path of links joins B -> C, which the plan"):
        simulate(world("ABC", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)}), workload, plan(1, 2))
    with pytest.raises(UnreachableError, match="no path of links joins C -> A"):
        simulate(topology, workload, plan(0, 2))  # there is no way back


def test_a_placement_that_does_not_match_is_refused():
    topology, workload, _ = two_stages(1)
    with pytest.raises(ValueError, match="each of the 2 layers of unit, got 3"):
        simulate(topology, workload, plan(0, 1, 1))
    with pytest.raises(ValueError, match="layer 1 must be on one of the domains A 0, B 1; got 2"):
        simulate(topology, workload, plan(0, 2))
    with pytest.raises(ValueError, match="layer 1 must be on one of the domains A 0, B 1; got 2"):
        simulate(topology, workload, plan(0, 2), orders=orders("F0 B0", "F0 B0"))


def test_an_unused_link_does_not_matter():
    """A steady iteration between A and B is the same in a world with C."""
    links = {"AB": (8.0, 0.25), "BA": (2.0, 0.5)}
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=3, message_bytes=4.0)
    larger = world("ABC", links | {"AC": (1.0, 0.0), "CB": (1.0, 0.0)})

    spans = simulate(larger, workload, plan(0, 1)).spans
    assert spans == simulate(ASYMMETRIC, workload, plan(0, 1)).spans
    assert isinstance(larger.link_between(0, 1), Link)
