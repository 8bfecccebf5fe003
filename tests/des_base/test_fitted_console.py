"""Consoles and helps no wider than the terminal: nothing is cut, what is left out is named."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from des.base.console import FittedConsole
from des.base.help_text import fit_text

WORDS = st.text("abc-", min_size=1, max_size=12)


def shown(width, monkeypatch, *printed):
    """Lines of a console of some width."""
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    console = FittedConsole(stream)
    for each in printed:
        console.print(each)
    return stream.getvalue().splitlines()


def table_of(num_columns, num_rows):
    table = Table(title="figures")
    table.add_column("name")
    for number in range(num_columns):
        table.add_column(f"column {number}", justify="right")
    for row in range(num_rows):
        table.add_row(f"row {row}", *(f"{row}.{number:06}" for number in range(num_columns)))
    return table


@pytest.mark.parametrize(("width", "count"), [(40, 2), (80, 6), (200, 9)])
def test_a_wide_table_has_the_columns_that_fit_and_names_the_others(width, count, monkeypatch):
    lines = shown(width, monkeypatch, table_of(9, 2))
    text = " ".join(" ".join(lines).split())

    assert max(map(len, lines)) <= width
    for number in range(9):
        assert text.count(f"column {number}") == 1
        assert text.count(f"1.{number:06}") == (number < count)
    assert text.count("row 1") == text.count("name") == text.count("figures") == 1
    assert ("left out at" in text) == (count < 9)
    assert "…" not in text


def test_words_are_left_out_before_numbers_and_a_verdict_goes_with_its_number(monkeypatch):
    table = Table()
    for name in ("model", "a long description"):
        table.add_column(name, no_wrap=True)
    for name in ("first [s]", "second [s]"):
        table.add_column(name, justify="right")
        table.add_column("")
    table.add_row("llama", "something to read", "1.0", "met", "2.0", "missed")

    at_60, at_40 = (" ".join(shown(width, monkeypatch, table)) for width in (60, 40))
    assert "description; COLUMNS=" in at_60
    assert all(word in at_60 for word in ("1.0", "met", "2.0", "missed"))
    assert "left out at 40 columns: a long description, second [s];" in at_40
    assert "met" in at_40
    assert "missed" not in at_40


def test_the_width_that_is_named_shows_all_columns(monkeypatch):
    said = " ".join(shown(60, monkeypatch, table_of(9, 2)))
    width = int(said.partition("COLUMNS=")[2].split()[0])

    assert not any("left out" in line for line in shown(width, monkeypatch, table_of(9, 2)))
    assert any("left out" in line for line in shown(width - 1, monkeypatch, table_of(9, 2)))


def test_lines_are_broken_at_blanks_and_paths_stay_whole(monkeypatch):
    path = "/a/very/long/path" * 4

    lines = shown(40, monkeypatch, f"written: {path}", "one two " * 20, "[bold]:smile:")

    assert path in lines
    assert all(len(line) <= 40 for line in lines if path not in line)
    assert lines[-1] == "[bold]:smile:"


@given(words=st.lists(WORDS, min_size=1, max_size=12), width=st.integers(40, 90))
def test_a_command_broken_in_a_help_is_the_same_command(words, width):
    line = f"  python -m x {' '.join(words)}"
    fitted = fit_text(line, width)

    assert fitted.replace("\\\n", "").split() == line.split()
    assert all(len(one) <= width for one in fitted.split("\n"))


def test_tables_of_a_help_go_on_below_their_second_column():
    text = "  name.csv   a sentence that is too long for it"

    assert fit_text(text, 30) == (
        "  name.csv   a sentence that\n             is too long for\n             it"
    )
