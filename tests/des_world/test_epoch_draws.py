"""Draws of links for an epoch: within their law, from its seed, and by position."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_strategies import dynamics
from strategies import topologies, unit_domain

from des import Link, Topology, UniformLaw, read_topology
from des.worlds import EAST_CENTRAL_WEST


@given(
    law=dynamics(),
    correlation=st.just(0.0) | st.floats(0.0, 1.0),
    seed=st.integers(0, 2**63 - 1),
    segment=st.integers(0, 2**40),
)
def test_draws_stay_within_the_declared_swings(law, correlation, seed, segment):
    law = dataclasses.replace(law, correlation=correlation)
    bandwidth, latency = law.factors(50, seed, segment)

    assert np.all(np.abs(bandwidth - 1) <= law.bandwidth_fluctuation + 1e-15)
    assert np.all(np.abs(latency - 1) <= law.latency_jitter + 1e-15)
    assert np.all(bandwidth > 0)
    assert np.all(latency > 0)


def test_draws_are_uniform_and_every_link_direction_moves_on_its_own():
    """Mean 1, standard deviation swing / sqrt(3), no correlation, over 20 000 seeds."""
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    draws = np.array([np.concatenate(law.factors(2, seed, 0)) for seed in range(20_000)])

    assert draws.mean(axis=0) == pytest.approx([1.0] * 4, abs=0.006)
    assert draws.std(axis=0) == pytest.approx(np.array([0.3, 0.3, 0.2, 0.2]) / 3**0.5, rel=0.02)
    assert np.corrcoef(draws.T) == pytest.approx(np.eye(4), abs=0.03)


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("bandwidth_fluctuation", 1.0, "at least 0 and below 1"),
        ("latency_jitter", -0.1, "at least 0 and below 1"),
        ("latency_jitter", math.nan, "at least 0 and below 1"),
        ("update_interval_s", 0.0, "at least 0.001 and finite"),
        ("update_interval_s", math.inf, "at least 0.001 and finite"),
        ("update_interval_s", math.nan, "at least 0.001 and finite"),
    ],
)
def test_a_law_refuses_impossible_figures(field, value, allowed):
    fields = {"bandwidth_fluctuation": 0.3, "latency_jitter": 0.2, field: value}

    with pytest.raises(ValueError, match=f"dynamics: {field} must be {allowed}, got {value!r}"):
        UniformLaw(**fields)


@given(topology=topologies(min_domains=2), seed=st.integers(0, 2**32))
def test_epochs_repeat_with_the_seed_and_stay_within_the_law(topology, seed):
    world_then = topology.draw_epoch(np.random.default_rng(seed)).at_start()
    world_again = topology.draw_epoch(np.random.default_rng(seed)).at_start()

    assert world_then == world_again
    assert world_then.domains == topology.domains
    law = topology.dynamics
    for link, base in zip(world_then.links, topology.links, strict=True):
        assert (link.source, link.target) == (base.source, base.target)
        bandwidth, base_bandwidth = link.bandwidth_bytes_per_s, base.bandwidth_bytes_per_s
        assert bandwidth == pytest.approx(base_bandwidth, rel=law.bandwidth_fluctuation + 1e-9)
        assert link.latency_s == pytest.approx(base.latency_s, rel=law.latency_jitter + 1e-9)


@pytest.mark.parametrize("update_interval_s", [None, 5.0])
def test_epochs_change_with_the_generator(update_interval_s):
    law = UniformLaw(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=update_interval_s
    )
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)
    rng = np.random.default_rng(7)

    epochs = [topology.draw_epoch(rng).at_start().links for _ in range(3)]
    assert len({*epochs, topology.links}) == 4


@given(topology=topologies(min_domains=2), seed=st.integers(0, 2**63 - 1))
def test_an_epoch_that_is_drawn_once_has_the_factors_of_segment_0_of_its_seed(topology, seed):
    """So a world that moves in time starts as one that is drawn once, to the last bit."""
    law = dataclasses.replace(topology.dynamics, update_interval_s=None)
    once = dataclasses.replace(topology, dynamics=law).epoch_of(seed)
    moving = dataclasses.replace(
        topology, dynamics=dataclasses.replace(law, update_interval_s=3.0)
    ).epoch_of(seed)

    assert moving.movement.seed == seed
    assert once.movement is None
    assert once.links == topology.scaled(*law.factors(len(topology.links), seed, 0)).links
    assert moving.at_start().links == once.links


@pytest.mark.parametrize("update_interval_s", [None, 5.0])
def test_an_epoch_drawn_by_a_generator_is_that_of_its_next_seed(update_interval_s):
    law = UniformLaw(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=update_interval_s
    )
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)
    seed = int(np.random.default_rng(7).integers(2**63))

    assert topology.draw_epoch(np.random.default_rng(7)) == topology.epoch_of(seed)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True, None])
@pytest.mark.parametrize("update_interval_s", [None, 5.0])
def test_an_epoch_of_an_impossible_seed_is_refused(seed, update_interval_s):
    law = UniformLaw(
        bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=update_interval_s
    )
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)

    with pytest.raises(ValueError, match=r"topology: seed must be a whole number within \[0, 2"):
        topology.epoch_of(seed)


def test_links_that_move_within_the_iteration_keep_their_base_figures():
    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=5.0)
    topology = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)

    epoch = topology.draw_epoch(np.random.default_rng(7))
    assert epoch.movement is not None
    assert epoch.links == topology.links
    start = epoch.at_start()
    assert start.movement is None
    assert start == topology.scaled(*epoch.factors_at_start())


def test_routes_do_not_follow_jitter():
    """A-B-D is nominally quicker than A-C-D; an epoch in which it is slower does not re-route."""
    names = ("A", "B", "C", "D")
    ways = {("A", "B"): 0.01, ("B", "D"): 0.01, ("A", "C"): 0.011, ("C", "D"): 0.011}
    world = Topology.of(
        [dataclasses.replace(unit_domain("A"), name=name) for name in names],
        [
            Link(source=source, target=target, bandwidth_bytes_per_s=1e9, latency_s=latency_s)
            for (source, target), latency_s in ways.items()
        ],
    )
    nominal = world.route(0, 3)
    factors = np.array([1.5, 1.0, 1.0, 1.0])  # of A-B, A-C, B-D, C-D

    slower = world.scaled(np.ones(4), factors)

    assert [str(world.links[hop]) for hop in nominal] == ["link A->B", "link B->D"]
    assert slower.route(0, 3) == nominal
    assert slower.scaled(np.ones(4), factors).route(0, 3) == nominal
