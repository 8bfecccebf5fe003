"""Worlds that an environment can and cannot be made of."""

import dataclasses

import pytest

from agents.worlds import GivenWorld
from des import DYNAMICS, Dynamics, Product, Replay, read_topology
from des.dynamics import LinkSeries


def replay_of(topology):
    """Every link as it stands, for ever."""
    series = tuple(
        LinkSeries(
            source=link.source,
            target=link.target,
            times_s=(0.0,),
            bandwidths_bytes_per_s=(link.bandwidth_bytes_per_s,),
            latencies_s=(link.latency_s,),
        )
        for link in topology.links
    )
    return Replay(name="trace.csv", series=series, holds_last=True)


def test_a_world_whose_links_replay_a_trace_is_refused():
    """Every epoch would be the same, also where something else is on top."""
    world = read_topology("east_central_west")
    trace = replay_of(world)
    steady = Dynamics(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=1.0)

    for law in (trace, Product(laws=(steady, trace))):
        with pytest.raises(ValueError, match="must be drawn anew each epoch, got one that replays"):
            GivenWorld(topology=dataclasses.replace(world, dynamics=law))


def test_a_world_whose_links_can_go_down_is_refused_naming_the_link():
    down = DYNAMICS["markov_fast"]
    states = tuple(dataclasses.replace(state, bandwidth_factor=0.0) for state in down.states[-1:])
    law = dataclasses.replace(down, states=(*down.states[:-1], *states))
    world = dataclasses.replace(read_topology("east_central_west"), dynamics=law)

    with pytest.raises(ValueError, match="must keep every link up, got link East->Central that"):
        GivenWorld(topology=world)


@pytest.mark.parametrize("name", ["stress", "ou", "markov_fast", "multi_cloud"])
def test_the_largest_factors_are_those_of_the_law(name):
    world = dataclasses.replace(read_topology("east_central_west"), dynamics=DYNAMICS[name])
    extremes = DYNAMICS[name].extremes(world.links[0])

    assert GivenWorld(topology=world).largest_factors == (
        extremes.most_bandwidth_factor,
        extremes.most_latency_factor,
    )
