"""Planning on bandwidths that are expected: mean, worst case and autoregression."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import plan, unit_workload, world

from agents.decision.problem import PlanningProblem
from agents.decision.situation import Situation
from agents.planners.exact.exact import exact
from agents.replanning.forecast import (
    ar1_bandwidths,
    mean_bandwidths,
    on_ar1_forecast,
    on_mean,
    on_worst_case,
    worst_bandwidths,
)
from des import InfeasiblePlacementError, Plan, Topology
from des.plan.replacement import Replacement

FOUR_LAYERS = unit_workload([(1, 1)] * 4, num_microbatches=8, message_bytes=1.0)


def course(*bandwidths: float) -> np.ndarray:
    return np.array(bandwidths)[:, np.newaxis]


def test_mean_and_worst_are_those_of_each_link():
    seen = np.array([[1.0, 8.0], [3.0, 2.0], [5.0, 2.0]])

    assert mean_bandwidths(seen).tolist() == [3, 4]
    assert worst_bandwidths(seen).tolist() == [1, 2]


def test_autoregression_by_hand():
    """Logs 0, 1, 0, 1: ``a = 1, b = -1`` does not return to a mean; 0, 2, 1, 1.5 does.

    There each step halves the way to 4/3 and turns round: ``b = -1/2, a = 2``. From 1.5 the next
    is 1.25, so two epochs have a mean of 1.375.
    """
    turning = ar1_bandwidths(np.exp(course(0.0, 1.0, 0.0, 1.0)), 5)
    assert np.log(turning) == pytest.approx([1.0])

    settling = np.exp(course(0.0, 2.0, 1.0, 1.5))
    assert np.log(ar1_bandwidths(settling, 2)) == pytest.approx([1.375])
    assert np.log(ar1_bandwidths(settling, 10_000)) == pytest.approx([4 / 3], abs=1e-4)


@given(
    slope=st.floats(-0.9, 0.9),
    mean=st.floats(-3.0, 3.0),
    start=st.floats(-3.0, 3.0),
    num_epochs=st.integers(1, 9),
)
def test_a_course_without_noise_is_continued_exactly(slope, mean, start, num_epochs):
    logs = [start]
    for _ in range(5 + num_epochs):
        logs.append(mean + slope * (logs[-1] - mean))
    expected = np.mean(logs[5 : 5 + num_epochs])
    forecast = ar1_bandwidths(np.exp(course(*logs[:6])), num_epochs)

    is_moving = abs(start - mean) > 1e-3 and abs(slope) > 1e-2
    assert np.log(forecast) == pytest.approx([expected], abs=1e-6 if is_moving else 0.1)


@pytest.mark.parametrize(
    "logs", [(1.0, 2.0, 1.5), (2.0, 2.0, 2.0, 2.0), (1.0, 2.0, 4.0, 8.0), (5.0,)]
)
def test_links_that_tell_too_little_are_expected_to_stay(logs):
    """Too few epochs, no movement, and a course that runs away."""
    assert np.log(ar1_bandwidths(np.exp(course(*logs)), 4)) == pytest.approx([logs[-1]])


def test_a_horizon_of_the_present_epoch_is_the_network_as_it_is():
    seen = np.exp(np.random.default_rng(0).normal(size=(20, 3)))

    assert ar1_bandwidths(seen, 1) == pytest.approx(seen[-1])


# The scheduler.


def pair(rate: float) -> Topology:
    return world("AB", {"AB": (rate, 0.0), "BA": (rate, 0.0)})


def situation(rate: float, last: Plan | None, **changes) -> Situation:
    given = Situation(
        topology=pair(rate),
        base=pair(1.0),
        workload=FOUR_LAYERS,
        epoch=0,
        epoch_s=60.0,
        replacement=Replacement(restart_s=1.0, pays_bytes=False),
        last_plan=last,
    )
    return dataclasses.replace(given, **changes)


def rates_planned_on(on, rates, **settings) -> list[float]:
    """Bandwidths that a planner that never moves gets to plan on."""
    asked: list[float] = []

    def noted(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        asked.append(problem.topology.links[0].bandwidth_bytes_per_s)
        return problem.last_plan or plan(0, 0, 0, 0)

    scheduler, last = on(noted, **settings), None
    for rate in rates:
        last = scheduler.decide(situation(rate, last)).plan
    scheduler.begin()
    scheduler.decide(situation(7.0, last))
    return asked


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        (on_mean, [4.0, 3.0, 4.0, 4.0]),
        (on_worst_case, [4.0, 2.0, 2.0, 2.0]),
        (on_ar1_forecast, [4.0, 2.0, 6.0, None]),
    ],
)
def test_planners_are_asked_on_the_forecast_from_what_was_seen_since_the_beginning(on, expected):
    rates = [4.0, 2.0, 6.0, 4.0]
    *asked, after = rates_planned_on(on, rates, horizon_epochs=3)
    if expected[3] is None:
        expected[3] = float(ar1_bandwidths(course(*rates), 3)[0])

    assert asked == pytest.approx(expected)
    assert after == pytest.approx(7.0)


def test_a_plan_is_changed_where_the_forecast_pays_for_it():
    """Slow links: alone, 64 s. Then they are free: 36 s, so 60 s are worth a change of 26.25 s."""
    alone, split = plan(0, 0, 0, 0), plan(0, 0, 1, 1)
    for restart_s, taken in ((26.0, split), (26.5, alone)):
        scheduler = on_worst_case(exact, horizon_epochs=1)
        costly = Replacement(restart_s=restart_s, pays_bytes=False)
        decision = scheduler.decide(situation(1e9, alone, replacement=costly))
        assert decision.plan.placement.num_borders == taken.placement.num_borders
        assert decision.level == ("nothing" if taken == alone else "order")

    patient = on_worst_case(exact, horizon_epochs=2)
    costly = Replacement(restart_s=26.5, pays_bytes=False)
    assert patient.decide(situation(1e9, alone, replacement=costly)).level == "order"


def test_worst_cases_are_remembered():
    scheduler = on_worst_case(exact)
    first = scheduler.decide(situation(1e-6, None))
    second = scheduler.decide(situation(1e9, first.plan))

    assert (first.level, second.level) == ("order", "nothing")
    assert second.plan.placement.num_borders == 0


def test_where_nothing_fits_the_last_plan_stays_as_a_fallback():
    full = tuple(dataclasses.replace(domain, gpu_memory_bytes=1.0) for domain in pair(1.0).domains)
    small = dataclasses.replace(pair(1.0), domains=full)
    scheduler = on_mean(exact)

    with pytest.raises(InfeasiblePlacementError):
        scheduler.decide(situation(1.0, None, topology=small))
    kept = scheduler.decide(situation(1.0, plan(0, 0, 1, 1), topology=small))
    assert (kept.plan, kept.level, kept.is_fallback) == (plan(0, 0, 1, 1), "nothing", True)
