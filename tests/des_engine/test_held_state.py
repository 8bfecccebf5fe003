"""State that domains hold already: changes between families send what is missing, and no more."""

import pytest
from family_plans import families
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import plan, topologies, unit_workload, workloads, world

from des import DiLoCo, GradientExchange, Placement, Plan, migration_s
from des.program.moves import LayerMove, layer_moves, missing_states, moved_bytes

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=3)
"""Four layers of one parameter: 16 bytes of state each, 8 of an outer optimiser."""

RATES = {"AB": 16.0, "BA": 16.0, "AC": 16.0, "CA": 16.0, "BC": 8.0, "CB": 8.0}
THREE = world("ABC", {ends: (rate, 0.5) for ends, rate in RATES.items()})
"""A layer takes 1 s + 0.5 s between A and the others, 2 s + 0.5 s between B and C."""

RARELY = DiLoCo(steps_between=2)
SHARDED = GradientExchange(sharded=True)


def replicated(*domains: int, **fields: object) -> Plan:
    """A whole copy of the four layers in each of some domains."""
    first, *others = (Placement(domain_of_layer=(domain,) * 4) for domain in domains)
    return Plan(placement=first, replicas=tuple(others), **fields)


def test_replicas_become_a_pipeline_for_nothing():
    pipeline = plan(2, 0, 0, 1)

    assert moved_bytes(FOUR_LAYERS, replicated(0, 1, 2), pipeline) == {}
    took_s = migration_s(THREE, FOUR_LAYERS, replicated(0, 1, 2), pipeline, restart_s=3.0)
    assert took_s == 3.0


def test_a_pipeline_becomes_replicas_by_the_layers_that_each_lacks():
    """Layers 2 and 3 are sent to A, 0 and 1 to B: each direction takes 2 x 1 s + 0.5 s."""
    old, new = plan(0, 0, 1, 1), replicated(0, 1)

    assert moved_bytes(FOUR_LAYERS, old, new) == {0: 32.0, 1: 32.0}
    assert migration_s(THREE, FOUR_LAYERS, old, new, restart_s=0.0) == 2.5


def test_layers_come_from_the_holder_from_which_they_are_there_first():
    """To C: from A after 1.5, 2.5 and 3.5 s, from B after 2.5 s; what is equal, from the first."""
    moves = list(layer_moves(THREE, FOUR_LAYERS, replicated(0, 1), replicated(0, 2)))

    assert moves == [LayerMove(layer, source, 2, 16.0) for layer, source in enumerate((0, 0, 1, 0))]
    took_s = migration_s(THREE, FOUR_LAYERS, replicated(0, 1), replicated(0, 2), restart_s=0.0)
    assert took_s == 3.5


def test_a_holder_that_no_path_leads_from_is_passed_over():
    """Only B sends to C."""
    line = world("ABC", {"AB": (16.0, 0.5), "BC": (8.0, 0.5)})
    no_way_from_a = world("ABC", {"BA": (16.0, 0.5), "BC": (8.0, 0.5)})

    for topology, first in ((line, 1), (no_way_from_a, 1)):
        moves = list(layer_moves(topology, FOUR_LAYERS, replicated(0, 1), replicated(0, 2)))
        assert moves[0].source == first


def test_an_outer_state_goes_with_the_layers_and_is_made_where_it_begins():
    rare = {"synchronisation": RARELY}

    kept = moved_bytes(FOUR_LAYERS, replicated(0, 1, **rare), replicated(0, 2, **rare))
    begun = moved_bytes(FOUR_LAYERS, replicated(0, 1), replicated(0, 2, **rare))
    nothing = moved_bytes(FOUR_LAYERS, replicated(0, 1), replicated(0, 1, **rare))

    assert (kept, begun, nothing) == ({2: 4 * 24.0}, {2: 4 * 16.0}, {})


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (replicated(0, 1), {1: 32.0}),
        (replicated(1, 2), {2: 64.0}),
        (plan(0, 0, 1, 1), {}),
        (plan(2, 2, 2, 2), {2: 64.0}),
    ],
)
def test_synchronised_replicas_go_on_from_the_moments_of_one_holder(new, expected):
    """8 bytes a parameter to each other holder that stays; a pipeline has one holder only."""
    old = replicated(0, 1, synchronisation=RARELY)

    assert moved_bytes(FOUR_LAYERS, old, new) == expected


def sharded(*domains: int) -> Plan:
    """`replicated` copies that share the optimiser's state, 12 of 16 bytes."""
    return replicated(*domains, exchange=SHARDED)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (replicated(0, 1), sharded(0, 1), {}),
        (sharded(0, 1), sharded(0, 1), {}),
        (sharded(0, 1), replicated(0, 1), {0: 24.0, 1: 24.0}),
        (sharded(0, 1), replicated(0, 1, synchronisation=RARELY), {0: 24.0, 1: 24.0}),
        (sharded(0, 1), sharded(1, 0), {0: 24.0, 1: 24.0}),
        (sharded(0, 1), plan(1, 1, 1, 1), {1: 24.0}),
        (sharded(0, 1), sharded(0, 1, 2), {1: 4 * 2.0, 2: 4 * (4.0 + 4.0)}),
        (plan(0, 0, 1, 1), sharded(0, 1), {0: 2 * 10.0, 1: 2 * 10.0}),
        (replicated(0, 1, synchronisation=RARELY), sharded(0, 1), {1: 4 * 4.0}),
    ],
)
def test_sharded_replicas_send_the_parts_of_the_optimiser_that_are_missing(old, new, expected):
    """Half a state is 6 bytes; of thirds the second one has 1/6 in A, and the last all in B."""
    assert moved_bytes(FOUR_LAYERS, old, new) == pytest.approx(expected)


def test_parts_of_a_state_come_from_those_that_have_them():
    """C gets weights and gradients from A, the nearer, and its part of the optimiser from B."""
    moves = list(layer_moves(THREE, FOUR_LAYERS, sharded(0, 1), sharded(0, 1, 2)))

    assert {(move.source, move.target, move.num_bytes) for move in moves} == {
        (0, 1, 2.0),
        (0, 2, 4.0),
        (1, 2, 4.0),
    }


def pieces_of(chosen: Plan, count: int) -> set[tuple[int, int, int]]:
    """Layer, domain and piece of a layer's optimiser state, of ``count`` pieces."""
    shards = chosen.optimiser_shards
    own = [set(range(count))] * len(chosen.placements)
    if shards > 1:
        own = [
            {one for one in range(count) if one * shards // count == each} for each in range(shards)
        ]
    return {
        (layer, domain, piece)
        for placement, pieces in zip(chosen.placements, own, strict=True)
        for layer, domain in enumerate(placement.domain_of_layer)
        for piece in pieces
    }


@settings(deadline=None)
@given(data=st.data(), topology=topologies(min_domains=2), workload=workloads(num_layers=5))
def test_every_domain_gets_what_it_lacks_once_from_one_that_has_it(data, topology, workload):
    old, new = (data.draw(families(topology, workload)) for _ in range(2))
    held, needed = (
        {pair for one in each.placements for pair in enumerate(one.domain_of_layer)}
        for each in (old, new)
    )
    count = old.optimiser_shards * new.optimiser_shards
    lacking = pieces_of(new, count) - pieces_of(old, count)

    states = list(missing_states(workload, old, new))
    moves = list(layer_moves(topology, workload, old, new))
    assert [(move.layer, move.target, move.num_bytes) for move in moves] == [
        (state.layer, state.target, state.num_bytes) for state in states
    ]
    if old.optimiser_shards == 1:
        assert len({(move.layer, move.target) for move in moves}) == len(moves)
    assert {(move.layer, move.source) for move in moves} <= held
    assert needed - held <= {(move.layer, move.target) for move in moves} <= needed
    weights = (workload.state_bytes - 12) * sum(
        workload.num_parameters[layer] for layer, _ in needed - held
    )
    least = weights + 12 / count * sum(workload.num_parameters[layer] for layer, _, _ in lacking)
    assert sum(moved_bytes(workload, old, new).values()) >= least * (1 - 1e-12)
    if old.synchronisation.steps_between == 1 or not old.replicas:
        assert sum(moved_bytes(workload, old, new).values()) == pytest.approx(least)
