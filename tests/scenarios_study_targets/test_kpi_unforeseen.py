"""Laws of worlds as lists of networks: limits and contents of the lists."""

from dataclasses import replace

import numpy as np
import pytest

from agents.decision.frozen_network import freeze_topologies
from agents.replanning.rules import clairvoyant, hold
from agents.replanning.tables import foreseen, tables_of, total_s
from des import Placement, Plan, Topology, build_workload, read_topology
from des.dynamics.markov_chances import chances_after
from scenarios.study.targets.unforeseen import listing_of, unforeseen_s, why_unlisted
from scenarios.study.targets.world_file import as_in_suite, suite_world_of
from scenarios.suites import suite

DRAW, EPOCHS = 3, 16


@pytest.fixture(scope="module")
def pair():
    """Two sites under a law with 3^2 states of the links, redrawn loads and short epochs."""
    whole = read_topology("east_central_west")
    domains = whole.domains[:2]
    names = {domain.name for domain in domains}
    links = [link for link in whole.links if {link.source, link.target} == names]
    world = suite_world_of("pair", Topology.of(domains, links), build_workload("llama2_7b"))
    return as_in_suite("hard", world, EPOCHS)


def splits(world):
    num_layers = world.workload.num_layers
    return [
        Plan(placement=Placement.contiguous(order, (first, num_layers - first)), schedule="1f1b")
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

    for row, network in zip(rows, freeze_topologies(pair, DRAW), strict=True):
        listed = [link.bandwidth_bytes_per_s for link in listing.networks[row].links]
        held = [link.bandwidth_bytes_per_s for link in network.links]
        assert listed == pytest.approx(held)
    assert len(set(listing.states_of_epochs.tolist())) > 1


def test_chances_of_joint_states_leave_the_stationary_shares_as_they_are(pair):
    """And go from each state to all, rows summing to 1, one half of the time after the other."""
    listing, law = listing_of(pair, DRAW), pair.topology.dynamics
    of_states = [listing.chance[:, listing.state == state].sum(axis=1) for state in range(9)]
    chances = np.array(of_states).T
    halves = chances_after(law, 0.5 * pair.epoch_s)
    shares = np.kron(law.stationary_shares, law.stationary_shares)

    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert shares @ chances == pytest.approx(shares)
    assert chances == pytest.approx(np.kron(halves @ halves, halves @ halves))


@pytest.mark.parametrize("cell", ["hard", "eval_held", "eval_calm"])
def test_without_foresight_is_between_the_clairvoyant_and_the_best_plan_held(pair, cell):
    """Never better than the clairvoyant; on the mean of four draws no worse than to hold."""
    world = as_in_suite(cell, pair, EPOCHS)
    own_s = held_s = 0.0
    for draw in range(DRAW, DRAW + 4):
        tables = foreseen(tables_of(world, draw, splits(world)))
        found_s = unforeseen_s(world, draw, tables)

        assert found_s is not None
        assert total_s(tables, clairvoyant(tables)) <= found_s * (1 + 1e-12)
        own_s, held_s = own_s + found_s, held_s + total_s(tables, hold(tables))
    assert own_s <= 1.01 * held_s
