"""Worlds that an environment can and cannot be made of."""

import dataclasses

import pytest

from agents.flat.worlds import GivenWorld
from des import DYNAMICS, Dynamics, read_topology

UNIFORM = [name for name, law in DYNAMICS.items() if isinstance(law, Dynamics)]


@pytest.mark.parametrize("name", sorted(set(DYNAMICS) - set(UNIFORM)))
def test_a_law_with_a_memory_is_refused_as_epochs_are_drawn_one_by_one(name):
    world = dataclasses.replace(read_topology("east_central_west"), dynamics=DYNAMICS[name])

    with pytest.raises(ValueError, match=f"uniform, .*; got {type(DYNAMICS[name]).__name__}$"):
        GivenWorld(topology=world)


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_laws_are_taken(name):
    world = dataclasses.replace(read_topology("east_central_west"), dynamics=DYNAMICS[name])

    assert GivenWorld(topology=world).dynamics == DYNAMICS[name]
