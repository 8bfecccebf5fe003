"""Targets of files of published rows: their own, then those of the shipped file."""

import json
import re

import pytest

from scenarios.reproduce.cases import CaseForm, PositiveNumber, read_cases


class Row(CaseForm):
    figure: PositiveNumber


ROW = {"figure": 1.0}


def with_targets(path, targets):
    content = {"source": "a paper", "targets": targets, "rows": [ROW]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_targets_are_those_of_the_file_then_of_the_shipped_one(tmp_path):
    shipped = with_targets(tmp_path / "shipped.json", {"error": 0.1, "bias": 0.2})
    path = with_targets(tmp_path / "cases.json", {"bias": 0.3})

    assert read_cases(path, Row, shipped).targets == {"error": 0.1, "bias": 0.3}


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"mean": 0.1}, "cases.json: targets must have keys of error; got 'mean'"),
        ({"error": 0.0}, "cases.json: targets.error"),
        ({"error": "low"}, "cases.json: targets.error"),
    ],
)
def test_bad_targets_are_refused(targets, message, tmp_path):
    shipped = with_targets(tmp_path / "shipped.json", {"error": 0.1})

    with pytest.raises(ValueError, match=re.escape(message)):
        read_cases(with_targets(tmp_path / "cases.json", targets), Row, shipped)
