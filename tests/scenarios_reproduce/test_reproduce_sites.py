"""Runs over several sites: by hand, within their ranges, and refused without reasons."""

import json

import pytest
from pydantic import ValidationError

from scenarios.reproduce.cases import PUBLISHED
from scenarios.reproduce.sites import SiteRow, reproduce, reproduce_cases

ROW = {
    "name": "two sites",
    "source": "by hand",
    "quantity": "relative_time",
    "measured": 1.5,
    "mode": "diloco",
    "num_parameters": 1e9,
    "num_layers": 10,
    "num_sites": 2,
    "steps_between": 10,
    "step_s": 1.0,
    "gbit_per_s": [1.0, 4.0],
    "round_trip_ms": 500.0,
    "bits_per_value": 8.0,
    "assumed": {"gbit_per_s": "one to four lines"},
}
"""A step of 1 s; after ten of them 8 Gbit at 1 to 4 Gbit/s and half a second of latency."""


def row(**changes):
    """The row, some of whose fields are others."""
    return SiteRow.model_validate_json(json.dumps(ROW | changes))


def test_a_range_is_that_of_its_ends_by_hand():
    found = reproduce((row(),)).frame.iloc[0]

    assert found["low"] == pytest.approx(1.0 + (8.0 / 4.0 + 0.5) / 10.0)
    assert found["high"] == pytest.approx(1.0 + (8.0 / 1.0 + 0.5) / 10.0)
    assert found["predicted"] == pytest.approx(1.0 + (8.0 / 2.0 + 0.5) / 10.0)
    assert found["implied_gbit_per_s"] == pytest.approx(8.0 / 4.5, rel=0.01)


def test_a_figure_outside_its_range_fails():
    (verdict,) = reproduce((row(measured=3.0),)).bounds

    assert not verdict.met


def test_a_needed_rate_is_where_the_utilisation_is_reached():
    needed = row(quantity="needed_gbit_per_s", utilisation=1.0 / 1.45, gbit_per_s=None)

    assert needed.predicted(needed.middle()) == pytest.approx(8.0 / 4.0, rel=0.01)


def test_shipped_figures_are_within_what_is_assumed():
    found = reproduce_cases(PUBLISHED / "sites.json")

    assert [bound.met for bound in found.bounds] == [True]
    assert found.frame["high"].gt(found.frame["low"]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"assumed": {}}, "gbit_per_s must be a rising range with its reason in assumed"),
        ({"gbit_per_s": [4.0, 1.0]}, "gbit_per_s must be a rising range"),
        ({"gbit_per_s": None}, "gbit_per_s must be given for relative_time, got none"),
        ({"mode": "gossip"}, "mode"),
    ],
)
def test_a_wrong_row_is_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        row(**change)
