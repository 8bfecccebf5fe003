"""Links that change between states, against closed forms.

Seeds are fixed, and four standard deviations of what theory says are allowed.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from law_strategies import link_state, markov_laws
from scipy import stats
from strategies import bandwidth_factors, unit_links

from des.dynamics import DYNAMICS, MarkovModulated

THREE = MarkovModulated(
    states=(
        link_state("normal", 10.0, 1.0, congested=0.75, down=0.25),
        link_state("congested", 4.0, 0.25, 2.0, normal=0.5, down=0.5),
        link_state("down", 2.0, 0.0, 3.0, normal=1.0),
    )
)


def test_shares_of_time_by_hand():
    """Per entry into normal: 3/4 into congested, 1/4 + 3/8 into down. 10 : 3 : 1.25 seconds."""
    assert THREE.stationary_shares == pytest.approx((10 / 14.25, 3 / 14.25, 1.25 / 14.25))


@given(law=markov_laws())
def test_shares_of_time_balance(law):
    """What flows into a state flows out of it."""
    if math.inf in [one.mean_dwell_s for one in law.states]:
        assert law.last_states
        return
    shares = dict(zip([one.name for one in law.states], law.stationary_shares, strict=True))
    inflow = dict.fromkeys(shares, 0.0)
    for one in law.states:
        for name, probability in one.followed_by:
            inflow[name] += shares[one.name] * probability / one.mean_dwell_s
    for one in law.states:
        assert inflow[one.name] == pytest.approx(shares[one.name] / one.mean_dwell_s, abs=1e-9)
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("time_s", [0.0, 3.0, 100.0])
def test_links_are_in_each_state_for_its_share(time_s, correlation):
    """Over independent paths, from the first moment on; correlation changes no single link."""
    count = 3000
    law = dataclasses.replace(THREE, correlation=correlation)
    factors = [bandwidth_factors(law, seed, 1, [time_s]).item() for seed in range(count)]

    for one, share in zip(law.states, law.stationary_shares, strict=True):
        found = factors.count(one.bandwidth_factor) / count
        assert found == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / count))


def stays(law, seed, num_links, end_s):
    """Whole stays of each link as (bandwidth factor, length, next bandwidth factor)."""
    path = law.path(unit_links(num_links), seed)
    found = []
    for link in range(num_links):
        piece = path.piece_at(link, path.piece_at(link, 0.0).end_s)
        while piece.end_s < end_s:
            following = path.piece_at(link, piece.end_s)
            length_s = piece.end_s - piece.start_s
            found.append((piece.bandwidth_factor, length_s, following.bandwidth_factor))
            piece = following
    return found


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_stays_are_exponential_with_their_mean_and_successors(correlation):
    law = dataclasses.replace(THREE, correlation=correlation)
    # With correlation the links are no independent sample, so one link, for longer.
    found = stays(law, 21, 20, 2000.0) if correlation == 0 else stays(law, 21, 1, 40_000.0)

    factor_of = {one.name: one.bandwidth_factor for one in law.states}
    for one in law.states:
        lengths_s = [length_s for factor, length_s, _ in found if factor == one.bandwidth_factor]
        count = len(lengths_s)
        assert count > 1000
        expected_s = one.mean_dwell_s
        assert np.mean(lengths_s) == pytest.approx(expected_s, rel=4 / math.sqrt(count))
        assert stats.kstest(lengths_s, "expon", (0, expected_s)).pvalue > 1e-4
        for name, probability in one.followed_by:
            after = [
                following == factor_of[name]
                for factor, _, following in found
                if factor == one.bandwidth_factor
            ]
            deviation = math.sqrt(probability * (1 - probability) / count)
            assert np.mean(after) == pytest.approx(probability, abs=4 * deviation)


def two_states(correlation):
    """Links that are at 1 and at 0.5 for a second each."""
    return MarkovModulated(
        states=(link_state("high", 1.0, 1.0, low=1.0), link_state("low", 1.0, 0.5, high=1.0)),
        correlation=correlation,
    )


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8, 1.0])
def test_links_correlate_from_the_start(correlation):
    count, law = 2000, two_states(correlation)
    factors = [bandwidth_factors(law, seed, 2, [0.0])[0] for seed in range(count)]

    found = np.corrcoef(np.array(factors).T)[0, 1]
    assert found == pytest.approx(correlation / (2 - correlation), abs=4 / math.sqrt(count))


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_links_of_two_equal_states_correlate_by_the_closed_form(correlation):
    """c / (2 - c): they part at the rate 2 (1 - c) / dwell and meet at 2 / dwell."""
    law = two_states(correlation)
    times_s = np.arange(20.0, 20_020.0, 5.0)  # e^-10 apart: as good as independent

    found = np.corrcoef(bandwidth_factors(law, 22, 2, times_s).T)[0, 1]
    assert found == pytest.approx(correlation / (2 - correlation), abs=4 / math.sqrt(len(times_s)))


def test_a_state_brings_its_latency_too():
    path = THREE.path(unit_links(5), 23)
    pairs = {path.piece_at(link, t)[2:] for link in range(5) for t in np.arange(0.0, 500.0, 5.0)}

    assert pairs == {(1.0, 1.0), (0.25, 2.0), (0.0, 3.0)}


@pytest.mark.parametrize(
    "end",
    [
        (link_state("down", math.inf, 0.0),),
        (link_state("down", 5.0, 0.0, out=1.0), link_state("out", 5.0, 0.0, down=1.0)),
    ],
    ids=["one state", "two states"],
)
def test_an_outage_that_cannot_be_left_is_one_piece_for_ever(end):
    up = link_state("up", 5.0, 1.0, down=1.0)
    law = MarkovModulated(states=(up, *end), starts_in="up")
    path = law.path(unit_links(1), 24)

    first = path.piece_at(0, 0.0)
    last = path.piece_at(0, first.end_s)
    assert first[2:] == (1.0, 1.0)
    assert last == (first.end_s, math.inf, 0.0, 1.0)
    assert path.piece_at(0, 1e12) == last


BAD_STATES = {
    "factor": ({"factor": -0.5}, "state up: bandwidth_factor must be finite and not negative"),
    "NaN": ({"factor": math.nan}, "state up: bandwidth_factor must be finite and not negative"),
    "latency": ({"latency_factor": math.inf}, "state up: latency_factor must be finite and not n"),
    "dwell 0": ({"dwell_s": 0.0}, "state up: mean_dwell_s must be positive, got 0.0"),
    "dwell NaN": ({"dwell_s": math.nan}, "state up: mean_dwell_s must be positive, got nan"),
    "for ever": ({"dwell_s": math.inf}, "state up: followed_by must be left out where mean_dwell"),
    "sum": ({"down": 0.5}, "state up: followed_by must have probabilities that sum to 1, got 0.5"),
    "none": ({"down": None}, "state up: followed_by must have probabilities that sum to 1, got 0"),
    "chance": ({"down": 1.5}, "state up: followed_by down must have a probability above 0"),
    "itself": ({"down": 0.5, "up": 0.5}, r"state up: followed_by must name other states \(down\)"),
    "unknown": ({"down": 0.5, "on": 0.5}, r"followed_by must name other states \(down\), got 'on'"),
    "too long": ({"dwell_s": 1e9}, r"inf or of at most 1e\+06 times the shortest, got 1000000000"),
}


@pytest.mark.parametrize(("fields", "message"), BAD_STATES.values(), ids=BAD_STATES)
def test_a_chain_refuses_impossible_states(fields, message):
    chosen = {"name": "up", "dwell_s": 5.0, "down": 1.0} | fields
    chosen = {field: value for field, value in chosen.items() if value is not None}

    with pytest.raises(ValueError, match=f"dynamics: .*{message}"):
        MarkovModulated(states=(link_state(**chosen), link_state("down", 1.0, 0.0, up=1.0)))


UP, DOWN = link_state("up", 5.0, down=1.0), link_state("down", 5.0, 0.0, up=1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"states": ()}, r"states must be at least one and have names of their own, got \[\]"),
        ({"states": (UP, UP)}, "states must be at least one and have names of their own"),
        ({"starts_in": "left"}, "starts_in must be one of up, down; got 'left'"),
        ({"correlation": 2.0}, "correlation must be from 0 to 1, got 2.0"),
        (
            {"states": (link_state("up", math.inf),)},
            "starts_in must be given where states cannot be left",
        ),
        (
            {
                "states": (
                    UP,
                    DOWN,
                    link_state("a", 1.0, b=1.0),
                    link_state("b", 1.0, a=1.0),
                )
            },
            "starts_in must be given where states cannot be left",
        ),
    ],
)
def test_a_chain_refuses_impossible_figures(fields, message):
    with pytest.raises(ValueError, match=f"dynamics: {message}"):
        MarkovModulated(**{"states": (UP, DOWN)} | fields)


@pytest.mark.parametrize(
    ("name", "dwells_s", "every_s"),
    [("markov_fast", (3000, 900, 360), 28_800), ("markov_slow", (36_000, 14_400, 3600), 345_600)],
)
def test_markov_presets_have_their_dwells_and_outages(name, dwells_s, every_s):
    """An outage begins once every (dwell / share of time) seconds on average."""
    law = DYNAMICS[name]

    assert tuple(one.mean_dwell_s for one in law.states) == dwells_s
    assert tuple(one.bandwidth_factor for one in law.states) == (1.0, 0.3, 0.05)
    assert dwells_s[2] / law.stationary_shares[2] == pytest.approx(every_s)
