"""Goodput with failing chips: by hand, within its ranges, and refused without reasons."""

import json
import math

import pytest
from pydantic import ValidationError

from scenarios.reproduce.cases import PUBLISHED
from scenarios.reproduce.decoupled import GoodputRow, reproduce_cases

ROW = {
    "name": "two learners",
    "source": "by hand",
    "num_chips": 365.25 * 86400.0 / 100.0,
    "num_learners": 2,
    "with_percent": 60.0,
    "without_percent": 30.0,
    "chip_years": 1.0,
    "restart_s": [25.0, 400.0],
    "step_s": 1e-3,
    "assumed": {"restart_s": "any"},
}
"""A failure every 100 s in all, so one in 200 s of each of two learners."""


def row(**changes):
    """The row, some of whose fields are others."""
    return GoodputRow.model_validate_json(json.dumps(ROW | changes))


def test_goodput_falls_by_e_for_a_restart_as_long_as_the_time_between_failures():
    found = row()

    assert found.predicted_percent(found.middle(), 1) == pytest.approx(100.0 / math.e, rel=1e-4)
    assert found.predicted_percent(found.middle(), 2) == pytest.approx(
        100.0 / math.sqrt(math.e), rel=1e-4
    )
    assert sorted(found.predicted_percent(one, 1) for one in found.ends()) == pytest.approx(
        [100.0 * math.exp(-4.0), 100.0 * math.exp(-0.25)], rel=1e-4
    )


def test_the_implied_restart_makes_the_measured_goodput():
    found = row()
    restart_s = found.implied_restart_s(30.0, 1)

    assert restart_s == pytest.approx(-100.0 * math.log(0.3), rel=1e-3)
    assert found.predicted_percent({**found.middle(), "restart_s": restart_s}, 1) == pytest.approx(
        30.0
    )


def test_the_reports_pair_lies_in_the_range_and_the_simulation_agrees():
    """88 against 27 %; with equal restarts the rule ties them: 0.27 ** (1 / 8) = 0.849."""
    found = reproduce_cases(PUBLISHED / "decoupled.json")
    frame = found.frame.set_index("name")

    assert all(bound.met for bound in found.bounds)
    assert frame["measured"].tolist() == [27.0, 88.0]
    assert (frame["low"] < frame["measured"]).all()
    assert (frame["measured"] < frame["high"]).all()
    assert (frame["simulated"] - frame["predicted"]).abs().max() < 1.0
    assert "27 % without makes 84.9 % with, whatever the times; measured 88 %" in found.unjudged[0]
    waiting = float(found.unjudged[1].split(": ")[-1].removesuffix(" %"))
    assert waiting < frame["simulated"].iloc[1] - 5.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"assumed": {}}, "restart_s must be a rising range with its reason in assumed"),
        ({"restart_s": [400.0, 25.0]}, "restart_s must be a rising range"),
        ({"with_percent": 101.0}, "with_percent"),
        ({"num_learners": 0}, "num_learners"),
        ({"chip_years": -1.0}, "chip_years"),
    ],
)
def test_a_wrong_row_is_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        row(**change)
