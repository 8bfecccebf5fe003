"""Epochs of a world: the law of its links and the load composed, in any order of the calls."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.decision.frozen_network import freeze_topologies, freeze_topology
from agents.decision.load import loaded
from des import STEADY, Movement, UniformLaw
from des.base.random_numbers import derive_seed
from des.dynamics import DYNAMICS
from scenarios.suites import LoadLaw, suite
from scenarios.suites.laws import LAWS

SEEDS = st.integers(0, 2**63 - 1)


def test_load_is_uniform_and_held_for_its_dwell():
    law = LoadLaw(dwell_epochs=8)
    factors = np.array([law.factors(5, 3, epoch) for epoch in range(0, 8000, 8)])

    assert 0.8 <= factors.min() < 0.801
    assert 1.199 < factors.max() < 1.2
    deviation = 0.4 / np.sqrt(12)
    assert factors.mean() == pytest.approx(1.0, abs=4 * deviation / np.sqrt(factors.size))
    assert factors.std() == pytest.approx(deviation, rel=0.03)
    assert np.abs(np.corrcoef(factors.T) - np.eye(5)).max() < 4 / np.sqrt(1000)
    assert abs(np.corrcoef(factors[:-1, 0], factors[1:, 0])[0, 1]) < 4 / np.sqrt(1000)
    for epoch in range(16, 24):
        assert law.factors(5, 3, epoch).tolist() == factors[2].tolist()


def test_load_of_a_domain_does_not_depend_on_how_many_there_are():
    assert LoadLaw().factors(3, 1, 9).tolist() == LoadLaw().factors(10, 1, 9)[:3].tolist()
    assert LoadLaw().factors(3, 1, 9).tolist() != LoadLaw().factors(3, 2, 9).tolist()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"low_factor": 0.0}, "load law: low_factor must be positive"),
        ({"high_factor": float("nan")}, "load law: high_factor must be positive"),
        ({"low_factor": 1.3}, "load law: low_factor must be at most high_factor 1.2, got 1.3"),
        ({"dwell_epochs": 0}, "load law: dwell_epochs must be a whole number from 1"),
    ],
)
def test_bad_load_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        LoadLaw(**fields)


@pytest.mark.parametrize("name", ["uniform", "ou", "markov_fast"])
def test_an_epoch_is_the_law_and_the_load_composed_by_hand(name):
    """Links by the path of the law at the start of the epoch, speeds by the load law."""
    found = next(one for one in suite("train").worlds(24, seed=3) if one.law == name)
    law, key = found.topology.dynamics, int(found.digest[:15], 16)
    links_seed, load_seed = (int(derive_seed(21, key, part)) for part in (0, 1))
    path = law.path(found.topology.links, links_seed)
    for epoch in (63, 0, 7, 40):
        seen = found.epoch_topology(21, epoch).at_start()

        pieces = [
            path.piece_at(link, epoch * found.epoch_s) for link in range(len(found.topology.links))
        ]
        assert [link.bandwidth_bytes_per_s for link in seen.links] == [
            link.bandwidth_bytes_per_s * piece.bandwidth_factor
            for link, piece in zip(found.topology.links, pieces, strict=True)
        ]
        assert [link.latency_s for link in seen.links] == [
            link.latency_s * piece.latency_factor
            for link, piece in zip(found.topology.links, pieces, strict=True)
        ]
        factors = found.load.factors(found.num_domains, load_seed, epoch)
        assert seen.domains == loaded(found.topology, factors).domains
        assert [domain.attainable_fraction for domain in seen.domains] == (0.5 * factors).tolist()


@pytest.mark.parametrize(
    ("name", "stands_still"), [("eval_held", True), ("hard", False), ("eval_static", True)]
)
def test_links_move_within_an_epoch_where_their_law_does(name, stands_still):
    found = suite(name).world(0, 1)
    last = found.num_epochs - 1
    topology = found.epoch_topology(5, last)

    assert found.has_still_epochs == stands_still
    if stands_still:
        assert topology.movement is None
    else:
        assert isinstance(topology.movement, Movement)
        assert topology.movement.start_s == last * found.epoch_s
        assert topology.movement.law == found.topology.dynamics


@pytest.mark.parametrize("name", ["uniform", "ou", "markov_fast", "markov_slow", "steady"])
@given(seed=SEEDS)
@settings(max_examples=3)
def test_epochs_that_share_a_course_are_those_that_draw_their_own(name, seed):
    found = replace(suite("hard").world(1, 6), num_epochs=12)
    moving = replace(found, topology=replace(found.topology, dynamics=LAWS[name](found.epoch_s)))

    together = freeze_topologies(moving, seed, 9)

    assert together == tuple(freeze_topology(moving, seed, epoch) for epoch in range(9))


def test_held_links_and_load_change_every_eighth_epoch_together():
    found = suite("eval_held").world(1, 4)
    epochs = [found.epoch_topology(0, epoch) for epoch in range(24)]

    for epoch in range(1, 24):
        is_new = epoch % 8 == 0
        assert (epochs[epoch].links != epochs[epoch - 1].links) == is_new
        assert (epochs[epoch].domains != epochs[epoch - 1].domains) == is_new


def test_static_worlds_have_a_load_and_links_at_their_base_figures():
    found = suite("eval_static").world(3)
    topology = found.epoch_topology(0, 0)

    assert found.topology.dynamics == STEADY
    assert topology.links == found.topology.links
    assert len({domain.attainable_fraction for domain in topology.domains}) == found.num_domains


def test_epochs_do_not_depend_on_what_was_asked_before_and_draws_differ():
    found = suite("hard").world(1, 6)
    forwards = [found.epoch_topology(2, epoch) for epoch in range(8)]

    again = suite("hard").world(1, 6)
    assert [again.epoch_topology(2, epoch) for epoch in reversed(range(8))] == forwards[::-1]
    other = [found.epoch_topology(3, epoch) for epoch in range(8)]
    assert all(one != two for one, two in zip(forwards, other, strict=True))


@pytest.mark.parametrize(("name", "held_s"), [("ou_60s", 300.0), ("ou_600s", 4.0), ("ou", 600.0)])
def test_wandering_links_have_the_figures_of_the_presets(name, held_s):
    law = LAWS[name](held_s)

    assert law.bandwidth_sigma == 0.15
    assert law.relaxation_s == {"ou_60s": 60.0}.get(name, 600.0)
    assert LAWS["ou_60s"](300.0) == DYNAMICS["ou"]
    assert LAWS["uniform"](7.0) == UniformLaw(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=7.0
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"iterations_per_epoch": 9}, "iterations_per_epoch must be at least 10, got 9"),
        ({"iterations_per_epoch": 2.5}, "iterations_per_epoch must be a whole number"),
        ({"epoch_s": 0.0}, "epoch_s must be positive and finite, got 0.0"),
        ({"num_epochs": 0}, "num_epochs must be a whole number from 1"),
        ({"seed": -1}, r"seed must be a whole number within \[0, 2\*\*63\), got -1"),
        ({"target_ratio": float("inf")}, "target_ratio must be positive"),
        ({"schedule": "2f2b"}, "schedule: must be one of"),
        ({"load": LoadLaw(high_factor=2.5)}, "attainable_fraction of domain domain0 must be at mo"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(fields, message):
    found = suite("eval_held").world(0)

    with pytest.raises(ValueError, match=message):
        replace(found, **fields)


def test_a_topology_under_way_or_drawn_by_epochs_is_refused():
    found = suite("hard").world(0)

    with pytest.raises(ValueError, match="topology must not be moving already"):
        replace(found, topology=found.epoch_topology(0, 0))
    once = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    with pytest.raises(ValueError, match=r"law.update_interval_s must be given in seconds, got No"):
        replace(found, topology=replace(found.topology, dynamics=once))


@pytest.mark.parametrize(
    ("draw_seed", "epoch", "message"),
    [
        (-1, 0, "draw_seed must be a whole number within"),
        (0, 64, "epoch must be a whole number from 0 to 63, got 64"),
        (0, -1, "epoch must be a whole number from 0 to 63, got -1"),
        (0, True, "epoch must be a whole number from 0 to 63, got True"),
    ],
)
def test_an_epoch_that_there_is_not_is_refused(draw_seed, epoch, message):
    with pytest.raises(ValueError, match=f"world eval_held-0-0000: {message}"):
        suite("eval_held").world(0).epoch_topology(draw_seed, epoch)
