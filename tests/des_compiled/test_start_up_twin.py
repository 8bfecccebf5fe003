"""TCP's start-up and losses delay messages equally in both engines, to the last bit."""

from dataclasses import replace

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import movements
from sending import transports
from sharing import parallel_plans
from strategies import corrections, topologies, workloads
from test_compiled_equality import require_equal, require_equal_moves
from ties import any_plans

from des.plan.transport_law import TransportLaw


def laws() -> st.SearchStrategy[TransportLaw]:
    """Laws whose windows are smaller and larger than messages and products."""
    return st.builds(
        TransportLaw,
        connections=st.sampled_from(["fresh", "reused"]),
        first_window_bytes=st.floats(1e3, 1e8),
        segment_bytes=st.sampled_from([1e-3, 8948.0, 65000.0]),
        start_up_round_trips=st.sampled_from([0.0, 0.82, 1.0]),
        is_paced=st.booleans(),
        growth=st.sampled_from([1.0, 0.15]),
        efficiency=st.sampled_from([1.0, 0.5]),
        recovery_round_trips=st.sampled_from([0.0, 4.5]),
        recovery_after_products=st.none() | st.floats(0.0, 8.0),
    )


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    factors=corrections(),
    law=laws(),
)
def test_start_up_is_the_same_in_both_engines(data, topology, workload, factors, law):
    """All plans: exchanges of gradients, replicas and relays, any sharing, links that move."""
    plan = data.draw(any_plans(topology, workload))
    movement = data.draw(st.none() | movements())
    world = replace(topology, transport=data.draw(transports()), movement=movement)
    corrected = replace(factors, transport=law)

    require_equal(world, workload, plan, corrected, step=data.draw(st.integers(0, 3)))


@settings(max_examples=examples(50))
@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    factors=corrections(),
    law=laws(),
)
def test_replicas_and_moves_start_up_alike(data, topology, workload, factors, law):
    old, new = (data.draw(parallel_plans(topology, workload)) for _ in range(2))
    world = replace(topology, transport=data.draw(transports()))
    corrected = replace(factors, transport=law)

    require_equal(world, workload, new, corrected)
    require_equal_moves(world, workload, old, new, corrections=corrected)
