"""Links as planners see them: late, only while in use, with errors, and by their law."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import world

from agents.replanning.link_sight import LinkSight, SeenLinks
from des import Link, MarkovModulated, Placement, Plan, Topology
from des.dynamics import STEADY, LinkState, UniformLaw
from des.training.training_settings import EpochView
from des.world.domain_load import DomainLoad

EPOCH_S = 600.0
BASE = world("ABC", {"AB": (1.0, 0.5), "BA": (1.0, 0.5), "BC": (1.0, 0.5), "CB": (1.0, 0.5)})
PLAN = Plan(placement=Placement.parse("0*2,1*2"))


def view(epoch, rates, plan=PLAN):
    """A view of an epoch in which links have some rates; those of none are down."""
    links = [
        replace(link, bandwidth_bytes_per_s=rate)
        for link, rate in zip(BASE.links, rates, strict=True)
        if rate is not None
    ]
    return EpochView(
        epoch=epoch,
        time_s=epoch * EPOCH_S,
        topology=Topology.of(BASE.domains, links),
        loads=(DomainLoad(),) * 3,
        load_changes=(),
        plan=plan,
    )


def seen_by(sight, views, base=BASE, seed=0):
    """Rates that the planner of a run sees in each view, by the ends of links."""
    found = []

    def planner(seen):
        rates = {one.source + one.target: one.bandwidth_bytes_per_s for one in seen.topology.links}
        found.append(rates)
        return PLAN

    planned = SeenLinks(planner=planner, sight=sight, base=base, epoch_s=EPOCH_S, seed=seed)
    assert [planned(one) for one in views] == [PLAN] * len(views)
    return found


def test_late_figures_are_those_of_the_latest_view_that_is_old_enough():
    views = [view(0, (2.0, 3.0, 4.0, 5.0)), view(1, (6.0, 7.0, None, 9.0)), view(2, (1.0,) * 4)]

    first, second, third = seen_by(LinkSight(delay_s=EPOCH_S), views)

    assert first == {"AB": 1.0, "BA": 1.0, "BC": 1.0, "CB": 1.0}  # nothing yet: base figures
    assert second == {"AB": 2.0, "BA": 3.0, "BC": 4.0, "CB": 5.0}
    assert third == {"AB": 6.0, "BA": 7.0, "CB": 9.0}  # one was down


def test_links_that_the_plan_does_not_use_keep_what_was_seen_last():
    other = Plan(placement=Placement.parse("1*2,2*2"))
    views = [
        view(0, (2.0, 3.0, 4.0, 5.0)),
        view(1, (6.0, 7.0, 8.0, 9.0), other),
        view(2, (0.5,) * 4),
    ]

    first, second, third = seen_by(LinkSight(in_use_alone=True), views)

    assert first == {"AB": 2.0, "BA": 3.0, "BC": 1.0, "CB": 1.0}
    assert second == {"AB": 2.0, "BA": 3.0, "BC": 8.0, "CB": 9.0}
    assert third == {"AB": 0.5, "BA": 0.5, "BC": 8.0, "CB": 9.0}


def test_before_the_first_plan_no_link_is_in_use():
    (first,) = seen_by(LinkSight(in_use_alone=True), [view(0, (2.0,) * 4, plan=None)])

    assert set(first.values()) == {1.0}


def test_errors_have_the_spread_that_is_given_and_those_of_a_seed():
    views = [view(epoch, (1.0,) * 4) for epoch in range(500)]
    found, again, other = (
        np.log([list(one.values()) for one in seen_by(LinkSight(noise=0.3), views, seed=seed)])
        for seed in (3, 3, 4)
    )

    assert found.std() == pytest.approx(0.3, rel=0.1)
    assert abs(found.mean()) < 0.03
    assert (found == again).all()
    assert (found != other).all()


JAMMED = MarkovModulated(
    states=(
        LinkState(name="free", bandwidth_factor=1.0, mean_dwell_s=2e3, followed_by=(("jam", 1.0),)),
        LinkState(
            name="jam", bandwidth_factor=0.25, mean_dwell_s=2e3, followed_by=(("free", 1.0),)
        ),
    )
)
"""Two states of equal dwell: logarithms have the mean log(1/2), and forget at 1 / 1,000 s."""


def test_by_the_law_an_old_figure_returns_to_the_mean_as_its_correlation_falls():
    """After 600 s exp(-0.6) of what a jam takes is left; the horizon takes the mean of epochs."""
    base = replace(BASE, dynamics=JAMMED)
    sight = LinkSight(delay_s=EPOCH_S, belief="law")
    planned = SeenLinks(planner=lambda _: PLAN, sight=sight, base=base, epoch_s=EPOCH_S, seed=0)
    mean, left = planned.law_of_logs

    assert mean == pytest.approx(np.log(0.5), abs=0.05)
    assert left[0] == pytest.approx(1.0)
    assert left[1] == pytest.approx(np.exp(-0.6), abs=0.06)
    assert left[3] == pytest.approx(np.exp(-1.8), abs=0.08)
    views = [view(0, (0.25, 1.0, 1.0, None)), view(1, (1.0,) * 4)]
    first, second = seen_by(sight, views, base)
    assert first["AB"] == pytest.approx(np.exp(mean))
    assert second["AB"] == pytest.approx(np.exp(mean + left[1] * (np.log(0.25) - mean)))
    assert second["BA"] == pytest.approx(np.exp(mean + left[1] * (0.0 - mean)))
    assert second["CB"] < second["AB"]  # was down, and may be back
    (ahead,) = seen_by(LinkSight(belief="law", horizon_epochs=2), views[:1], base)
    weight = (left[0] + left[1]) / 2.0
    assert ahead["AB"] == pytest.approx(np.exp(mean + weight * (np.log(0.25) - mean)))


def test_draws_that_are_made_anew_in_every_epoch_leave_nothing_of_an_old_figure():
    base = replace(BASE, dynamics=UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.0))
    views = [view(0, (0.7, 1.3, 1.0, 1.0)), view(1, (1.0,) * 4)]

    _, second = seen_by(LinkSight(delay_s=EPOCH_S, belief="law"), views, base)

    assert list(second.values()) == pytest.approx([1.0] * 4, abs=0.06)


@given(rates=st.lists(st.tuples(*[st.floats(0.1, 10.0)] * 4), min_size=1, max_size=4))
def test_full_sight_without_a_law_is_the_world_as_it_is(rates):
    views = [view(epoch, each) for epoch, each in enumerate(rates)]

    assert [tuple(one.values()) for one in seen_by(LinkSight(), views)] == rates
    assert LinkSight().is_plain


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"delay_s": -1.0}, "delay_s"),
        ({"noise": float("nan")}, "noise"),
        ({"belief": "hope"}, "belief must be one of last, law; got 'hope'"),
        ({"horizon_epochs": 0}, "horizon_epochs"),
    ],
)
def test_what_is_no_sight_is_refused_by_its_field(changes, field):
    with pytest.raises(ValueError, match=f"link sight: {field}"):
        LinkSight(**changes)


def test_routes_stay_those_of_the_world_whatever_latencies_are_seen():
    """A link that is down has no part in them."""
    views = [view(0, (2.0, 3.0, None, 5.0))]
    found = []

    def planner(seen):
        found.append(seen.topology)
        return PLAN

    SeenLinks(planner=planner, sight=LinkSight(noise=0.1), base=BASE, epoch_s=EPOCH_S, seed=0)(
        views[0]
    )
    (topology,) = found
    assert topology.routing_latencies_s == (0.5,) * 3
    assert topology.dynamics == STEADY
    assert topology.movement is None


def test_a_link_keeps_what_is_not_bandwidth():
    seen = SeenLinks(
        planner=lambda _: PLAN,
        sight=LinkSight(delay_s=EPOCH_S, belief="law"),
        base=replace(BASE, dynamics=JAMMED),
        epoch_s=EPOCH_S,
        seed=0,
    )
    seen(view(0, (2.0,) * 4))

    for one, base in zip(seen.believed(EPOCH_S).links, BASE.links, strict=True):
        assert isinstance(one, Link)
        assert replace(one, bandwidth_bytes_per_s=1.0) == replace(base, bandwidth_bytes_per_s=1.0)
