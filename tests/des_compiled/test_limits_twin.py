"""Uplinks, downlinks and caps are kept equally by both engines, to the last bit."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from law_strategies import movements
from limited_worlds import limited
from sending import transports
from strategies import corrections, plan, topologies, unit_workload, workloads, world
from test_compiled_equality import require_equal, require_equal_moves
from ties import any_plans, even_workloads, even_worlds

from des import NO_CORRECTIONS
from des.compiled.eligibility import has_plain_transport
from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import FULL
from des.compiled.pack import pack
from des.compiled.state import new_state
from des.program.lowering import lower
from des.world.access import Access


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


def test_a_run_without_room_for_a_gate_is_repeated_with_more():
    """Messages of different rates queue for links of 3 and of 5 B/s, through an uplink of 6."""
    links = {"AB": (3.0, 0.0), "AC": (5.0, 0.0), "BA": (4.0, 0.0), "CA": (7.0, 0.0)}
    plain = world("ABC", links)
    first = replace(plain.domains[0], access=Access(uplink_bytes_per_s=6.0))
    topology = replace(plain, domains=(first, *plain.domains[1:]))
    workload = unit_workload([(1, 2)] * 3, num_microbatches=8, message_bytes=9.0)
    one = plan(1, 0, 2)
    program = pack(topology, lower(topology, workload, one))

    assert run_program(program, new_state(program, gate_room=1)) == FULL
    require_equal(topology, workload, one)
    assert not has_plain_transport(topology)
