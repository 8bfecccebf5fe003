"""The run folder: nothing is overwritten or half-written, and equal runs leave equal files."""

import json
import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scenarios
from des.base.text_files import read_json
from scenarios.frame.files import read_csv, write_bytes, write_csv, write_json, write_text
from scenarios.frame.run_folder import RunFolder, package_versions, source_revision


def test_a_new_folder_is_made_with_its_parents_and_starts_empty(tmp_path):
    """Checking that it can be written leaves nothing behind."""
    folder = RunFolder.create(tmp_path / "runs" / "one")

    assert folder.path.is_dir()
    assert list(folder.path.iterdir()) == []


def test_an_empty_folder_may_be_used(tmp_path):
    """Only files of another run are in the way."""
    assert RunFolder.create(tmp_path) == RunFolder(path=tmp_path)


def test_a_folder_with_files_is_refused_and_left_as_it_was(tmp_path):
    """The message offers both ways out."""
    (tmp_path / "metrics.csv").write_text("precious")

    with pytest.raises(ValueError, match=r"already holds files; .* --resume or .* --out"):
        RunFolder.create(tmp_path)
    assert (tmp_path / "metrics.csv").read_text() == "precious"


def test_a_file_in_the_way_is_named(tmp_path):
    """A folder cannot be made inside a file."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ValueError, match=r"run folder .*file/run: cannot be made: Not a directory"):
        RunFolder.create(tmp_path / "file" / "run")
    with pytest.raises(ValueError, match=r"run folder .*file: cannot be made: File exists"):
        RunFolder.create(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into any folder")
def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    """Hours of training are not lost to a mounting mistake."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)

    with pytest.raises(ValueError, match="locked: cannot be written: Permission denied"):
        RunFolder.create(locked)


def test_every_file_of_the_run_is_directly_inside(tmp_path):
    """The names are the interface of the folder."""
    folder = RunFolder(path=tmp_path)
    paths = [
        *(folder.config_json, folder.metrics_csv, folder.checkpoint_pt, folder.evaluation_csv),
        *(folder.trace_json, folder.report_html, folder.tensorboard),
    ]

    assert {path.parent for path in paths} == {tmp_path}
    assert [path.name for path in paths] == [
        *("config.json", "metrics.csv", "checkpoint.safetensors", "evaluation.csv"),
        *("trace.json", "report.html", "tensorboard"),
    ]


def test_the_configuration_can_be_read_when_the_run_is_resumed(tmp_path):
    """open_existing finds what write_config recorded."""
    config = {"steps": 5, "limit_s": None, "seeds": [1, 2], "learning_rate": 0.1}
    RunFolder.create(tmp_path / "run").write_config(config)

    assert RunFolder.open_existing(tmp_path / "run").read_config() == config


def test_equal_runs_record_equal_bytes_wherever_they_are(tmp_path):
    """config.json holds no time, no host and no place, only what repeats the run."""
    contents = []
    for name in ("one", "two"):
        folder = RunFolder.create(tmp_path / name)
        folder.write_config({"steps": 5})
        contents.append(folder.config_json.read_bytes())

    assert contents[0] == contents[1]
    record = json.loads(contents[0])
    assert list(record) == ["config", "versions", "machine", "source_revision"]
    assert record["versions"] == package_versions()
    assert record["versions"]["numpy"] == np.__version__
    assert str(tmp_path) not in contents[0].decode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"config": {"steps": 5', r"config\.json: not readable as JSON in line 1"),
        ("[]", r"config\.json: must hold a mapping named config"),
        ('{"config": 5}', r"config\.json: must hold a mapping named config"),
    ],
)
def test_a_corrupt_record_cannot_be_resumed(tmp_path, content, message):
    """The message names the file, and the line if there is one."""
    (tmp_path / "config.json").write_text(content)

    with pytest.raises(ValueError, match=message):
        RunFolder.open_existing(tmp_path)


def test_a_missing_run_cannot_be_resumed(tmp_path):
    """Neither a folder that is not there nor one without a record."""
    with pytest.raises(ValueError, match="absent: does not exist, so there is no run to resume"):
        RunFolder.open_existing(tmp_path / "absent")
    with pytest.raises(ValueError, match=r"holds no run, as .*config\.json is missing; begin one"):
        RunFolder.open_existing(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    """A checkpoint is replaced whole or not at all."""
    path = tmp_path / "checkpoint.safetensors"
    write_bytes(path, b"old")

    with pytest.raises(TypeError):
        write_bytes(path, "text where bytes belong")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_onto_a_folder_leaves_nothing_behind(tmp_path):
    """The last step can fail too."""
    (tmp_path / "report.html").mkdir()

    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "report.html", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_what_a_killed_process_left_is_replaced(tmp_path):
    """Litter does not pile up: a temporary name without a random part is of an earlier release."""
    (tmp_path / ".a.txt.tmp").write_text("left by a killed process, longer than the new text")

    write_text(tmp_path / "a.txt", "néw")

    assert (tmp_path / "a.txt").read_bytes() == "néw".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused(tmp_path, number):
    """Other programs could not read it."""
    with pytest.raises(ValueError, match=r"trace\.json: Out of range"):
        write_json(tmp_path / "trace.json", {"time_s": number})
    assert list(tmp_path.iterdir()) == []


def test_json_is_read_as_it_was_written(tmp_path):
    """Text outside ASCII included."""
    value = {"name": "Zürich → 東京", "times_s": [0.1, 2], "none": None}
    write_json(tmp_path / "a.json", value)

    assert read_json(tmp_path / "a.json") == value


@given(
    numbers=st.lists(st.floats(allow_nan=False), min_size=1),
    name=st.sampled_from(["none", "NA", "exact, with a comma", 'a "quoted" one', ""]),
)
def test_a_table_is_read_to_the_last_bit(tmp_path_factory, numbers, name):
    """Every float, infinite ones included, and names that look like missing values."""
    path = tmp_path_factory.mktemp("csv") / "evaluation.csv"
    frame = pd.DataFrame({"time_s": numbers, "planner": f"{name}." if name == "" else name})
    write_csv(path, frame)

    pd.testing.assert_frame_equal(read_csv(path), frame, check_exact=True)


def test_an_empty_table_file_is_refused(tmp_path):
    """The message names the file."""
    (tmp_path / "evaluation.csv").write_text("")

    with pytest.raises(ValueError, match=r"evaluation\.csv: not a table"):
        read_csv(tmp_path / "evaluation.csv")


def git(checkout: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", *identity, "-C", str(checkout), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_the_source_revision_is_that_of_the_folder_of_the_packages():
    """Both are none where that is no checkout."""
    assert source_revision() == source_revision(Path(scenarios.__file__).resolve().parents[1])


def test_the_source_revision_is_the_commit_and_tells_of_changes(tmp_path):
    """Compared with git itself: no checkout, no commit, a commit, a change."""
    assert source_revision(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    assert source_revision(tmp_path) is None

    (tmp_path / "a.py").write_text("1")
    git(tmp_path, "add", "a.py")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert source_revision(tmp_path) == commit

    (tmp_path / "a.py").write_text("2")
    assert source_revision(tmp_path) == f"{commit}-dirty"


def test_a_folder_inside_a_foreign_checkout_has_no_revision(tmp_path):
    """An installation inside another repository is not that repository."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "one")
    (tmp_path / "site-packages").mkdir()

    assert source_revision(tmp_path / "site-packages") is None
