"""A change of plan moves the state of layers that a domain lacks over the links, and restarts."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import corrections, placements, plan, topologies, unit_workload, workloads, world

from des import NO_CORRECTIONS, Corrections, Movement, Placement, Plan, UnreachableError
from des.dynamics import LinkSeries, LinkState, MarkovModulated, Replay
from des.dynamics.link_course import StarvationError
from des.plan.replacement import RESTART_S
from des.program.moves import layer_moves, moved_bytes
from des.simulation.migration import migration_s
from des.world.transport import Transport

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=2)
"""Four layers of one parameter, so 16 bytes of state, each."""

PAIR = world("AB", {"AB": (8.0, 0.5), "BA": (4.0, 0.25)})
"""A layer takes 2 s + 0.5 s from A to B, 4 s + 0.25 s back."""


def replicated(*domains_of_layers):
    """Plan of replicas, each given by the domains of its layers."""
    first, *others = (Placement(domain_of_layer=domains) for domains in domains_of_layers)
    return Plan(placement=first, replicas=tuple(others))


@st.composite
def changes(draw):
    """A world, a workload and two plans of it; some domains may serve a second replica."""
    topology = draw(topologies(min_domains=2))
    workload = draw(workloads())

    def drawn():
        placement = draw(placements(topology.num_domains, workload.num_layers))
        unused = sorted(set(range(topology.num_domains)) - set(placement.domain_of_layer))
        replicas = ()
        if unused and workload.num_microbatches > 1 and draw(st.booleans()):
            pattern = draw(placements(len(unused), workload.num_layers))
            second = tuple(unused[domain] for domain in pattern.domain_of_layer)
            replicas = (Placement(domain_of_layer=second),)
        return Plan(placement=placement, replicas=replicas)

    return topology, workload, drawn(), drawn()


def held(plan):
    """Pairs of a layer and a domain that holds it."""
    return {
        (layer, domain)
        for placement in plan.placements
        for layer, domain in enumerate(placement.domain_of_layer)
    }


# What moves.


def test_layers_that_change_their_domain_move_with_16_bytes_a_parameter():
    assert moved_bytes(FOUR_LAYERS, plan(0, 0, 0, 1), plan(0, 1, 1, 0)) == {
        1: 32.0,
        0: 16.0,
    }


def test_a_plan_that_differs_in_the_schedule_only_moves_nothing():
    assert moved_bytes(FOUR_LAYERS, plan(0, 0, 1, 1), plan(0, 0, 1, 1, schedule="gpipe")) == {}


def test_a_layer_that_a_domain_holds_for_another_replica_is_not_sent():
    """Domains 0 and 1 swap their roles in replicas of the same layers."""
    old, new = replicated((0, 0, 0, 0), (1, 1, 1, 1)), replicated((1, 1, 1, 1), (0, 0, 0, 0))

    assert moved_bytes(FOUR_LAYERS, old, new) == {}


@given(case=changes())
def test_every_domain_ends_up_with_what_the_new_plan_needs_and_nothing_is_sent_twice(case):
    topology, workload, old, new = case
    moves = list(layer_moves(topology, workload, old, new))

    arrived = Counter((move.layer, move.target) for move in moves)
    assert set(arrived) == held(new) - held(old)
    assert all(count == 1 for count in arrived.values())
    assert all((move.layer, move.source) in held(old) for move in moves)
    sent = sum(moved_bytes(workload, old, new).values())
    missing = held(new) - held(old)
    assert sent == pytest.approx(sum(16 * workload.num_parameters[layer] for layer, _ in missing))


# How long it takes, by hand: every number is a binary fraction, so all comparisons are exact.


def test_moves_of_a_direction_queue_and_directions_do_not_wait_for_each_other():
    """A->B: two layers leave 0-2 and 2-4, the last is there at 4.5. B->A: one at 4.25."""
    old, new = plan(0, 0, 0, 1), plan(0, 1, 1, 0)

    assert migration_s(PAIR, FOUR_LAYERS, old, new, restart_s=0.0) == 4.5
    assert migration_s(PAIR, FOUR_LAYERS, old, new, restart_s=8.0) == 12.5
    back = plan(0, 0, 0, 0)
    assert migration_s(PAIR, FOUR_LAYERS, old, back, restart_s=0.0) == 4.25


def test_a_restart_takes_what_sailor_measured_unless_told():
    took_s = migration_s(PAIR, FOUR_LAYERS, plan(0, 0, 0, 0), plan(0, 0, 0, 1))

    assert took_s == 2.5 + RESTART_S


def test_state_that_is_there_already_costs_the_restart_only():
    old, new = plan(0, 0, 0, 1), plan(0, 1, 1, 0)

    assert migration_s(PAIR, FOUR_LAYERS, old, new, restart_s=3.0, pays_bytes=False) == 3.0
    another = replace(old, schedule="gpipe")
    assert migration_s(PAIR, FOUR_LAYERS, old, another, restart_s=3.0) == 3.0
    assert migration_s(PAIR, FOUR_LAYERS, old, old, restart_s=3.0) == 0.0


def test_a_layer_travels_a_route_of_several_links_hop_by_hop():
    """A->B->C at 8 and 4 bytes/s: layers leave A 0-2, 2-4; B at 2.5-6.5, 6.5-10.5; C at 10.75."""
    line = world("ABC", {"AB": (8.0, 0.5), "BC": (4.0, 0.25), "BA": (1.0, 1.0), "CB": (1.0, 1.0)})

    took_s = migration_s(line, FOUR_LAYERS, plan(0, 0, 0, 0), plan(0, 0, 2, 2), restart_s=0.0)

    assert took_s == 10.75


def test_moves_share_links_by_the_transport_of_the_world():
    """One in flight: the second layer leaves at 2.5, when the first has arrived. Half duplex:
    A->B 0-2 and 2-4, then B->A 4-8, there at 8.25. Fair: the same as in turn for equal sizes.
    None: B->A 0-4, there at 4.25, both layers A->B 0-2."""
    old, new = plan(0, 0, 0, 1), plan(0, 1, 1, 0)
    for transport, expected_s in (
        (Transport(endpoints="one_in_flight"), 5.0),
        (Transport(half_duplex=True), 8.25),
        (Transport(sharing="fair"), 4.5),
        (Transport(sharing="none"), 4.25),
    ):
        shared = replace(PAIR, transport=transport)
        assert migration_s(shared, FOUR_LAYERS, old, new, restart_s=0.0) == expected_s


def test_corrections_apply_to_the_links():
    slower = Corrections(wan_bandwidth_factor=0.5, wan_latency_factor=2.0, message_overhead_s=0.25)

    took_s = migration_s(
        PAIR, FOUR_LAYERS, plan(0, 0, 0, 0), plan(0, 0, 1, 1), restart_s=0.0, corrections=slower
    )

    assert took_s == 2 * (0.25 + 4.0) + 1.0


def moving_pair(law, *, start_s=0.0):
    return replace(PAIR, movement=Movement(law=law, seed=0, start_s=start_s))


def test_links_move_under_a_migration():
    """From 1 s to 3 s A->B gives 2 instead of 8 bytes/s: 8 + 4 bytes by then, 4 more in 0.5 s."""
    times_s, steady = (0.0, 1.0, 3.0), (4.0, 4.0, 4.0)
    law = Replay(
        name="trace",
        series=(
            LinkSeries(
                source="A",
                target="B",
                times_s=times_s,
                bandwidths_bytes_per_s=(8.0, 2.0, 8.0),
                latencies_s=(0.5, 0.5, 0.5),
            ),
            LinkSeries(
                source="B",
                target="A",
                times_s=times_s,
                bandwidths_bytes_per_s=steady,
                latencies_s=(0.25, 0.25, 0.25),
            ),
        ),
        holds_last=True,
    )
    old, new = plan(0, 0, 0, 0), plan(0, 0, 0, 1)

    assert migration_s(moving_pair(law), FOUR_LAYERS, old, new, restart_s=0.0) == 4.0
    later = moving_pair(law, start_s=2.0)  # a second at 2 bytes/s, then 14 bytes at 8
    assert migration_s(later, FOUR_LAYERS, old, new, restart_s=0.0) == 3.25


def test_a_link_that_is_down_for_ever_is_an_error_unless_nothing_takes_it():
    down = MarkovModulated(
        states=(LinkState(name="down", bandwidth_factor=0.0, mean_dwell_s=math.inf),),
        starts_in="down",
    )
    old, new = plan(0, 0, 0, 0), plan(0, 0, 0, 1)

    with pytest.raises(StarvationError, match="link A->B: is down for ever"):
        migration_s(moving_pair(down), FOUR_LAYERS, old, new)
    assert migration_s(moving_pair(down), FOUR_LAYERS, old, new, pays_bytes=False) == RESTART_S


# Bounds.


@given(case=changes(), fixed=corrections())
def test_a_migration_takes_as_long_as_the_fullest_link_and_no_longer_than_one_by_one(case, fixed):
    topology, workload, old, new = case
    took_s = migration_s(topology, workload, old, new, restart_s=0.0, corrections=fixed)

    wire_s = [0.0] * len(topology.links)
    alone_s = 0.0
    for move in layer_moves(topology, workload, old, new, fixed):
        for hop in topology.route(move.source, move.target):
            link = topology.links[hop]
            bandwidth = link.bandwidth_bytes_per_s * fixed.wan_bandwidth_factor
            held_s = fixed.message_overhead_s + move.num_bytes / bandwidth
            wire_s[hop] += held_s
            alone_s += held_s + link.latency_s * fixed.wan_latency_factor
    assert max(wire_s) * (1 - 1e-9) <= took_s <= alone_s * (1 + 1e-9)


@given(case=changes())
def test_equal_changes_take_equal_times(case):
    topology, workload, old, new = case

    first = migration_s(topology, workload, old, new)
    assert first == migration_s(topology, workload, old, new, corrections=NO_CORRECTIONS)


# What is refused.


def test_a_restart_takes_no_negative_time():
    with pytest.raises(ValueError, match=r"migration: restart_s must be .* not negative, got -1"):
        migration_s(PAIR, FOUR_LAYERS, plan(0, 0, 0, 0), plan(0, 0, 0, 1), restart_s=-1.0)


def test_plans_of_another_model_are_refused():
    with pytest.raises(ValueError, match="must hold the 4 layers of unit, got 2"):
        moved_bytes(FOUR_LAYERS, plan(0, 0, 0, 0), plan(0, 1))
    with pytest.raises(ValueError, match="layer 3 must be on one of the domains A 0, B 1; got 2"):
        migration_s(PAIR, FOUR_LAYERS, plan(0, 0, 0, 0), plan(0, 0, 0, 2))


def test_domains_that_no_path_joins_cannot_hand_over_layers():
    one_way = world("AB", {"AB": (1.0, 0.0)})

    with pytest.raises(UnreachableError, match="B -> A"):
        migration_s(one_way, FOUR_LAYERS, plan(1, 1, 1, 1), plan(1, 1, 1, 0))
