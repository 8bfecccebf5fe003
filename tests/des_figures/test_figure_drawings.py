"""A figure is one value: paper and page draw the same numbers, and each says what is seen."""

import json
import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from des.figures.figure import Figure
from des.figures.marks import Area, Arrow, Boxes, Cells, GuideLine, Line, Points, Stripe, Text
from des.figures.palette import BLUE, COLOURS, FAINT, INK
from des.figures.panels import Axis, Panel
from des.figures.paper import FORMATS, draw, image_bytes, require_formats
from des.figures.web import web_spec
from des.figures.web_traces import MOST_BARS

DARK, LIGHT = "#0d1117", "#ffffff"


def figure(*marks, **changes):
    panel = Panel(x=Axis(label="time"), y=Axis(label="size"), marks=marks)
    values = {"name": "one", "title": "A title", "seen": "A line that rises.", "panels": (panel,)}
    return Figure(**(values | changes))


EVERY_MARK = (
    Stripe(start=0.0, end=1.0),
    Line(
        label="line", x=(0.0, 1.0), y=(1.0, math.nan), low=(0.5, 1.0), high=(2.0, 3.0), colour=BLUE
    ),
    Area(label="area", x=(0.0, 1.0), low=(0.0, 0.0), high=(1.0, 2.0), colour=FAINT, is_step=True),
    Points(label="points", x=(0.5,), y=(1.0,), x_half_widths=(0.1,), colour=INK, hovers=("a<b>",)),
    Boxes(label="boxes", starts=(0.0,), ends=(0.5,), rows=(1.0,), colour=BLUE, texts=("7",)),
    Arrow(x=0.0, y=0.0, to_x=1.0, to_y=1.0, colour=INK, width=1.0, hover="arrow"),
    Text(x=0.2, y=0.2, text="here", at="top center"),
    GuideLine(label="rule", y=2.0, colour=INK),
)


@settings(max_examples=examples(20))
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=2, max_size=8))
def test_paper_and_page_draw_the_same_numbers(points):
    """To the six digits that pages keep."""
    x, y = (tuple(column) for column in zip(*points, strict=True))
    one = figure(Line(label="line", x=x, y=y, colour=BLUE))

    (line,) = draw(one).axes[0].lines
    (trace,) = web_spec(one)["data"]

    np.testing.assert_array_equal(line.get_xdata(), x)
    np.testing.assert_allclose(trace["x"], x, rtol=1e-5)
    np.testing.assert_allclose(trace["y"], y, rtol=1e-5)


def test_every_mark_is_drawn_on_paper_and_on_pages():
    one = figure(*EVERY_MARK)

    spec = web_spec(one)

    assert {trace["type"] for trace in spec["data"]} == {"scatter", "bar"}
    names = [trace.get("name") for trace in spec["data"] if trace.get("showlegend")]
    assert names == ["line", "area", "points", "boxes", "rule"]
    assert len(spec["layout"]["shapes"]) == 2
    assert "NaN" not in json.dumps(spec, allow_nan=False)
    legend = draw(one).legends[0]
    assert {text.get_text() for text in legend.get_texts()} == set(names)


def test_a_page_shows_texts_letter_by_letter():
    points = web_spec(figure(EVERY_MARK[3]))["data"][0]

    assert points["hovertext"] == ["a&lt;b&gt;"]


@pytest.mark.parametrize("image_format", FORMATS)
def test_equal_figures_give_equal_files(image_format):
    content = image_bytes(figure(*EVERY_MARK), image_format)

    assert content == image_bytes(figure(*EVERY_MARK), image_format)
    assert content[:4] in (b"\x89PNG", b"%PDF", b"<?xm")
    assert b"matplotlib v" not in content


def test_cells_have_the_values_and_gaps_of_the_matrix():
    cells = Cells(
        label="busy", rows=("a", "b"), columns=("c", "d"), values=((1.0, None), (0.0, 2.0))
    )

    trace = web_spec(figure(cells))["data"][0]
    image = draw(figure(cells)).axes[0].images[0].get_array()

    assert trace["z"] == [[1.0, None], [0.0, 2.0]]
    assert np.ma.filled(image, np.nan).tolist()[1] == [0.0, 2.0]
    assert trace["zmax"] == 2.0


def test_so_many_boxes_are_one_path():
    """Each is five corners and a gap."""
    ends = tuple(float(at + 1) for at in range(MOST_BARS + 1))
    many = Boxes(
        label="", starts=tuple(map(float, range(MOST_BARS + 1))), ends=ends, rows=ends, colour=BLUE
    )

    (trace,) = web_spec(figure(many))["data"]

    assert trace["type"] == "scatter"
    assert len(trace["x"]) == 6 * (MOST_BARS + 1)


def test_panels_stand_side_by_side_on_wide_pages_and_below_each_other_on_narrow_ones():
    panel = figure(EVERY_MARK[1]).panels[0]
    spec = web_spec(figure(panels=(panel,) * 4, columns=2))
    rows = {
        name: {tuple(layout[f"yaxis{place}"]["domain"]) for place in ("", 2, 3, 4)}
        for name, layout in spec.items()
        if name != "data"
    }

    assert len(rows["layout"]) == 2
    assert len(rows["narrow"]) == 4
    assert spec["narrow"]["height"] > 1.5 * spec["layout"]["height"]


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """By WCAG 2.2, definition of contrast ratio."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_first_colours_of_series_are_seen_on_white_and_on_dark_pages():
    """At least 3 for parts of figures, WCAG 2.2, 1.4.11."""
    assert min(contrast(one, page) for one in COLOURS[:4] for page in (LIGHT, DARK)) >= 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: figure(name="A b"), "name must be of letters"),
        (lambda: figure(seen=" "), "figure one: seen must be a text"),
        (lambda: figure(panels=()), "panels must have at least one"),
        (lambda: Line(label="", x=(1.0,), y=(), low=(1.0, 2.0), colour=BLUE), "x 1, low 2"),
        (lambda: GuideLine(label="r", colour=BLUE), "must have x or y, got None and None"),
        (
            lambda: require_formats("--figures", ("gif",)),
            "some of png, pdf, svg, each once; got gif",
        ),
    ],
)
def test_wrong_figures_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
