"""Laws of moving links: paths, worlds at a time, and products of laws."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from law_strategies import laws, link_state
from strategies import bandwidth_factors, cases, topologies, unit_links

from des import STEADY, Movement, UniformLaw, read_topology, simulate
from des.base.random_numbers import derive_seed
from des.dynamics import DYNAMICS, LinkState, MarkovModulated, OrnsteinUhlenbeck, Product, Replay
from des.dynamics.link_course import Weather
from des.dynamics.replay import LinkSeries
from des.worlds import EAST_CENTRAL_WEST

OU = DYNAMICS["ou"]
MOVING_PRESETS = {name: law for name, law in DYNAMICS.items() if name not in ("steady", "stress")}


# What all laws promise.


@settings(deadline=None)
@given(law=laws(), seed=st.integers(0, 2**63 - 1), times_s=st.lists(st.floats(0.0, 1e4)))
def test_every_time_lies_in_its_piece_and_within_the_extremes(law, seed, times_s):
    few = unit_links(3)
    path = law.path(few, seed)
    low, high, quick, slow = law.extremes(few[0])
    for time_s, link in itertools.product(times_s, range(3)):
        piece = path.piece_at(link, time_s)
        assert piece.start_s <= time_s < piece.end_s
        assert low * (1 - 1e-12) <= piece.bandwidth_factor <= high * (1 + 1e-12)
        assert quick * (1 - 1e-12) <= piece.latency_factor <= slow * (1 + 1e-12)
        assert path.piece_at(link, piece.start_s) == piece
        if piece.end_s < math.inf:
            assert path.piece_at(link, piece.end_s).start_s == piece.end_s


@settings(deadline=None)
@given(
    law=laws(),
    seed=st.integers(0, 2**63 - 1),
    times_s=st.lists(st.floats(0.0, 1e4), min_size=2, max_size=8),
)
def test_a_path_depends_on_law_links_and_seed_alone(law, seed, times_s):
    """In any order of the calls, and however often."""
    one, other = law.path(unit_links(3), seed), law.path(unit_links(3), seed)

    asked = [one.piece_at(link, time_s) for link in (0, 1, 2) for time_s in times_s]
    again = [other.piece_at(link, t) for link in (2, 1, 0) for t in sorted(times_s, reverse=True)]
    assert sorted(asked) == sorted(again)


@pytest.mark.parametrize("law", MOVING_PRESETS.values(), ids=MOVING_PRESETS)
def test_seeds_and_links_have_paths_of_their_own(law):
    """No two agree at all times of a month."""
    times_s = [86400.0 * day + 3600.0 for day in range(30)]
    courses = [
        tuple(column)
        for seed in (0, 1, 2**63 - 1)
        for column in bandwidth_factors(law, seed, 3, times_s).T.tolist()
    ]

    assert len(set(courses)) == 9


def still_laws():
    """One law of each kind that moves by nothing."""
    no_swing = {"bandwidth_fluctuation": 0.0, "latency_jitter": 0.0}
    still = LinkState(
        name="one", bandwidth_factor=1.0, mean_dwell_s=0.5, followed_by=(("other", 1.0),)
    )
    other = dataclasses.replace(still, name="other", followed_by=(("one", 1.0),))
    uniform = UniformLaw(**no_swing, update_interval_s=0.3)
    wandering = OrnsteinUhlenbeck(bandwidth_sigma=0.0, relaxation_s=1.0, interval_s=0.7)
    markov = MarkovModulated(states=(still, other))
    return [uniform, wandering, markov, Product(laws=(uniform, wandering, markov))]


@pytest.mark.parametrize("law", still_laws(), ids=lambda law: type(law).__name__)
@settings(max_examples=examples(40), deadline=None)
@given(case=cases(min_domains=2), seed=st.integers(0, 2**32), start_s=st.floats(0.0, 1e4))
def test_a_law_that_moves_links_by_nothing_gives_the_constant_network(law, case, seed, start_s):
    """To the last bit."""
    topology, workload, chosen = case
    chosen = dataclasses.replace(chosen, schedule="1f1b")
    moving = Movement(law=law, seed=seed, start_s=start_s)

    found = simulate(dataclasses.replace(topology, movement=moving), workload, chosen)
    assert found == simulate(topology, workload, chosen)


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(min_domains=2), times_s=st.sets(st.floats(0.01, 1e3), max_size=5))
def test_a_trace_of_the_base_figures_gives_the_constant_network(case, times_s):
    topology, workload, chosen = case
    chosen = dataclasses.replace(chosen, schedule="1f1b")
    times_s = (0.0, *sorted(times_s))
    series = tuple(
        LinkSeries(
            source=link.source,
            target=link.target,
            times_s=times_s,
            bandwidths_bytes_per_s=(link.bandwidth_bytes_per_s,) * len(times_s),
            latencies_s=(link.latency_s,) * len(times_s),
        )
        for link in topology.links
    )
    law = Replay(name="trace", series=series, holds_last=True)

    found = simulate(
        dataclasses.replace(topology, movement=Movement(law=law, seed=0)), workload, chosen
    )
    assert found == simulate(topology, workload, chosen)


@settings(max_examples=examples(30), deadline=None)
@given(law=laws(), seed=st.integers(0, 2**32), topology=topologies(min_domains=2))
def test_an_epoch_moves_by_the_law_around_the_base_figures(law, seed, topology):
    world = dataclasses.replace(topology, dynamics=law)

    epoch = world.draw_epoch(np.random.default_rng(seed))
    assert epoch == world.draw_epoch(np.random.default_rng(seed))
    assert epoch.links == topology.links
    assert epoch.movement is not None
    assert epoch.movement.law == law
    weather = Weather(epoch.movement, epoch.links)
    at_once = [weather.piece(link, 0.0)[:2] for link in range(len(epoch.links))]
    np.testing.assert_array_equal(np.array(epoch.factors_at_start()).T, at_once)


@settings(max_examples=examples(30), deadline=None)
@given(law=laws(outages=False), first_s=st.integers(0, 1000), then_s=st.integers(0, 1000))
def test_time_0_of_a_world_can_be_moved_on_step_by_step(law, first_s, then_s):
    world = dataclasses.replace(read_topology(EAST_CENTRAL_WEST), dynamics=law)
    epoch = world.draw_epoch(np.random.default_rng(1))

    at_once = epoch.later(first_s + then_s)
    assert epoch.later(first_s).later(then_s) == at_once
    path = law.path(epoch.links, epoch.movement.seed)
    pieces = [path.piece_at(link, float(first_s + then_s)) for link in range(6)]
    bandwidth, latency = at_once.factors_at_start()
    assert bandwidth.tolist() == [piece.bandwidth_factor for piece in pieces]
    assert latency.tolist() == [piece.latency_factor for piece in pieces]
    assert at_once.at_start() == world.scaled(bandwidth, latency)


def test_links_that_stand_still_are_the_same_later():
    topology = read_topology(EAST_CENTRAL_WEST)

    assert topology.later(5.0) is topology
    with pytest.raises(ValueError, match=r"topology: duration_s must be finite and not negative"):
        topology.later(-1.0)


def test_a_link_that_is_down_has_no_standing_world_but_factors():
    down = LinkState(name="down", bandwidth_factor=0.0, mean_dwell_s=math.inf)
    law = MarkovModulated(states=(down,), starts_in="down")
    epoch = dataclasses.replace(
        read_topology(EAST_CENTRAL_WEST), movement=Movement(law=law, seed=0)
    )

    np.testing.assert_array_equal(epoch.factors_at_start(), [[0.0] * 6, [1.0] * 6])
    with pytest.raises(ValueError, match="East->Central: bandwidth_bytes_per_s must be positive"):
        epoch.at_start()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"law": STEADY}, "movement: law.update_interval_s must be given in seconds, got None"),
        ({"seed": -1}, r"seed must be a whole number within \[0, 2\*\*63\), got -1"),
        ({"seed": 2**63}, r"seed must be a whole number within \[0, 2\*\*63\), got 92233"),
        ({"seed": True}, r"seed must be a whole number within \[0, 2\*\*63\), got True"),
        ({"seed": 1.5}, r"seed must be a whole number within \[0, 2\*\*63\), got 1\.5"),
        ({"start_s": -1.0}, "movement: start_s must be from 0 to 1e.10, got -1.0"),
        ({"start_s": math.nan}, "movement: start_s must be from 0 to 1e.10, got nan"),
        ({"start_s": math.inf}, "movement: start_s must be from 0 to 1e.10, got inf"),
    ],
)
def test_a_movement_refuses_impossible_figures(fields, message):
    with pytest.raises(ValueError, match=message):
        Movement(**{"law": DYNAMICS["ou"], "seed": 1} | fields)


# Products.


def test_factors_of_several_laws_are_multiplied():
    """Around an hour after the start: each law is drawn with a seed of its own."""
    law = Product(laws=(OU, OU, DYNAMICS["markov_fast"]))
    path = law.path(unit_links(2), 31)
    parts = [
        one.path(unit_links(2), int(derive_seed(31, index, 0)))
        for index, one in enumerate(law.laws)
    ]

    for time_s in np.arange(3600.0, 3700.0, 0.7):
        pieces = [part.piece_at(1, time_s) for part in parts]
        assert path.piece_at(1, time_s) == (
            max(piece.start_s for piece in pieces),
            min(piece.end_s for piece in pieces),
            math.prod(piece.bandwidth_factor for piece in pieces),
            math.prod(piece.latency_factor for piece in pieces),
        )
    assert parts[0].piece_at(1, 0.0) != parts[1].piece_at(1, 0.0)


def test_a_product_is_down_for_ever_where_one_law_is():
    ends = MarkovModulated(
        states=(link_state("up", 5.0, down=1.0), link_state("down", math.inf, 0.0)), starts_in="up"
    )
    law = Product(laws=(OU, ends))
    start_s = law.path(unit_links(1), 32).piece_at(0, 1e6).start_s

    path = law.path(unit_links(1), 32)
    last = path.piece_at(0, 1e9)
    assert last == path.piece_at(0, start_s) == path.piece_at(0, start_s + 100.0)
    assert last[1:3] == (math.inf, 0.0)
    assert path.piece_at(0, math.nextafter(start_s, 0.0)).end_s == start_s


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ((), "dynamics: laws must hold at least one law, got none"),
        ((OU, STEADY), r"dynamics: laws\[1\]: law.update_interval_s must be given in seconds"),
    ],
)
def test_a_product_refuses_no_laws_and_such_as_stand_still(chosen, message):
    with pytest.raises(ValueError, match=message):
        Product(laws=chosen)


# Presets.


def test_presets_have_the_figures_of_their_sources():
    """2 % and 25 % standard deviation; +-30 % and +-20 %; 15 %."""
    link = unit_links(1)[0]
    assert set(DYNAMICS) == {
        "steady", "calm", "multi_cloud", "stress", "ou", "markov_fast", "markov_slow"
    }  # fmt: skip
    assert DYNAMICS["steady"].extremes(link) == (1.0, 1.0, 1.0, 1.0)
    assert DYNAMICS["stress"].extremes(link) == pytest.approx((0.7, 1.3, 0.8, 1.2))
    for name, deviation in (("calm", 0.02), ("multi_cloud", 0.25), ("ou", 0.15)):
        spread = math.sqrt(math.expm1(DYNAMICS[name].bandwidth_sigma ** 2))
        assert spread == pytest.approx(deviation, rel=0.01)
