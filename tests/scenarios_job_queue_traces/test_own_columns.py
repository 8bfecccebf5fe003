"""A user's own CSV file as a trace of jobs, and what a reader says of the form of a file."""

import re

import pytest
from command_output import error_of
from test_trace_readers import TABLES, rows

from scenarios.job_queue.command import main
from scenarios.job_queue.traces.forms import read_job_trace

OWN = "when,cards,took,who,done\n60,8,30,a,0\n0,2,90,b,0\n"
NAMES = {"submit": "when", "gpus": "cards", "duration": "took", "user": "who"}
DATED = (
    "id,queued,began,ended,n\n"
    "x,2024-05-01 00:00:00,2024-05-01 00:01:00,2024-05-01 00:02:00,4\n"
    "y,2024-05-01 00:00:30,,,4\n"
)


def written(tmp_path, text):
    path = tmp_path / "jobs.csv"
    path.write_text(text, "utf-8")
    return path


def test_columns_of_any_csv_file_are_those_that_are_named(tmp_path):
    trace = read_job_trace(written(tmp_path, OWN), "auto", columns=NAMES)

    assert rows(trace) == [("1", 0, 2, 90), ("0", 60, 8, 30)]
    assert [job.user for job in trace.jobs] == ["b", "a"]
    assert trace.report[0] == "form columns, by the given columns when, cards, took, who"


def test_a_duration_runs_to_the_end_from_the_start_or_else_from_the_submission(tmp_path):
    path = written(tmp_path, DATED)
    names = {"name": "id", "submit": "queued", "end": "ended", "gpus": "n"}

    for further, duration_s in (({"start": "began"}, 60), ({}, 120)):
        trace = read_job_trace(path, "auto", columns=names | further)
        assert rows(trace) == [("x", 0, 4, duration_s)]
        assert trace.dropped == {"no duration": 1}


@pytest.mark.parametrize("form", sorted(TABLES))
def test_a_reader_says_by_what_it_knew_the_form(form, tmp_path):
    report = read_job_trace(written(tmp_path, TABLES[form][0]), "auto").report

    assert report[0].startswith(f"form {form}, by ")
    if form != "blox":
        named = report[0].partition("the columns ")[2].split(", ")
        assert set(named) <= set(TABLES[form][0].split("\n")[0].replace("\t", ",").split(","))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"submit": "when"}, "columns: must name those of gpus, duration or end"),
        (NAMES | {"gpu": "n"}, "columns: unknown 'gpu'; did you mean 'gpus'?"),
        (NAMES | {"gpus": "n"}, "must have the columns n; got when, cards, took, who, done"),
    ],
)
def test_columns_that_are_not_there_are_named(columns, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_job_trace(written(tmp_path, OWN), "auto", columns=columns)


def test_columns_that_a_known_form_lacks_are_named(tmp_path):
    text = TABLES["helios"][0].replace("gpu_num", "gpus")

    for form in ("auto", "helios"):
        with pytest.raises(ValueError, match=r"has \d+%, without gpu_num; "):
            read_job_trace(written(tmp_path, text), form)


def test_the_command_takes_columns_and_refuses_them_without_a_trace(tmp_path, capsys):
    path = str(written(tmp_path, OWN))
    argv = ("--load", "0", "--nodes", "2", "--policy", "fifo", "--workers", "1")
    columns = ("--columns", "submit=when,gpus=cards,duration=took")

    assert main((*argv, "--trace", path, *columns)) == 0
    assert "by the given columns when, cards, took" in capsys.readouterr().out
    assert "--columns must be of a trace" in error_of(main, ("--nodes", "2", *columns), capsys)
    assert main((*argv, "--trace", path, "--columns", "submit")) == 2
    assert "--columns must be WHAT=NAME each, once" in capsys.readouterr().err
    assert main((*argv, "--trace", path, *columns, "--trace-form", "helios")) == 2
    assert "--columns must be without --trace-form" in capsys.readouterr().err
