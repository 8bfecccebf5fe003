"""A watch over a job: sites and GPUs that come and go, what it remembers, and what it refuses."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watched_job import REQUEST, WORLD, after, seen, used_sites, watch

from agents.judge.placed_plans import place_on
from agents.replanning.other_plans import OtherPlans, RememberedPlan


@pytest.fixture(scope="module")
def history():
    """Verdicts, by what happened: the site in use loses GPUs, is lost, and comes back."""
    watching = watch()
    found = {"first": after(watching, 0), "same": after(watching, 6)}
    (own,) = used_sites(found["first"].plan)
    found["fewer GPUs"] = after(watching, 7, (own, "num_gpus", 4))
    found["lost"] = after(watching, 8, (own, "is_there", 0))
    found["back"] = after(watching, 30, (own, "is_there", 1), (own, "num_gpus", 8))
    return own, found, watching


def test_a_first_plan_stays_where_nothing_changes(history):
    _, found, _ = history

    assert [found[one].action for one in ("first", "same")] == ["first", "stay"]
    assert found["same"].why == "no other plan is quicker"
    assert found["same"].present_s == found["first"].plan.step_s


def test_gpus_that_are_lost_bind_the_plan_again_inside_its_site(history):
    own, found, _ = history
    verdict = found["fewer GPUs"]

    assert (verdict.action, used_sites(verdict.plan)) == ("rebind", {own})
    assert verdict.searched == ""
    assert verdict.cost.num_bytes == 0.0
    (domain,) = (one for one in verdict.plan.topology.domains if one.name == own)
    assert domain.num_gpus == 4


def test_a_site_that_is_lost_is_left_at_once_and_its_return_is_judged(history):
    own, found, _ = history

    assert found["lost"].action == "move"
    assert own not in used_sites(found["lost"].plan)
    assert f"needs {own}, which the world does not have now" in found["lost"].why
    assert found["back"].action == "stay"
    assert found["back"].searched == f"{own} is new"


def test_a_watch_of_plain_values_decides_as_the_one_they_are_of(history):
    _, _, watching = history
    text = json.dumps(watching.plain(), allow_nan=False)
    again = watch().with_plain(json.loads(text))

    assert json.dumps(again.plain()) == text
    (own,) = used_sites(watching.in_force)
    event = (own, "utilisation", 0.5)
    assert after(again, 31, event) == after(watching, 31, event)


def test_a_loaded_site_is_left_when_that_pays_and_not_before():
    """Half of the site's time is gone: a move pays in a day, and does not in a minute."""
    for horizon_s, actions in ((86_400.0, {"move"}), (60.0, {"stay"})):
        watching = watch(horizon_s=horizon_s)
        (own,) = used_sites(after(watching, 0).plan)
        verdict = after(watching, 11, (own, "utilisation", 0.5))
        assert {verdict.action} == actions
        if verdict.action == "move":
            saved = 1.0 - verdict.plan.step_s / verdict.present_s
            assert horizon_s * saved > verdict.cost.total_s
            assert verdict.cost.restart_s == 60.0


def test_a_restart_that_was_measured_takes_the_place_of_what_was_given():
    watching = watch()
    (own,) = used_sites(after(watching, 0, ("", "restart_s", 200.0)).plan)
    after(watching, 1, ("", "restart_s", 300.0), ("A->B", "bandwidth_bytes_per_s", 1e9))
    verdict = after(watching, 11, (own, "utilisation", 0.5))

    assert (verdict.action, verdict.cost.restart_s) == ("move", 250.0)


def test_nothing_can_run_where_no_site_is_there_and_the_watch_goes_on():
    watching = watch()
    gone = [(one.name, "is_there", 0) for one in WORLD.domains]

    assert after(watching, 0, *gone).action == "wait"
    assert after(watching, 1, ("B", "is_there", 1)).action == "first"


def test_advantages_that_have_faded_make_a_later_one_less_sure():
    """A plan is quicker by 0.2, an hour later by 0.1: 0.02 faded of 144 s, besides what is assumed.

    What is assumed of 360 s leaves 1/e after an hour. The second pair of plans, which was as quick,
    and the time before an hour has passed tell nothing.
    """
    plan = after(watch(), 0).plan
    others = OtherPlans(request=REQUEST)
    others.plans = [RememberedPlan(bound=plan, before_s=one) for one in (10.0, 8.0, 10.0)]
    assert others.fades_per_s == pytest.approx(1.0 / 3600.0)

    others._learn([10.0, 10.0, None], 1800.0)
    assert others.fades_per_s == pytest.approx(1.0 / 3600.0)
    others._learn([10.0, 9.0, None], 1800.0)
    assert [one.before_s for one in others.plans] == [10.0, 9.0, None]
    assumed = (1.0 - math.exp(-1.0)) / 3600.0 * 360.0
    left = 1.0 - 3600.0 * (0.02 + assumed) / (144.0 + 360.0)
    assert others.fades_per_s == pytest.approx(-math.log(left) / 3600.0)


def test_nothing_is_learnt_of_advantages_over_a_gap():
    plan = after(watch(), 0).plan
    others = OtherPlans(request=REQUEST)
    others.plans = [RememberedPlan(bound=plan, before_s=one) for one in (10.0, 8.0)]

    others._learn([10.0, 9.0], 7200.0)
    assert others.fades_per_s == pytest.approx(1.0 / 3600.0)
    assert [one.before_s for one in others.plans] == [10.0, 9.0]


@given(steps=st.lists(st.floats(1.0, 100.0), min_size=6, max_size=6))
def test_advantages_fade_at_a_positive_rate_whatever_was_seen(steps):
    plan = after(watch(), 0).plan
    others = OtherPlans(request=REQUEST)
    others.plans = [RememberedPlan(bound=plan, before_s=one) for one in steps[:3]]
    others._learn(steps[3:], 3600.0)

    assert 0.0 < others.fades_per_s < math.inf


def test_staying_loses_time_against_a_quicker_plan_until_that_is_in_force():
    """Ten minutes against a plan that saves a fifth are two; then it is left for the other."""
    plan = after(watch(), 0).plan
    other = replace(plan, workload=replace(plan.workload, name="other"))
    others = OtherPlans(request=REQUEST)
    others.plans = [
        RememberedPlan(bound=other, step_s=8.0),
        RememberedPlan(bound=plan, step_s=10.0),
    ]

    (found,) = others.judge(plan, 600.0)
    assert (found.lost_s, found.bound.workload.name) == (pytest.approx(120.0), "other")
    others.put_in_force(found.bound)
    assert [(one.bound.workload.name, one.lost_s) for one in others.plans][-1] == ("other", 0.0)


def test_the_first_plans_are_forgotten_and_never_the_one_in_force():
    plan = after(watch(), 0).plan
    plans = [replace(plan, workload=replace(plan.workload, name=f"{at}")) for at in range(12)]
    others = OtherPlans(request=REQUEST)
    for one in (*plans, plans[9]):
        others.remember(one)

    kept = [int(one.bound.workload.name) for one in others.plans]
    assert kept == [4, 5, 6, 7, 8, 10, 11, 9]


def test_known_and_late_observations_change_nothing():
    watching = watch()
    for minute, said in ((5, "taken"), (5, "known"), (4, "late"), (6, "taken")):
        one = seen(minute, "A->B", "bandwidth_bytes_per_s", 1e9 * (minute + 1))
        assert watching.take(one) == said
    restarts = [watching.take(seen(1, "", "restart_s", 9.0)) for _ in range(2)]

    assert restarts == ["taken", "known"]
    assert watching.world.stale(seen(7, "A", "is_there", 1).time_s) == ("A->B",)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("A->Z", "latency_s", 1.0), "unknown link 'A->Z'"),
        (("Z", "is_there", 1), "unknown site 'Z'"),
        (("A", "latency_s", 1.0), "A: must have one of is_there, num_gpus"),
        (("A->B", "bandwidth_bytes_per_s", 0.0), "bandwidth_bytes_per_s must be positive"),
        (("A->B", "bandwidth_bytes_per_s", -1.0), "bandwidth_bytes_per_s must be positive"),
        (("A", "num_gpus", 1.5), "num_gpus must be a whole number"),
        (("A", "utilisation", 1.5), r"utilisation must be within \[0, 1\]"),
        (("A", "is_there", 0.5), "is_there must be 0 or 1"),
    ],
)
def test_observations_that_cannot_be_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        watch().take(seen(0, *wrong))


def test_a_placed_plan_takes_the_same_time_whatever_order_the_sites_have():
    plan = after(watch(), 0).plan
    turned = type(WORLD).of(WORLD.domains[::-1], WORLD.links)

    assert place_on(plan, turned).step_s == plan.step_s
    assert used_sites(place_on(plan, turned)) == used_sites(plan)
