"""Uplinks, downlinks and caps are kept equally by both engines, to the last bit."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from law_strategies import movements
from limited_worlds import limited
from sending import transports
from strategies import corrections, topologies, workloads
from test_compiled_equality import require_equal, require_equal_moves
from ties import any_plans, even_workloads, even_worlds

from des import NO_CORRECTIONS


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    factors=corrections(),
    step=st.integers(0, 3),
)
def test_limits_are_the_same_in_both_engines(data, topology, workload, factors, step):
    """All plans: exchanges of gradients, replicas and relays, any sharing, links that move."""
    plan = data.draw(any_plans(topology, workload))
    movement = data.draw(st.none() | movements())
    open_world = replace(topology, transport=data.draw(transports()), movement=movement)

    require_equal(data.draw(limited(open_world)), workload, plan, factors, step=step)


@given(data=st.data(), open_world=even_worlds(), workload=even_workloads())
def test_ties_are_broken_alike(data, open_world, workload):
    """Messages that meet at a gate at the very same time."""
    topology = data.draw(limited(open_world, st.sampled_from([0.5, 1.0, 2.0, 3.0])))
    plan = data.draw(any_plans(topology, workload))

    require_equal(topology, workload, plan)


@given(data=st.data(), topology=topologies(min_domains=2), workload=workloads())
def test_changes_of_plan_pass_gates_alike(data, topology, workload):
    old, new = data.draw(any_plans(topology, workload)), data.draw(any_plans(topology, workload))
    open_world = replace(topology, transport=data.draw(transports()))

    require_equal_moves(
        data.draw(limited(open_world)), workload, old, new, corrections=NO_CORRECTIONS
    )
