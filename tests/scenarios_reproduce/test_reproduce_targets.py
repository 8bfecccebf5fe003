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


def test_figures_on_record_are_of_the_rows_of_their_own_file(tmp_path):
    shipped, path = tmp_path / "shipped.json", tmp_path / "cases.json"
    with_targets(path, {"error": 0.2})
    content = {"source": "a paper", "targets": {"error": 0.1}, "rows": [ROW]}
    shipped.write_text(json.dumps(content | {"recorded": {"error": 0.3}}), encoding="utf-8")

    assert read_cases(shipped, Row, shipped).recorded == {"error": 0.3}
    assert read_cases(path, Row, shipped).recorded == {}
    path.write_text(json.dumps(content | {"recorded": {"mean": 0.3}}), encoding="utf-8")
    with pytest.raises(ValueError, match="recorded must have keys of error; got 'mean'"):
        read_cases(path, Row, shipped)


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
