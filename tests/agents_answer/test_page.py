"""Pages in words: four digits, columns, and the same as HTML."""

import pytest
from examples import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.answer.number_texts import figure
from agents.answer.sections import Section, as_html, as_text

TABLE = Section(title="A <b>", lines=("one",), head=("name", "s"), rows=(("x", "1.5"),))


@settings(max_examples=SAMPLE)
@given(number=st.floats(1e-6, 1e12))
def test_a_figure_is_within_half_a_digit_and_has_no_exponent(number):
    written = figure(number)

    assert "e" not in written
    assert float(written.replace(",", "")) == pytest.approx(number, rel=5.1e-4)


def test_a_table_is_aligned():
    assert as_text([TABLE]) == "A <b>\n  one\n  name    s\n  x     1.5"


def test_html_has_the_same_cells_escaped():
    found = as_html([TABLE])

    assert "<h4>A &lt;b&gt;</h4>" in found
    assert "<tr><td>x</td><td>1.5</td></tr>" in found
