"""Warm and sleeping instances, drains that move requests out, drains by expected time."""

import pytest

from des.serving.fleet_engine import Fleet, run
from des.serving.fleet_figures import run_figures
from des.serving.fleet_settings import ScalingLimits, StartDelay
from des.serving.fleet_world import Decision
from des.serving.scaling_steps import drain_s, to_remove
from tests.fleet_cases import SECOND, Planned, engine, fleet_world, request

LATE = [request(0, 60.0, 10, 2)]


def states_after(start, plan):
    """Spans of the instances of an idle fleet that follows a plan."""
    world = fleet_world(LATE, {"mixed": 2}, engine=engine(SECOND), start=start)
    return [one.spans for one in run(world, Planned(plan)).instances]


UP_AND_DOWN = ({"mixed": 1}, {"mixed": 1}, {"mixed": 2})


def test_a_warm_instance_serves_at_once_and_a_sleeping_one_after_its_wake():
    warm = states_after(StartDelay(load_s=9.0, num_warm=1), UP_AND_DOWN)
    asleep = states_after(StartDelay(load_s=9.0, num_sleeping=1, wake_s=2.0), UP_AND_DOWN)
    cold = states_after(StartDelay(load_s=9.0), UP_AND_DOWN)

    assert warm[1] == (("active", 0.0, 1.0), ("warm", 1.0, 3.0), ("active", 3.0, 62.0))
    assert asleep[1][1:3] == (("sleeping", 1.0, 3.0), ("starting", 3.0, 5.0))
    assert len(cold) == 3
    assert cold[2][0] == ("starting", 3.0, 12.0)


def test_a_cancelled_wake_sleeps_again_and_is_not_woken_by_the_first_order():
    plan = (*UP_AND_DOWN, {"mixed": 1}, {"mixed": 2})
    spans = states_after(StartDelay(num_sleeping=1, wake_s=2.5), plan)
    assert spans[1][1:5] == (
        ("sleeping", 1.0, 3.0),
        ("starting", 3.0, 4.0),
        ("sleeping", 4.0, 5.0),
        ("starting", 5.0, 7.5),
    )


@pytest.mark.parametrize(("share", "seconds"), [(1.0, 62.0), (0.25, 62.0 - 0.75 * 61.0)])
def test_sleep_costs_its_share(share, seconds):
    start = StartDelay(num_sleeping=1, sleeping_cost=share)
    world = fleet_world(LATE, {"mixed": 2}, engine=engine(SECOND), start=start)
    figures = run_figures(run(world, Planned(({"mixed": 1},))))
    assert figures["gpu_h"] == pytest.approx((62.0 + seconds) * 2 / 3600.0)


LONG = [request(0, 0.0, 10, 40), request(1, 0.0, 10, 40)]


@pytest.mark.parametrize("initial", [{"mixed": 2}, {"prompt": 1, "token": 2}])
def test_a_drain_that_moves_out_ends_with_the_transfers(initial):
    """A request of 10 + 4 tokens takes 14 ms on the way and continues on the other instance."""
    pool = list(initial)[-1]
    ends = {}
    for moves in (False, True):
        limits = ScalingLimits(max_total=8, drain_moves_out=moves)
        world = fleet_world(LONG, initial, engine=engine(SECOND), limits=limits)
        history = run(world, Planned(({}, {}, {}, {pool: 1})))
        ends[moves] = next(one.stopped_s for one in history.instances if one.stopped_s)
        assert all(row.num_restarts == 0 for row in history.requests)
        assert {row.end_s is not None for row in history.requests} == {True}
    assert ends[True] < 6.0
    assert ends[False] > 38.0


def test_the_last_instance_of_a_pool_keeps_its_requests():
    """The other instance still starts: there is none to move to."""
    limits = ScalingLimits(max_total=8, drain_moves_out=True)
    world = fleet_world(LONG[:1], {"mixed": 1}, engine=engine(SECOND), limits=limits)
    fleet = Fleet(world)
    fleet.next_view()
    (only,) = fleet.manager.instances
    fleet.members["mixed"].remove(only)
    fleet.manager.scale_down_full(only)
    assert fleet.next_view() is not None
    assert (only.state, len(only.writing)) == ("draining", 1)


def test_the_instance_expected_to_be_empty_first_is_drained():
    """One has a request at its beginning, the other two near their mean length."""
    requests = [request(0, 0.0, 10, 30), request(1, 20.0, 10, 300), request(2, 20.0, 10, 30)]
    world = fleet_world(requests, {"mixed": 2}, engine=engine(SECOND))
    fleet = Fleet(world)
    for _ in range(25):
        view = fleet.next_view()
    assert view is not None
    first, second = fleet.manager.instances
    assert [first.present, second.present] == [2, 1]
    first.writing[1].written = 29
    assert drain_s(first, 30.0) < drain_s(second, 30.0)
    assert to_remove([first, second], 1) == [second]
    assert to_remove([first, second], 1, 30.0) == [first]
    fleet.apply(view, Decision(counts={"mixed": 2}))


def test_bad_spares_are_refused():
    with pytest.raises(ValueError, match="num_warm must be a whole number"):
        StartDelay(num_warm=-1)
    with pytest.raises(ValueError, match="sleeping_cost must be within"):
        StartDelay(sleeping_cost=1.5)
