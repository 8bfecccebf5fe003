"""Output files of commands: rows outlive a report that cannot be written."""

import re

import pytest

from scenarios.frame.outputs import write_files

FILES = {"report.html": b"page", "rows.csv": b"a,b", "gantt.png": b"png", "result.json": b"{}"}


@pytest.mark.parametrize(
    ("name", "left"),
    [("report.html", ["report.html", "result.json", "rows.csv"]), ("rows.csv", ["rows.csv"])],
)
def test_rows_are_kept_where_a_page_cannot_be_written_and_nothing_without_rows(
    name, left, tmp_path
):
    (tmp_path / name).mkdir()

    with pytest.raises(ValueError, match=f"{re.escape(name)}: cannot be written: Is a directory"):
        write_files(tmp_path, FILES)

    assert sorted(one.name for one in tmp_path.iterdir()) == left


def test_files_are_named_in_the_order_given(tmp_path):
    assert write_files(tmp_path / "new", FILES) == [tmp_path / "new" / name for name in FILES]
    assert (tmp_path / "new/gantt.png").read_bytes() == b"png"
