"""Times of all changes of plan at once against those of the simulator, and cases by hand."""

import dataclasses
import math

import numpy as np
import pytest
from epoch_cases import FOUR_LAYERS
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corrections, placements, plan, topologies, unit_workload, workloads, world

from agents.replanning.plan_costs import Changes
from des import (
    EVERY_STEP,
    NO_CORRECTIONS,
    Corrections,
    DiLoCo,
    GradientExchange,
    Placement,
    Plan,
    StreamingDiLoCo,
    Transport,
    migration_s,
    moved_bytes,
)
from des.plan.replacement import Replacement
from des.plan.synchronisation import agree_every_step

RESTART_2_S = Replacement(restart_s=2.0)


def test_layers_of_one_way_leave_one_after_another_and_ways_side_by_side():
    """A to B takes 2 s a layer and flies 0.5 s; A to C 4 s and 0.25 s; the overhead is 0.125 s."""
    links = world(
        "ABC", dict.fromkeys(("AB", "BA", "BC", "CB", "CA"), (8.0, 0.5)) | {"AC": (4.0, 0.25)}
    )
    plans = [plan(0, 0, 0, 0), plan(0, 1, 1, 1), plan(0, 1, 1, 2), plan(0, 2, 2, 1)]

    changes = Changes(FOUR_LAYERS, plans, 3, RESTART_2_S)
    times_s = changes.times_s(links, Corrections(message_overhead_s=0.125))

    three, two_and_one, one_and_two = 3 * 2.125 + 0.5, max(4.75, 4.375), 2 * 4.125 + 0.25
    assert times_s[0].tolist() == [0.0, 2 + three, 2 + two_and_one, 2 + one_and_two]
    assert times_s[1, 2] == 2 + 2.125 + 0.5  # from B, which has it, not from A
    assert changes.moved_bytes[0].tolist() == [0.0, 48.0, 48.0, 48.0]
    assert changes.moved_bytes[1, 2] == 16.0


def test_another_schedule_and_state_that_is_there_cost_the_restart_alone():
    plans = [plan(0, 0, 0, 0), plan(0, 0, 0, 0, schedule="gpipe"), plan(0, 0, 1, 1)]
    links = world("AB", {"AB": (8.0, 0.5), "BA": (8.0, 0.5)})

    paid = Changes(FOUR_LAYERS, plans, 2, RESTART_2_S).times_s(links)
    free = Changes(FOUR_LAYERS, plans, 2, Replacement(restart_s=2.0, pays_bytes=False))

    assert paid[0].tolist() == [0.0, 2.0, 2.0 + 4.0 + 0.5]
    assert free.times_s(links).tolist() == [[0.0, 2.0, 2.0], [2.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    assert not free.moved_bytes.any()


def test_a_layer_cannot_go_where_no_links_lead():
    one_way = world("AB", {"AB": (8.0, 0.5)})
    changes = Changes(FOUR_LAYERS, [plan(0, 0, 0, 0), plan(1, 1, 1, 1)], 2, RESTART_2_S)

    assert changes.times_s(one_way).tolist() == [[0.0, 2 + 8 + 0.5], [math.inf, 0.0]]


def test_changes_from_one_plan_are_a_row_of_those_between_all():
    links = world("ABC", dict.fromkeys(("AB", "BA", "BC", "CB", "CA", "AC"), (8.0, 0.5)))
    plans = [plan(0, 0, 0, 0), plan(0, 1, 1, 1), plan(0, 1, 1, 2), plan(0, 2, 2, 1)]

    every = Changes(FOUR_LAYERS, plans, 3, RESTART_2_S)
    row = Changes(FOUR_LAYERS, plans, 3, RESTART_2_S, sources=plans[2:3])

    assert row.times_s(links).tolist() == every.times_s(links)[2:3].tolist()
    assert row.moved_bytes.tolist() == every.moved_bytes[2:3].tolist()


TRANSPORTS = st.sampled_from(
    [
        Transport(),
        Transport(window_bytes=1e6),
        Transport(sharing="fair"),
        Transport(half_duplex=True),
        Transport(endpoints="one_in_flight"),
    ]
)


@st.composite
def plan_sets(draw, topology, workload):
    """Two to five different plans, and at times copies of the model, kept in step or seldom.

    Those in step may share the optimiser's state, and one of them be of three copies.
    """
    drawn = [
        Plan(placement=draw(placements(topology.num_domains, workload.num_layers)))
        for _ in range(draw(st.integers(2, 5)))
    ]
    if topology.num_domains > 1 and workload.num_microbatches > 2 and draw(st.booleans()):
        whole = [Placement(domain_of_layer=(one,) * workload.num_layers) for one in (0, 1)]
        modes = st.sampled_from([EVERY_STEP, DiLoCo(), StreamingDiLoCo(overlap_steps=1)])
        for others in draw(st.permutations([whole, whole[::-1], [drawn[0].placement] * 2])):
            mode = draw(modes)
            exchange = GradientExchange(sharded=agree_every_step(mode) and draw(st.booleans()))
            first, *further = others + [drawn[1].placement] * draw(st.integers(0, 1))
            copies = Plan(placement=first, replicas=tuple(further), shares_domains=True)
            drawn.append(dataclasses.replace(copies, synchronisation=mode, exchange=exchange))
    return list(dict.fromkeys(drawn))


@settings(max_examples=examples(100))
@given(data=st.data())
def test_changes_take_what_the_simulator_says(data):
    """Over direct links and relays, under all transports."""
    transport = data.draw(TRANSPORTS)
    topology = dataclasses.replace(data.draw(topologies()), transport=transport)
    workload, found = data.draw(workloads()), data.draw(corrections())
    plans = data.draw(plan_sets(topology, workload))

    changes = Changes(workload, plans, topology.num_domains, RESTART_2_S)
    times_s = changes.times_s(topology, found)

    for old, new in np.ndindex(len(plans), len(plans)):
        known_s = migration_s(
            topology, workload, plans[old], plans[new], restart_s=2.0, corrections=found
        )
        assert times_s[old, new] == pytest.approx(known_s, rel=1e-9, abs=0)
        known_bytes = sum(moved_bytes(workload, plans[old], plans[new]).values())
        assert changes.moved_bytes[old, new] == pytest.approx(known_bytes, rel=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_hundred_plans_at_once_take_what_each_pair_takes(seed):
    rng = np.random.default_rng(seed)
    names = "ABCDE"
    ends = [a + b for a in names for b in names if a != b]
    links = world(names, {end: tuple(rng.uniform(0.5, 2.0, 2)) for end in ends})
    workload = unit_workload([(1, 1)] * 12, num_microbatches=1)
    drawn = [tuple(row) for row in rng.integers(0, 5, (100, 12)).tolist()]
    plans = [plan(*row) for row in dict.fromkeys(drawn)]

    times_s = Changes(workload, plans, 5, RESTART_2_S).times_s(links)

    for old, new in rng.integers(0, len(plans), (5, 2)).tolist():
        known_s = migration_s(
            links, workload, plans[old], plans[new], restart_s=2.0, corrections=NO_CORRECTIONS
        )
        assert times_s[old, new] == pytest.approx(known_s, rel=1e-9)


def test_each_domain_gets_a_layer_from_the_holder_from_which_it_is_there_first():
    """C has three copies to come: by A's 8 bytes/s 2 s each, by B's 4 bytes/s 4 s each.

    A sends two, at 2 s and 4 s; by B the second would be there at 4 s, not before, the third is.
    """
    pairs = {one + other: (1.0, 0.0) for one in "ABC" for other in "ABC" if one != other}
    links = world("ABC", pairs | {"AC": (8.0, 0.0), "BC": (4.0, 0.0)})
    both = Plan(placement=Placement.parse("0*4"), replicas=(Placement.parse("1*4"),), shares=(1, 1))
    plans = [both, plan(0, 2, 2, 2), plan(1, 1, 1, 1)]

    changes = Changes(FOUR_LAYERS, plans, 3, RESTART_2_S)

    assert changes.times_s(links)[0].tolist() == [0.0, 2.0 + 4.0, 2.0]
    assert changes.moved_bytes[0].tolist() == [0.0, 48.0, 0.0]
