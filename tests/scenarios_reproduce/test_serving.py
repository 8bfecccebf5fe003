"""Results of serving simulators, autoscalers and traces that others made."""

import json

import pytest
from command_output import assert_measurement_is_written, error_of

from scenarios.reproduce.serving import answer_of, main
from scenarios.reproduce.serving_cases import first_difference, json_of, requests_in, shipped_cases
from scenarios.reproduce.serving_clusters import block_history

KINDS = ("autoscalers", "distserve", "splitwise", "traces", "vidur")


def test_every_kind_of_case_comes_along():
    assert len(shipped_cases()) == 74
    assert {name.split("/")[0] for name in shipped_cases()} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_cases_agree_with_the_reference_programs(kind):
    differences = {
        name: first_difference(json_of(files, "expected.json"), answer_of(files))
        for name, files in shipped_cases().items()
        if name.startswith(kind)
    }
    assert {name: each for name, each in differences.items() if each} == {}


@pytest.mark.parametrize("name", ["v01-vllm-low", "v04-sarathi-low"])
def test_first_batches_are_those_of_the_reference_program(name):
    files = shipped_cases()[f"vidur/{name}"]
    history = block_history(json_of(files, "config.json"), requests_in(files))
    expected = json.loads(files["first-batches.json"])

    assert len(history.first_batches) == len(expected)
    for batch, (time_s, parts) in zip(expected, history.first_batches, strict=True):
        assert [list(each) for each in zip(*parts, strict=True)] == [
            batch["request_ids"],
            batch["tokens"],
        ]
        assert time_s == pytest.approx(batch["seconds"])


def test_a_folder_is_answered_as_json(tmp_path, capsys):
    files = shipped_cases()["splitwise/s01-shipped-example"]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)

    assert main([str(tmp_path)]) == 0
    expected = json.loads(files["expected.json"])
    assert first_difference(expected, json.loads(capsys.readouterr().out)) is None
    flags = ["--json", "--parquet", "--out", str(tmp_path / "out")]
    assert main(["--cases", str(tmp_path), *flags]) == 0
    shown = capsys.readouterr()
    assert "1 of 1 agree" in shown.err
    assert [row["agrees"] for row in json.loads(shown.out)["rows"]] == [True]
    assert_measurement_is_written(tmp_path / "out", rows="cases", settings="result.json")


def test_a_wrong_answer_is_found(tmp_path, capsys):
    (tmp_path / "case.json").write_text('{"policy": "fact_stabilise", "cases": []}')
    (tmp_path / "expected.json").write_text('{"answers": [1]}')

    assert main(["--cases", str(tmp_path)]) == 1
    assert "expected [1], got []" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({}, "CASE must have"),
        ({"case.json": '{"policy": "none"}'}, "policy must be one of"),
        ({"case.json": '{"policy": "hpa"}'}, "min_replicas must be given"),
        ({"config.json": "{}", "requests.csv": "request_id\n1\n"}, "requests.csv: line 2"),
    ],
)
def test_bad_cases_give_one_line(tmp_path, capsys, files, named):
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    assert named in error_of(main, [str(tmp_path)], capsys)
