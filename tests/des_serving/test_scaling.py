"""The scaling manager and what decisions lead to: starts, drains, migrations, cancellations."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from des.serving.fleet_engine import Fleet, run
from des.serving.fleet_settings import ScalingLimits, StartDelay
from des.serving.fleet_world import Decision
from des.serving.scaling_steps import to_remove
from tests.fleet_cases import SECOND, Planned, engine, fleet_world, request

LONG = [request(0, 0.0, 10, 40), request(1, 0.0, 10, 40)]


PACKED = ScalingLimits(max_total=8, packs_servers=True)


def fleet(initial=None, **changes):
    """A fleet at its start whose requests take 40 s."""
    return Fleet(fleet_world(LONG, initial or {"mixed": 2}, engine=engine(SECOND), **changes))


def status(found):
    """Active, starting, draining and all instances."""
    summary = found.manager.get_status_summary()
    assert set(summary) == {
        "active_instances",
        "scaling_up_instances",
        "draining_instances",
        "total_servers",
        "total_instances",
    }
    return tuple(summary.values())


def decide(found, migrate=0, **counts):
    """Simulate to the next decision and decide."""
    view = found.next_view()
    assert view is not None
    found.apply(view, Decision(counts=counts, migrate=migrate))
    return view


def test_a_scale_up_is_executed_after_its_delay_on_servers_of_four_instances():
    found = fleet(start=StartDelay(provision_s=1.0, load_s=1.0, warm_up_s=0.5), limits=PACKED)
    assert status(found) == (2, 0, 0, 1, 2)
    decide(found, mixed=6)
    assert status(found) == (2, 4, 0, 2, 6)
    decide(found)
    view = decide(found)
    assert view.pools["mixed"].start_left_s == pytest.approx(0.5)
    decide(found)
    assert status(found) == (6, 0, 0, 2, 6)
    assert found.manager.log[-4:] == [
        f"3.500 [ScalingManager] Instance {number} scaled up at 3.50" for number in (2, 3, 4, 5)
    ]


def test_each_change_is_logged_once_and_so_is_what_limits_held():
    found = fleet(start=StartDelay(provision_s=1.0), limits=replace(PACKED, max_total=5))
    decide(found, mixed=9)
    decide(found, mixed=0)
    while found.next_view() is not None:
        pass
    lines = [line.split(" ", 1)[1] for line in found.manager.log[2:]]
    servers = {0: 0, 1: 0, 2: 0, 3: 0, 4: 1}
    assert lines[0] == "[Action Blocked] Max cluster size reached (5)"
    assert lines[1:7] == [
        line
        for number in (2, 3, 4)
        for line in (
            f"[ScalingManager] Full scale-up: server {servers[number]} + instance {number}",
            f"[Action] Added mixed instance {number} on server {servers[number]}",
        )
    ]
    assert "[Action Blocked] Cannot remove mixed, min limit reached" in lines
    assert {line for line in lines if "Removed" in line} == {
        f"[Action] Removed mixed instance {number}" for number in (1, 2, 3, 4)
    }
    assert "[ScalingManager] Auto scale-down server 1 after instance removal" in lines
    assert any("draining started at 2.00" in line for line in lines)


def test_active_instances_drain_before_starting_ones_are_cancelled_on_servers_of_their_own():
    found = fleet()
    decide(found, mixed=4)
    decide(found, mixed=3)
    assert status(found) == (1, 2, 1, 4, 4)
    decide(found, mixed=1)
    assert status(found) == (1, 0, 1, 2, 2)
    assert found.manager.instances[3].stopped_s == 3.0


def test_the_least_loaded_active_instance_is_drained_by_the_measure_of_its_pool():
    """Prompts by tokens to read, writers by tokens in memory, whatever the number of requests."""

    def member(number, pool, **load):
        return SimpleNamespace(number=number, pool=pool, state="active", **load)

    prompts = [
        member(0, "prompt", due_tokens=9, used=0, present=1),
        member(1, "prompt", due_tokens=8, used=99, present=2),
        member(2, "prompt", due_tokens=7, used=99, present=3),
    ]
    writers = [
        member(3, "token", due_tokens=0, used=5, present=3),
        member(4, "token", due_tokens=0, used=9, present=1),
    ]
    assert [one.number for one in to_remove(prompts, 2)] == [2, 1]
    assert [one.number for one in to_remove(writers, 1)] == [3]


def test_pools_have_engines_of_their_own_and_the_state_counts_active_instances():
    small = engine(SECOND, num_gpus=1, kv_capacity_tokens=500)
    found = fleet({"prompt": 1, "token": 2}, engines={"token": small})
    decide(found)
    decide(found)
    view = decide(found, token=1)
    assert [one.engine.num_gpus for one in found.manager.instances] == [2, 1, 1]
    assert view.pools["token"].running == 2
    draining = next(one for one in found.manager.instances if one.state == "draining")
    view = found.next_view()
    assert (view.pools["token"].running, draining.present) == (1, 1)
    (active,) = found.members["token"]
    assert view.pools["token"].kv_fraction == active.used / 500
    assert {one.num_gpus for one in found.history().instances} == {1, 2}
    with pytest.raises(ValueError, match="engines must be of the pools"):
        fleet(engines={"token": small})


def test_a_drain_ends_with_its_last_request_and_is_cancelled_when_load_returns():
    found = fleet()
    decide(found, mixed=1)
    draining = next(one for one in found.manager.instances if one.state == "draining")
    decide(found, mixed=2)
    assert draining.state == "active"
    decide(found, mixed=1)
    history = run(fleet_world(LONG, {"mixed": 2}, engine=engine(SECOND)), Planned(({"mixed": 1},)))
    stopped = [one.stopped_s for one in history.instances if one.stopped_s is not None]
    assert stopped == [40.0]


@pytest.mark.parametrize(("check_s", "stopped_s"), [(0.0, 5.5), (1.0, 6.0)])
def test_a_drain_times_out_and_its_requests_are_served_elsewhere(check_s, stopped_s):
    limits = ScalingLimits(max_total=8, drain_timeout_s=4.5, drain_check_s=check_s)
    world = fleet_world(LONG, {"mixed": 2}, engine=engine(SECOND), limits=limits)
    history = run(world, Planned(({"mixed": 1},)))

    assert [one.stopped_s for one in history.instances if one.stopped_s] == [stopped_s]
    assert sorted(row.num_restarts for row in history.requests) == [0, 1]
    assert all(row.end_s is not None for row in history.requests)


def test_an_instance_migrates_without_a_new_start():
    found = fleet({"prompt": 2, "token": 1})
    decide(found, migrate=1, prompt=2, token=1)
    for _ in range(3):
        view = decide(found)
    assert (view.pools["prompt"].active, view.pools["token"].active) == (1, 2)
    assert len(found.manager.instances) == 3


def test_pools_keep_their_least_and_the_whole_its_most():
    found = fleet({"prompt": 1, "token": 1})
    decide(found, migrate=3, prompt=0, token=0)
    assert status(found)[:3] == (2, 0, 0)
    decide(found, prompt=90, token=5)
    assert status(found)[4] == 8


def test_a_pool_keeps_its_most_and_limits_that_contradict_are_refused():
    found = fleet({"prompt": 1, "token": 1}, limits=ScalingLimits(max_total=8, max_per_pool=3))
    decide(found, prompt=9, token=2)
    assert {pool: len(each) for pool, each in found.observer.pool_instances().items()} == {
        "prompt": 3,
        "token": 2,
    }
    with pytest.raises(ValueError, match="must not decrease"):
        ScalingLimits(min_per_pool=3, max_per_pool=2)
    with pytest.raises(ValueError, match="must not decrease"):
        ScalingLimits(min_per_pool=9, max_total=8)


def test_a_direct_order_is_checked():
    found = fleet()
    server, instance = found.manager.scale_up_full(engine(SECOND), 2, "mixed")
    assert instance in server.instances
    assert found.manager.get_active_instances([instance]) == []
    with pytest.raises(ValueError, match="parallelism"):
        found.manager.scale_up_full(engine(SECOND), 4, "mixed")
    with pytest.raises(ValueError, match="server_sku"):
        found.manager.scale_up_full(engine(SECOND), 2, "mixed", "tiny")
    found.manager.scale_down_full(instance)
    with pytest.raises(ValueError, match="must be starting or active, got stopped"):
        found.manager.scale_down_full(instance)
    with pytest.raises(ValueError, match="must be draining"):
        found.manager.keep(instance)


def test_flaps_are_counted_and_a_cooldown_prevents_them():
    changing = Planned(tuple({"mixed": 2 + number % 2} for number in range(8)))
    world = fleet_world(LONG, {"mixed": 2}, engine=engine(SECOND))
    calm = fleet_world(
        LONG,
        {"mixed": 2},
        engine=engine(SECOND),
        limits=ScalingLimits(max_total=8, cooldown_s=60.0),
    )
    assert run(world, changing).num_flaps == 6
    assert run(calm, changing).num_flaps == 0


def test_start_times_are_drawn_by_seed_and_instance():
    delay = StartDelay(load_s=10.0, variation=0.5)
    world = fleet_world(LONG, {"mixed": 1}, engine=engine(SECOND), start=delay)
    up = Planned(({"mixed": 3},))

    first, again, other = (run(world, up, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.instances != other.instances
