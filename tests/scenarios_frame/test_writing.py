"""Output files of commands: rows outlive a report that cannot be written."""

import pytest

from scenarios.frame.outputs import write_files

FILES = {"report.html": b"page", "rows.csv": b"a,b", "gantt.png": b"png", "result.json": b"{}"}


def test_rows_are_kept_where_a_page_cannot_be_written(tmp_path):
    (tmp_path / "report.html").mkdir()

    with pytest.raises(ValueError, match=r"report\.html: cannot be written: Is a directory"):
        write_files(tmp_path, FILES)

    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "report.html",
        "result.json",
        "rows.csv",
    ]


def test_nothing_is_written_where_rows_cannot_be(tmp_path):
    (tmp_path / "rows.csv").mkdir()

    with pytest.raises(ValueError, match=r"rows\.csv: cannot be written: Is a directory"):
        write_files(tmp_path, FILES)

    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]


def test_files_are_named_in_the_order_given(tmp_path):
    assert write_files(tmp_path / "new", FILES) == [tmp_path / "new" / name for name in FILES]
    assert (tmp_path / "new/gantt.png").read_bytes() == b"png"
