"""Plans of all families side by side: the same times as `des.simulate`, to the last bit."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from examples import examples
from family_plans import families
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corrections, free_world, plan, topologies, unit_workload, workloads
from ties import even_corrections, even_topologies, even_workloads

from des import NO_CORRECTIONS, Corrections, Plan, Topology, Workload, simulate
from des.compiled.many.families import family_times_s
from des.compiled.many.family_rows import write_plans
from des.compiled.many.simulation import exchanges_behind_s, simulate_many
from des.simulation.iteration import exchange_behind_s

ANY = {
    "data": st.data(),
    "topology": topologies(min_domains=2, max_domains=5, fully=True),
    "workload": workloads(num_layers=7, max_microbatches=6),
    "found": corrections(),
    "step": st.integers(0, 2),
}
"""Worlds, jobs and steps of whatever figures; plans are drawn for them."""


def times_of(
    topology: Topology, workload: Workload, plans: Sequence[Plan], found: Corrections, step: int
) -> list[float]:
    """Iteration times by the readable engine."""
    return [simulate(topology, workload, one, found, step=step).makespan_s for one in plans]


@settings(max_examples=examples(60), deadline=None)
@given(**ANY)
def test_times_of_all_families_are_those_of_the_readable_engine(
    data, topology, workload, found, step
):
    topology = replace(topology, movement=None)
    plans = [data.draw(families(topology, workload)) for _ in range(4)]
    steps = [step] * len(plans)

    side_by_side = family_times_s([topology], workload, plans, found, steps)
    assert side_by_side.tolist() == [times_of(topology, workload, plans, found, step)]


@settings(max_examples=examples(60), deadline=None)
@given(
    data=st.data(),
    topology=even_topologies(),
    workload=even_workloads(),
    found=even_corrections(),
    step=st.integers(0, 2),
)
def test_what_happens_at_the_same_time_happens_in_the_order_of_the_engine(
    data, topology, workload, found, step
):
    """Whole numbers, equal links, and links that are missing."""
    plans = [data.draw(families(topology, workload)) for _ in range(4)]

    times_s = simulate_many([topology], workload, plans, found, steps=[step] * len(plans))
    assert times_s.tolist() == [times_of(topology, workload, plans, found, step)]


@settings(max_examples=examples(40), deadline=None)
@given(**ANY)
def test_exchanges_behind_steps_take_what_they_take_in_the_readable_engine(
    data, topology, workload, found, step
):
    topology = replace(topology, movement=None)
    plans = [data.draw(families(topology, workload)) for _ in range(4)]

    times_s = exchanges_behind_s(topology, workload, plans, [step] * len(plans), found)
    assert times_s.tolist() == [
        exchange_behind_s(topology, workload, one, step, found) for one in plans
    ]


def test_what_rows_cannot_hold_is_refused_or_simulated_as_by_the_readable_engine():
    """Pipelines that share domains, shares that do not add up, and a domain that there is not."""
    job = unit_workload([(1, 2)] * 4, num_microbatches=3, message_bytes=1.0)
    both_ways = replace(
        plan(0, 0, 1, 1), replicas=(plan(1, 1, 0, 0).placement,), shares_domains=True
    )

    found = simulate_many([free_world(2)], job, [both_ways, plan(0, 0, 1, 1)])
    expected = times_of(free_world(2), job, [both_ways, plan(0, 0, 1, 1)], NO_CORRECTIONS, 0)
    assert found.tolist() == [expected]
    too_many = replace(plan(0, 0, 0, 0), replicas=(plan(1, 1, 1, 1).placement,), shares=(3, 3))
    with pytest.raises(ValueError, match="shares must add up to the 3 microbatches"):
        simulate_many([free_world(2)], job, [too_many])
    with pytest.raises(ValueError, match="one of the domains A 0, B 1; got 5"):
        simulate_many([free_world(2)], job, [plan(0, 0, 5, 5)])


def test_rows_hold_domains_of_any_number():
    """A byte holds numbers up to 255."""
    job = unit_workload([(1, 2)] * 4, num_microbatches=3)
    plans = [plan(0, 0, 299, 299), plan(298, 7, 7, 7), plan(1, 300, 1, 1)]

    written = write_plans(job, 300, plans, [0] * 3)

    assert written is not None
    assert written.positions.tolist() == [0, 1]
    assert written.rows.pipelines.domain[:, :2].tolist() == [[0, 299], [298, 7]]
