"""Laws of worlds as lists of networks: what can be listed, and what the list says."""

from dataclasses import replace

import numpy as np
import pytest

from agents.decision.held import held_topologies
from agents.replanning.clairvoyant import clairvoyant
from agents.replanning.horizon import hold
from agents.replanning.tables import foreseen, tables_of, total_s
from des import Placement, Plan, build_workload, read_topology
from scenarios.measure.targets.unforeseen import listing_of, unforeseen_s, why_unlisted
from scenarios.measure.targets.world_file import as_in_suite, suite_world_of
from scenarios.suites import suite

DRAW, EPOCHS = 3, 16


@pytest.fixture(scope="module")
def pair():
    """Two sites under a law with 3^2 states of the links, redrawn loads and short epochs."""
    topology = read_topology("two_sites_of_nodes")
    world = suite_world_of("pair", replace(topology, dynamics=None), build_workload("llama2_7b"))
    return as_in_suite("hard", world, EPOCHS)


def splits(world):
    num_layers = world.workload.num_layers
    return [
        Plan(placement=Placement.contiguous(order, (first, num_layers - first)), schedule="gpipe")
        for order in ((0, 1), (1, 0))
        for first in (num_layers // 4, num_layers // 2)
    ]


@pytest.mark.parametrize(
    ("name", "index", "reason"),
    [
        ("eval_held", 0, ""),
        ("hard", 0, "links move while the load is held"),
        ("hard", 2, r"3^20 states of the links"),
    ],
)
def test_the_suites_say_which_laws_can_be_listed(name, index, reason):
    world = suite(name).with_domains(4, 5, 6).world(index, 5)

    assert why_unlisted(world) == reason


def test_links_that_wander_cannot_be_listed(pair):
    wandering = suite("null").with_domains(4, 5, 6).world(1, 5).topology.dynamics
    world = replace(pair, topology=replace(pair.topology, dynamics=wandering))

    assert why_unlisted(world) == "links wander without steps"
    assert unforeseen_s(world, DRAW, tables_of(world, DRAW, splits(world))) is None


def test_the_listed_state_of_an_epoch_has_its_links(pair):
    listing = listing_of(pair, DRAW)
    rows = [listing.state.tolist().index(state) for state in listing.states_of_epochs]

    for row, network in zip(rows, held_topologies(pair, DRAW), strict=True):
        listed = [link.bandwidth_bytes_per_s for link in listing.networks[row].links]
        held = [link.bandwidth_bytes_per_s for link in network.links]
        assert listed == pytest.approx(held)
    assert len(set(listing.states_of_epochs.tolist())) > 1


def test_states_follow_one_another_as_often_as_the_chances_say(pair):
    """Share of epochs in which all links are normal, over 400 epochs of the law."""
    listing = listing_of(pair, DRAW)
    by_state = np.array(
        [listing.chance[:, listing.state == state].sum(axis=1) for state in range(9)]
    ).T
    long = listing_of(replace(pair, num_epochs=400), DRAW).states_of_epochs
    stays = (long[:-1] == 0) & (long[1:] == 0)

    assert by_state.sum(axis=1) == pytest.approx(1.0)
    assert stays.sum() / (long[:-1] == 0).sum() == pytest.approx(by_state[0, 0], abs=0.08)


@pytest.mark.parametrize("cell", ["hard", "eval_held", "eval_calm"])
def test_without_foresight_is_between_the_clairvoyant_and_the_best_plan_held(pair, cell):
    world = as_in_suite(cell, pair, EPOCHS)
    tables = foreseen(tables_of(world, DRAW, splits(world)))

    found_s = unforeseen_s(world, DRAW, tables)

    assert found_s is not None
    assert total_s(tables, clairvoyant(tables)) <= found_s * (1 + 1e-12)
    assert found_s <= total_s(tables, hold(tables)) * (1 + 1e-12)
