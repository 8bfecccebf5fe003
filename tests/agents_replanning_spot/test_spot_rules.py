"""Rules on sites that come and go, and the bound of the clairvoyant."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spot_cases import HOUR_S, RandomChoice, course_of, drawn_world, set_offers, stays, three_sites

from agents.replanning.spot.clairvoyant import most_tokens
from agents.replanning.spot.futures import value_offers
from agents.replanning.spot.look_ahead import SampledRule, SeasonalRule, fit_season
from agents.replanning.spot.rules import (
    HysteresisRule,
    OfferTables,
    SurvivalRule,
    best_offers,
    lasting,
    site_survival,
)
from des.dynamics.stay_law import StayLaw
from des.spot.batch import SpotBatch, run_spot_batch
from des.spot.world import NOTHING, SpotView, SpotWorld


class Sequences:
    """Follows a row of offers in each world, a tick each."""

    def __init__(self, rows: np.ndarray, tick_s: float) -> None:
        self._rows, self._tick_s = rows, tick_s

    def choose(self, view: SpotView) -> np.ndarray:
        """Return the offer of the tick."""
        ticks = np.minimum((view.time_s / self._tick_s).astype(int), self._rows.shape[1] - 1)
        return self._rows[np.arange(len(ticks)), ticks]


def view_of(world: SpotWorld, held: int, ages_s: list[float]) -> SpotView:
    """All sites up for some time, an offer held and in place."""
    batch = SpotBatch([world], [0], [0])
    view = batch.view()
    return replace(
        view,
        held=np.array([held]),
        home=np.array([held]),
        up=np.ones_like(view.up),
        age_s=np.array([ages_s]),
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_clairvoyant_is_the_best_of_all_sequences(seed: int) -> None:
    """Exact: of every sequence of offers of two sites for six ticks, with notice and no failures.

    Ticks are so long that moves take one or two of them.
    """
    rng = np.random.default_rng(seed)
    course = course_of((rng.random((6, 2)) < 0.75).astype(int).tolist(), tick_s=400.0)
    offers = replace(set_offers(2), failures_per_s=np.zeros(3))
    world = SpotWorld(course=course, offers=offers, notice_s=1e6, ticks_per_decision=1)
    rows = np.array(list(product(range(-1, 3), repeat=6)))

    histories = run_spot_batch([world] * len(rows), Sequences(rows, 400.0), [0] * len(rows))

    assert most_tokens(world) == pytest.approx(max(one.tokens for one in histories))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), salt=st.integers(0, 100))
def test_no_policy_beats_the_clairvoyant(seed: int, salt: int) -> None:
    """Whatever it does."""
    world = drawn_world(seed, 300)

    (history,) = run_spot_batch([world], RandomChoice(7, salt), [seed])

    assert history.tokens <= most_tokens(world) * (1 + 1e-9)


def test_a_clairvoyant_by_hand() -> None:
    """One site: from outside 365 s, down for a tick, then a restart in place of 365 s."""
    course = course_of([[1], [1], [0], [1], [1]], tick_s=1000.0)
    world = SpotWorld(course=course, offers=set_offers(1))

    rate = float(world.offers.kept_tokens_per_s[0])

    assert most_tokens(world) == pytest.approx(rate * (4000.0 - 2 * 365.0))


def test_hysteresis_moves_where_it_pays_within_the_horizon() -> None:
    """From one site to three: 463 s and a checkpoint of 245 s, at 2.4 times the rate."""
    world = drawn_world(0, 50)
    tables = OfferTables.of([world])
    view = view_of(world, held=0, ages_s=[0.0, 0.0, 0.0])
    rates = world.offers.kept_tokens_per_s
    pays_after_s = (463.0 + 245.0) / (1 - rates[0] / rates[6])

    for horizon_s, offer in ((pays_after_s - 30.0, 0), (pays_after_s + 30.0, 6)):
        (chosen,) = HysteresisRule(tables=tables, horizon_s=horizon_s).choose(view)
        assert chosen == offer
    (greedy,) = HysteresisRule(tables=tables, horizon_s=np.inf).choose(view)
    assert greedy == 6


def test_survival_prefers_what_has_lasted() -> None:
    """Of two equal sites the one that is up for longer, and no other than hysteresis without."""
    world = drawn_world(0, 50)
    law = np.array([[stays(900.0, 3 * HOUR_S).figures] * 3])
    rule = SurvivalRule(tables=OfferTables.of([world]), stays_up=law, horizon_s=2 * HOUR_S)
    view = replace(
        view_of(world, held=NOTHING, ages_s=[600.0, 86400.0, 600.0]),
        up=np.array([[True, True, False]]),
    )

    pairs_cost_more = replace(rule.tables, tokens_per_s=np.full((1, 7), 1e5))
    (chosen,) = replace(rule, tables=pairs_cost_more).choose(view)
    assert world.offers.names[chosen] == "b"

    sure = np.array(
        [
            [
                StayLaw(
                    weight=1, median_s=1e12, sigma=0.3, other_median_s=1.0, other_sigma=1.0
                ).figures
            ]
            * 3
        ]
    )
    held = view_of(world, held=0, ages_s=[600.0] * 3)
    plain = HysteresisRule(tables=rule.tables, horizon_s=rule.horizon_s)
    assert replace(rule, stays_up=sure).choose(held) == plain.choose(held)


def test_old_stays_are_likely_to_last() -> None:
    """Heavy tails: the chance to last 2 h more rises with age, as it was counted in traces."""
    law = np.array([[three_sites().sites[0].up.figures] * 3])
    ages_s = np.array([[600.0, 4 * HOUR_S, 48 * HOUR_S]])

    chances = site_survival(law, ages_s, np.array([2 * HOUR_S]))[0, :, 0]
    mean_s, last = lasting(law, ages_s, 2 * HOUR_S)

    assert chances[0] < chances[1] < chances[2]
    assert last[0].tolist() == chances.tolist()
    assert (mean_s <= 2 * HOUR_S).all()


def test_sampling_a_law_without_losses_is_hysteresis() -> None:
    """All futures are the present: the plan is to take the fastest offer."""
    world = drawn_world(0, 50)
    sure = StayLaw(weight=1, median_s=1e12, sigma=0.3, other_median_s=1.0, other_sigma=1.0)
    figures = np.array([[(sure.figures, sure.figures)] * 3])
    rule = SampledRule(tables=OfferTables.of([world]), figures=figures, horizon_s=8 * HOUR_S)

    (chosen,) = rule.choose(view_of(world, held=0, ages_s=[600.0] * 3))

    assert chosen == 6


def test_sampled_decisions_depend_on_nothing_but_the_view() -> None:
    """Equal for a world alone and beside others, and for both courses of action repeated."""
    worlds = [drawn_world(seed, 200, sees_all=False) for seed in range(3)]
    figures = np.stack([three_sites().figures] * 3)

    def run(chosen: slice) -> list[object]:
        rule = SampledRule(
            tables=OfferTables.of(worlds[chosen]), figures=figures[chosen], horizon_s=4 * HOUR_S
        )
        return list(run_spot_batch(worlds[chosen], rule, [0] * len(worlds[chosen])))

    assert run(slice(0, 3)) == run(slice(0, 1)) + run(slice(1, 3))


def test_a_season_is_that_of_its_course() -> None:
    """Up in the first half of each day: known by the hour, and nothing is left of a deviation."""
    hours = np.arange(24 * 20) % 24
    course = course_of([[int(hour < 12), 1] for hour in hours], tick_s=HOUR_S)

    profile, left = fit_season(course)

    assert profile[0].tolist() == [1.0] * 12 + [0.0] * 12
    assert profile[1].tolist() == [1.0] * 24
    assert left[:, 0].tolist() == [1.0, 1.0]


def test_a_seasonal_rule_leaves_before_the_hour_at_which_a_site_goes() -> None:
    """At 11 h the site that is up by day is not begun with, though both are up."""
    world = drawn_world(0, 50)
    offers = replace(world.offers, tokens_per_s=np.full(7, 1e5))
    tables = OfferTables.of([replace(world, offers=offers)])
    profile = np.array([[[1.0] * 12 + [0.0] * 12, [1.0] * 24, [0.0] * 24]])
    rule = SeasonalRule(
        tables=tables, profile=profile, left=np.zeros((1, 3, 64)), horizon_s=8 * HOUR_S
    )
    view = replace(
        view_of(world, held=NOTHING, ages_s=[3600.0] * 3), time_s=np.array([11 * HOUR_S])
    )

    assert world.offers.names[int(rule.choose(view)[0])] == "b"


def test_of_equal_offers_the_one_held_stays() -> None:
    """And nothing is asked for where nothing may be up."""
    view = view_of(drawn_world(0, 50), held=2, ages_s=[0.0] * 3)
    scores = np.ones((1, 7))

    assert best_offers(scores, np.ones((1, 7), np.bool_), view).tolist() == [2]
    assert best_offers(scores, np.zeros((1, 7), np.bool_), view).tolist() == [NOTHING]


def test_a_site_that_was_down_is_asked_for_again_after_a_while() -> None:
    """Under a partial view."""
    world = drawn_world(0, 50)
    tables = OfferTables.of([world])
    view = replace(view_of(world, 0, [0.0] * 3), up=np.array([[True, False, False]]))
    view = replace(view, seen_s=np.array([[0.0, 600.0, 2000.0]]))

    allowed = tables.may_be_up(view, 1800.0)[0]

    names = [name for name, each in zip(world.offers.names, allowed, strict=True) if each]
    assert names == ["a", "c", "ac"]


def valued(held, home, chances):
    """Two steps of 100 tokens with site a, and 150 with b as well; b is up by its chances."""
    needs = np.array([[[True, False], [False, True], [True, True]]])
    gains, moves = np.array([[100.0, 100.0, 150.0]]), np.full((1, 3, 3), 10.0)
    asked = np.array([[0.0, 40.0, 40.0]]), np.array([held]), np.array([home])
    futures = np.array([[[[1.0, chance] for chance in chances]]])
    values = np.zeros((1, 3))
    value_offers(needs, (gains, moves, moves * (1.0 - np.eye(3))), asked, futures, values)
    return values[0].tolist()


@pytest.mark.parametrize(("held", "home", "refused"), [(0, 0, 200.0), (-1, 0, 90.0), (-1, -1, 0.0)])
def test_an_offer_whose_site_is_down_is_refused_and_costs_nothing(held, home, refused):
    """Site b is down, asked for alone or with a.

    The one held goes on; a job that waits goes back to a in the second step, for 10 tokens.
    """
    assert valued(held, home, (0.0, 0.0)) == [200.0, refused, refused]


def test_an_offer_that_may_be_up_counts_by_its_chance():
    """By hand: b is up now with chance 1/2, and then surely; both together train 150 a step.

    Asked for together: 150 + 150 - 40 if it is up, else 100 with a alone and then 150 - 10.
    """
    found = valued(0, 0, (0.5, 1.0))[2]

    assert found == 0.5 * (150.0 + 150.0 - 40.0) + 0.5 * (100.0 + 150.0 - 10.0)


def test_a_forecast_forgets_what_was_not_seen_for_long():
    """A site that was down long ago is as usual again; one that is down now stays out."""
    world = replace(drawn_world(0, 50), sees_all=False)
    view = view_of(world, 0, [HOUR_S] * 3)
    left = np.exp(-np.arange(64) / 4.0) * np.ones((1, 3, 1))
    rule = SeasonalRule(
        tables=OfferTables.of([world]),
        profile=np.full((1, 3, 24), 0.9),
        left=left,
        horizon_s=HOUR_S,
    )
    down = replace(view, up=np.array([[True, False, False]]))

    now = rule.choose(replace(down, seen_s=np.zeros((1, 3))))
    later = rule.choose(replace(down, seen_s=np.array([[0.0, 1e6, 1e6]])))

    assert now.tolist() == [0]
    assert world.offers.needs[later[0]].sum() > 1


def test_what_is_not_seen_is_up_as_often_as_in_futures():
    """Of sites that are seen the chance is 0 or 1."""
    world = replace(drawn_world(0, 50), sees_all=False)
    law = three_sites()
    rule = SampledRule(
        tables=OfferTables.of([world]), figures=law.figures[np.newaxis], horizon_s=HOUR_S
    )
    view = SpotBatch([world], [0], [0]).view()

    _, chance = rule.outlook(view)
    seen = replace(view, up=np.array([[True, False, True]]), seen_s=np.zeros((1, 3)))
    _, known = rule.outlook(seen)

    assert ((chance >= 0.0) & (chance <= 1.0)).all()
    up = ~(world.offers.needs & ~seen.up[0]).any(axis=1)
    assert known[0].tolist() == up.astype(float).tolist()
