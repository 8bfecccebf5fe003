"""Tables whose cells no spreadsheet runs, and that come back as they were."""

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.base.csv_text import csv_line, csv_of_columns, frame_csv, plain_cell, safe_cell

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'=1",
    "=HYPERLINK(0)",
]


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_begins_with_an_apostrophe_in_every_table(cell):
    expected = f"'{cell}"

    assert next(csv.reader(io.StringIO(csv_line([cell, 1.5]), newline=""))) == [expected, "1.5"]
    assert expected in next(csv.reader(io.StringIO(csv_of_columns([cell], []), newline="")))
    frame = pd.DataFrame({"name": ["East", cell], "time_s": [1.5, -2.0]})
    rows = list(csv.reader(io.StringIO(frame_csv(frame), newline="")))
    assert rows == [["name", "time_s"], ["East", "1.5"], [expected, "-2.0"]]


@pytest.mark.parametrize(
    "cell", ["East", "-1.5", "-", "+1e5", "", "it's", "'t Harde", -1.5, 3, None]
)
def test_names_and_numbers_stay_as_they_are(cell):
    assert safe_cell(cell) is cell


@given(st.text())
def test_cells_come_back(cell):
    assert plain_cell(safe_cell(cell)) == cell


def test_a_table_of_numbers_is_that_of_pandas():
    frame = pd.DataFrame({"a": [0.1, None], "b": [1, 2], "c": ["x", None], "d": [1, None]})
    frame["d"] = frame["d"].astype(object)

    assert frame_csv(frame) == frame.to_csv(index=False, lineterminator="\n")
