"""The world of the environment: epochs of a draw are parts of one course of links and loads."""

import copy
import pickle
from dataclasses import replace

import pytest

from agents.scheduling.make_task import make_world
from des import DYNAMICS, Movement, UniformLaw, read_topology
from des.base.random_numbers import derive_seed


def shipped(**changes):
    return make_world(**({"num_epochs": 4} | changes))


@pytest.mark.parametrize("law", ["markov_fast", "ou", "stress"])
def test_links_are_those_of_one_movement_whatever_is_asked_first(law):
    world = shipped(law=law)
    forward = [world.epoch_topology(7, epoch) for epoch in range(4)]
    world.epoch_topology(8, 0)
    back = [world.epoch_topology(7, epoch) for epoch in (3, 2, 1, 0)]
    seed = int(derive_seed(7, 0, 0))

    assert forward == back[::-1]
    assert len({one.links for one in forward}) > 1
    for epoch, found in enumerate(forward):
        movement = Movement(law=found.dynamics, seed=seed, start_s=epoch * world.epoch_s)
        assert found == replace(world.topology, domains=found.domains, movement=movement).at_start()


def test_a_copy_of_a_world_draws_the_same_courses():
    world = shipped()
    drawn = world.epoch_topology(7, 3)

    for copied in (copy.deepcopy(world), pickle.loads(pickle.dumps(world))):
        assert copied == world
        assert copied.epoch_topology(7, 3) == drawn


def test_loads_hold_for_their_epochs():
    world = shipped(law="steady")
    speeds = [
        [domain.attainable_fraction for domain in world.epoch_topology(1, epoch).domains]
        for epoch in range(4)
    ]

    assert speeds == [speeds[0]] * 4
    base = [domain.attainable_fraction for domain in world.topology.domains]
    assert all(0.5 * most <= own <= most for own, most in zip(speeds[0], base, strict=True))


def test_a_law_drawn_once_an_epoch_holds_for_one():
    assert shipped(law=None).topology.dynamics == UniformLaw(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=1200.0
    )


@pytest.mark.parametrize(
    ("numbers", "message"),
    [((-1, 0), "draw_seed"), ((0, 4), "epoch must be a whole number from 0 to 3, got 4")],
)
def test_numbers_out_of_range_are_refused(numbers, message):
    with pytest.raises(ValueError, match=message):
        shipped().epoch_topology(*numbers)


def test_a_network_that_moves_already_is_refused():
    moving = replace(
        read_topology("four_uneven"), movement=Movement(law=DYNAMICS["markov_fast"], seed=0)
    )
    with pytest.raises(ValueError, match="topology must not be moving already"):
        shipped(network=moving)
