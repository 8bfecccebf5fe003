"""Objectives: how they are read, what they rank first and what they allow."""

import math

import pytest
from bound_cases import sites

from agents.decision.situation import Preference
from agents.search.objective import ComparedFigures, PlanObjective


def figures(step_s=10.0, **changes):
    values = {
        "step_s": step_s,
        "utilisation": 0.5,
        "wan_bytes": 0.0,
        "memory_fraction": 0.5,
        "num_sites": 1,
        "usd": None,
    }
    return ComparedFigures(**(values | changes))


def test_time_ranks_by_the_step_then_by_memory_then_by_sites():
    plans = [
        figures(11.0, memory_fraction=0.1),
        figures(10.0, memory_fraction=0.9),
        figures(10.0, memory_fraction=0.4, num_sites=2),
        figures(10.0, memory_fraction=0.4),
    ]

    assert PlanObjective().ranking(plans) == [3, 2, 1, 0]


def test_cost_ranks_by_usd():
    plans = [figures(10.0, usd=3.0), figures(20.0, usd=2.0), figures(9.0, usd=3.0)]

    assert PlanObjective.parse("cost").ranking(plans) == [1, 2, 0]


def test_weights_rank_by_speed_use_and_bytes():
    """R of the first: 0.5 x 1 - 0.5 x 1 = 0; of the second 0.5 x 10 / 15 + 0."""
    plans = [figures(10.0, wan_bytes=8.0), figures(15.0)]

    assert PlanObjective.parse("0.5,0,0.5").ranking(plans) == [1, 0]
    assert PlanObjective.parse("0.9,0,0.1").ranking(plans) == [0, 1]
    assert PlanObjective.parse("0,1,0").ranking([figures(utilisation=0.1), figures(20.0)]) == [1, 0]


@pytest.mark.parametrize(
    ("text", "most_s", "most_usd"),
    [
        ("90 s", 90.0, math.inf),
        ("2 min", 120.0, math.inf),
        ("0.5h", 1800.0, math.inf),
        ("5 USD", math.inf, 5.0),
    ],
)
def test_limits_are_times_or_costs(text, most_s, most_usd):
    found = PlanObjective.parse("time", text)

    assert (found.most_s, found.most_usd) == (most_s, most_usd)
    assert found.is_time_alone == (most_usd == math.inf)


def test_what_is_over_a_limit_is_not_allowed():
    assert PlanObjective.parse("time", "10 s").allows(figures(10.0))
    assert not PlanObjective.parse("time", "9 s").allows(figures(10.0))
    assert not PlanObjective.parse("time", "1 USD").allows(figures(usd=1.5))


def test_bad_objectives_and_limits_are_refused():
    for text in ("speed", "1,2", "0,0,0", "-1,1,1", "inf,0,0", ""):
        with pytest.raises(ValueError, match="objective: must be time, cost, or three weights"):
            PlanObjective.parse(text)
    for text in ("90", "0 s", "5 EUR", "-1 s"):
        with pytest.raises(ValueError, match="at_most: must be a time or a cost of a step above 0"):
            PlanObjective.parse("time", text)
    with pytest.raises(ValueError, match="objective: prices of GPUs must be given in the network"):
        PlanObjective.parse("cost").require_prices(sites())


def test_policies_see_weights_of_which_the_sum_is_one():
    """Any scale says the same, as in the ranking of plans."""
    half = Preference(time=0.5, utilisation=0.25, communication=0.25)

    assert PlanObjective.parse("2,1,1").preference == half
    assert PlanObjective.parse("0.5,0.25,0.25").preference == half
    with pytest.raises(ValueError, match="three weights of at least 0"):
        PlanObjective.parse("0,0,0")
