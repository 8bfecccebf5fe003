"""Cost of learnt policies against rules that are tuned to the same attainment."""

import pytest

from agents.serving.forecast_policies import Predictive
from agents.serving.learnt_policy import AUTOSCALER_PPO
from agents.serving.table import SHIPPED
from scenarios.autoscale.comparison import Point, equal_cost_lines, tune_margin


def points(*rows):
    """Points of (margin, attainment, cost)."""
    return [Point(margin=margin, attainment=share, usd=usd) for margin, share, usd in rows]


@pytest.mark.parametrize(
    ("attainment", "found"),
    [
        (0.5, ("cheap", 1.0, 10.0)),
        (0.7, ("cheap", 1.5, 15.0)),
        (0.85, ("steep", 2.0, 40.0)),
        (0.99, ("steep", 2.0, 40.0)),
    ],
)
def test_the_cheapest_rule_with_an_attainment_is_found(attainment, found):
    """Between margins costs are interpolated; beyond all rules it is that with the most."""
    families = {
        "cheap": points((1.0, 0.6, 10.0), (2.0, 0.8, 20.0)),
        "steep": points((1.0, 0.5, 12.0), (2.0, 0.85, 40.0)),
    }
    assert tune_margin(families, attainment) == pytest.approx(found)


def test_a_policy_is_compared_with_the_rule_tuned_to_it():
    """Rows of the tuned rule are those of its margin on the same days."""
    lines, rows = equal_cost_lines(
        [SHIPPED],
        2,
        AUTOSCALER_PPO,
        families={"one": lambda margin: Predictive(margin=margin)},
        num_tuning_days=1,
    )
    names = [row["policy"] for row in rows]
    own = [row for row in rows if row["policy"] == "rl autoscale-0"]
    tuned = [row for row in rows if row["policy"] == "tuned to rl autoscale-0"]

    assert names.count("untrained") == names.count("random") == len(own) == len(tuned) == 2
    ratio = sum(mine["usd"] / rule["usd"] for mine, rule in zip(own, tuned, strict=True)) / 2
    assert f"cost {ratio:.3f} ±" in lines[-2]
    assert f"mean of 1 policies: {ratio:.3f} ±" in lines[-1]
