"""Applications on one cluster: grants by hand, servers never too many, one alone as by itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.serving.applications import Application, SharedCluster, run_applications
from des.serving.arbiters import ARBITERS, Claim, granted_instances
from des.serving.fleet_engine import run
from des.serving.fleet_settings import ScalingLimits
from tests.fleet_cases import Drawn, Planned, drawn_stream, engine, fleet_world

CLAIMS = (
    Claim(num_wanted=3, num_held=4, num_gpus=2, priority=2),
    Claim(num_wanted=3, num_held=1, num_gpus=2),
    Claim(num_wanted=1, num_held=0, num_gpus=8, priority=1),
)


@pytest.mark.parametrize(
    ("name", "granted"),
    [("first_come", (3, 1, 0)), ("priority", (3, 1, 0)), ("max_min", (0, 0, 1))],
)
def test_grants_by_hand(name, granted):
    """Eight free GPUs on one server."""
    assert granted_instances(CLAIMS, [8], ARBITERS[name]) == granted


def test_equal_claims_are_served_in_turn():
    claims = [
        Claim(num_wanted=4, num_held=0, num_gpus=2),
        Claim(num_wanted=4, num_held=0, num_gpus=2),
    ]
    assert granted_instances(claims, [4, 2, 1], ARBITERS["max_min"]) == (2, 1)


def application(seed, policy=None, initial=None, num_gpus=2, **changes):
    """A small application."""
    world = fleet_world(
        drawn_stream(seed, 60, 8.0),
        initial or {"mixed": 1},
        engine=engine(num_gpus=num_gpus),
        limits=ScalingLimits(max_total=20, packs_servers=True),
        **changes,
    )
    return Application(world=world, policy=policy or Drawn(seed))


def test_an_application_alone_is_as_by_itself():
    alone = application(3)
    (history,) = run_applications({"a": alone}, SharedCluster(num_servers=50), 3).values()
    expected = run(alone.world, alone.policy, 3)
    assert history.requests == expected.requests
    assert history.instances == expected.instances


@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), name=st.sampled_from(sorted(ARBITERS)))
def test_servers_are_never_too_many_and_requests_are_conserved(seed, name):
    grow = Planned(({"mixed": 9},))
    given = {
        "small": application(seed, grow),
        "pairs": application(seed + 1, initial={"prompt": 1, "token": 1}),
        "large": application(seed + 2, grow, num_gpus=8),
    }
    histories = run_applications(given, SharedCluster(num_servers=4, arbiter=name), seed)
    spans = [
        (start_s, end_s, history.world.engine.num_gpus)
        for history in histories.values()
        for one in history.instances
        for _, start_s, end_s in one.spans
    ]
    for at_s, _, _ in spans:
        assert sum(gpus for start_s, end_s, gpus in spans if start_s <= at_s < end_s) <= 32
    for history in histories.values():
        assert all(row.end_s is not None for row in history.requests)
    assert histories == run_applications(given, SharedCluster(num_servers=4, arbiter=name), seed)


def test_the_arbiter_says_what_it_denies_and_priority_wins():
    histories = {}
    for first in (0, 1):
        given = {
            name: Application(
                world=(one := application(number, Planned(({"mixed": 8},)))).world,
                policy=one.policy,
                priority=int(number == first),
            )
            for number, name in enumerate(("a", "b"))
        }
        cluster = SharedCluster(num_servers=2, gpus_per_server=8, arbiter="priority")
        histories[first] = run_applications(given, cluster)
    starting = {
        (first, name): history.decisions[1][0].pools["mixed"].starting
        for first, both in histories.items()
        for name, history in both.items()
    }
    assert starting == {(0, "a"): 6, (0, "b"): 0, (1, "a"): 0, (1, "b"): 6}
    assert "the arbiter denies 7" in histories[0]["b"].decisions[0][1].why


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: SharedCluster(num_servers=0), "num_servers"),
        (lambda: SharedCluster(num_servers=1, arbiter="max-min"), "did you mean 'max_min'"),
        (lambda: run_applications({}, SharedCluster(num_servers=1)), "at least 1"),
        (
            lambda: run_applications(
                {"a": application(1), "b": application(1, decision_interval_s=2.0)},
                SharedCluster(num_servers=4),
            ),
            "same decision_interval_s",
        ),
        (
            lambda: run_applications(
                {"a": application(1, initial={"mixed": 5})}, SharedCluster(num_servers=1)
            ),
            "must fit on 1 servers",
        ),
    ],
)
def test_bad_clusters_are_refused(make, named):
    with pytest.raises(ValueError, match=named):
        make()
