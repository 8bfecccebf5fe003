"""Runs of the table of targets that are interrupted, and continue from what they have measured."""

import io
import json
import shutil
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from kept_targets import FILES, QUIET, TINY, error_of

from scenarios.study.targets.command import main

FLAGS = [*TINY, "--method", "search_once,search_h1", "--targets", "time,communication"]
RESULTS = FILES[1:]
NAMES = [
    f"{column}-{group}.json"
    for column in ("search_once", "search_h1")
    for group in ("time", "communication")
]


class Terminal(io.StringIO):
    """Whose user presses Ctrl-C as soon as a text appears."""

    def __init__(self, stop_at):
        super().__init__()
        self.stop_at = stop_at

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        if self.stop_at and self.stop_at in self.getvalue():
            self.stop_at = ""
            raise KeyboardInterrupt
        return len(text)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("kpi") / "whole"
    assert main([*FLAGS, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def copy(whole, tmp_path):
    """The same run, which may be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@pytest.fixture
def _no_colours(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.usefixtures("_no_colours")
@pytest.mark.parametrize(("stop_at", "num_kept"), [("once: communication\n", 1), ("h1: time\n", 2)])
def test_a_run_that_is_interrupted_and_resumed_is_the_same_as_a_whole_one(
    stop_at, num_kept, whole, tmp_path, capsys
):
    out = tmp_path / "run of mine"
    with redirect_stderr(Terminal(stop_at)):
        assert main([*FLAGS, "--out", str(out)]) == 130
    resume = f"Interrupted. Continue with: python -m scenarios.kpi --resume --out '{out}'\n"
    assert capsys.readouterr().out == resume
    assert sorted(path.name for path in (out / "measured").iterdir()) == sorted(NAMES[:num_kept])
    assert not any((out / name).exists() for name in RESULTS)

    with redirect_stderr(Terminal("")) as resumed:
        assert main(["--resume", *QUIET, "--out", str(out)]) == 0

    assert all((out / name).read_bytes() == (whole / name).read_bytes() for name in FILES)
    begun = resumed.getvalue().splitlines()
    assert begun == [name.removesuffix(".json").replace("-", ": ") for name in NAMES[num_kept:]]


def test_processes_measure_what_one_does(whole, tmp_path):
    """One column is there already, with a group that they must not touch."""
    out = tmp_path / "run"
    (out / "measured").mkdir(parents=True)
    shutil.copy(whole / "config.json", out)
    kept = Path(shutil.copy(whole / "measured" / NAMES[0], out / "measured"))
    written = kept.stat().st_mtime_ns

    assert main(["--resume", *QUIET, "--workers", "2", "--parquet", "--out", str(out)]) == 0

    assert all((out / name).read_bytes() == (whole / name).read_bytes() for name in FILES)
    assert kept.stat().st_mtime_ns == written
    assert (out / "kpi.parquet").exists()


def test_a_process_that_finds_bad_input_ends_the_run_in_one_line(copy, capsys):
    """The file is looked at by the processes first."""
    path = copy / "measured" / NAMES[0]
    path.write_text("[]")

    error = error_of(["--resume", "--workers", "2", "--out", str(copy)], capsys)

    assert f"{path}: file: must be a mapping, got []" in error


def test_what_is_kept_is_not_measured_again(copy):
    """A figure that could not be measured stays, and the rest of the run is as it was."""
    before = json.loads((copy / "kpi.json").read_text())

    def change(content):
        content["targets"][0]["value"] = 0.123456789012345678

    edit(copy / "measured" / NAMES[1], change)
    assert main(["--resume", *QUIET, "--out", str(copy)]) == 1  # it is missed

    after = json.loads((copy / "kpi.json").read_text())
    row, below = after["columns"]["search_once"][-2:]
    assert (row["name"], row["value"]) == ("communication cost", 0.123456789012345678)
    assert (below["name"], below["value"]) == ("communication below the even split", None)
    assert after["columns"]["search_h1"] == before["columns"]["search_h1"]


def test_a_write_that_was_cut_off_is_no_obstacle(copy, whole):
    (copy / "measured" / NAMES[0]).rename(copy / "measured" / f".{NAMES[0]}.tmp")

    assert main([*FLAGS, "--resume", "--out", str(copy)]) == 0

    assert all((copy / name).read_bytes() == (whole / name).read_bytes() for name in FILES)
    assert not (copy / "measured" / f".{NAMES[0]}.tmp").exists()


def test_figures_of_several_source_revisions_are_told(copy):
    def change(content):
        content["source_revision"] = "0123abc"

    edit(copy / "measured" / NAMES[2], change)
    assert main(["--resume", *QUIET, "--out", str(copy)]) == 0

    scope = json.loads((copy / "kpi.json").read_text())["scope"]
    assert "; measured at the source revisions " in scope
    assert scope.endswith(", 0123abc")
    assert "0123abc" in (copy / "report.html").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seed", "7"], "with --resume, seed must be 0 as in"),
        (["--no-quick"], "with --resume, quick must be True as in"),
        (["--targets", "time"], "targets must be ['time', 'communication'] as in"),
        (["--checkpoint", "mine.safetensors"], "with --resume, checkpoint must be [] as in"),
    ],
)
def test_flags_of_another_run_are_refused(flags, message, copy, capsys):
    error = error_of([*flags, "--resume", "--out", str(copy)], capsys)

    assert message in error
    assert str(copy / "config.json") in error


def test_there_must_be_a_run_to_resume(tmp_path, capsys):
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.mkdir()

    assert "there is no run to resume" in error_of(["--resume", "--out", str(missing)], capsys)
    assert "config.json is missing; begin one" in error_of(
        ["--resume", "--out", str(empty)], capsys
    )


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (["column"], "seed0", "column must be 'search_h1' as in this run, got 'seed0'"),
        (["group"], "gap", "group must be 'time' as in this run, got 'gap'"),
        (["group"], 1, "group: Input should be a valid string, got 1"),
        (["flags", "seed"], 3, "flags.seed must be 0 as in this run, got 3"),
        (["flags", "new"], 3, "flags.new must be None as in this run, got 3"),
        (["sha256", "world"], "ab", "sha256.world must be that of"),
        (["sha256", "checkpoint"], "ab", "sha256.checkpoint must be that of no file"),
        (["targets"], None, "targets: Input should be a valid list, got None"),
        (["targets", 1, "value"], "1", "targets[1].value: must be a number or one of nan, inf"),
        (["targets", 0, "goal", "target"], True, "targets[0].goal.target: must be a number"),
        (["targets", 0, "goal", "stretch"], 0.1, "goal at least: stretch must be stricter"),
        (["targets", 0, "goal", "sense"], "over", "targets[0].goal.sense: Input should be"),
        (["targets", 0, "interval"], 3, "targets[0].interval: must be a mapping, got 3"),
        (["targets", 0, "notes", 0], 3, "targets[0].notes[0]: Input should be a valid string"),
        (["targets", 0, "more"], 3, "targets[0].more: unknown key"),
    ],
)
def test_a_corrupt_or_foreign_file_is_named_with_its_field(place, value, message, copy, capsys):
    path = copy / "measured" / NAMES[2]

    def change(content):
        for part in place[:-1]:
            content = content[part]
        content[place[-1]] = value

    edit(path, change)
    error = error_of(["--resume", "--out", str(copy)], capsys)

    assert f"error: {path}: {message}" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable as JSON: the file is empty"),
        ("[]", "file: must be a mapping, got []"),
        ('{"column": "a", "column": "b"}', "key 'column' must be given once"),
        ("{}", "column: must be given"),
    ],
)
def test_a_file_that_is_something_else_is_refused(text, message, copy, capsys):
    path = copy / "measured" / NAMES[0]
    path.write_text(text)

    assert f"{path}: {message}" in error_of(["--resume", "--out", str(copy)], capsys)


def test_a_file_of_no_column_of_the_run_is_refused(copy, capsys):
    (copy / "measured" / NAMES[0]).rename(copy / "measured" / "seed0-time.json")

    error = error_of(["--resume", "--out", str(copy)], capsys)

    assert "seed0-time.json: must be of a column and a group of this run" in error
    assert NAMES[0] in error
