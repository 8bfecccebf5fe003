"""Every picture has a row; all its data are inside its axes, and no label is on another."""

import ast
from functools import cache
from pathlib import Path

import pandas as pd
import pictures_of_fleets
import pictures_of_plans
import pictures_of_studies
import pictures_of_tables
import pytest
from picture_faults import faults_of, label_faults

from des.figures.figure import Figure
from des.figures.marks import Boxes, Cells, Line, Points
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel
from des.figures.paper import draw
from des.figures.spans import axis_spans
from des.figures.web import web_spec
from docs.site import gallery
from scenarios.frame.rows_report import frame_table

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("des", "agents", "calibration", "scenarios", "bench", "docs", "examples")
PICTURES = (
    pictures_of_plans.PICTURES
    | pictures_of_studies.PICTURES
    | pictures_of_tables.PICTURES
    | pictures_of_fleets.PICTURES
)


@cache
def figure_calls():
    """Calls that make a figure, by the function that they are in, as MODULE:FUNCTION."""
    calls = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text("utf-8")
            if "des.figures.figure import" not in text:
                continue
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    made = filter(makes_a_figure, ast.walk(node))
                    calls += [(f"{module}:{node.name}", call) for call in made]
    return calls


def makes_a_figure(node):
    """Whether a node of a syntax tree calls ``Figure`` or ``panel_figure``."""
    made = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    return made in ("Figure", "panel_figure")


def test_every_picture_has_a_row():
    assert sorted(PICTURES) == sorted(name for name, _ in figure_calls())


def test_the_gallery_shows_every_picture_or_names_it():
    """By the names of figures, as far as they are constants."""
    shown = {Path(one.file).stem.removeprefix("page_") for one in gallery.PICTURES}
    named = {name for names in gallery.LONGER.values() for name in names}
    values = [one.value for _, call in figure_calls() for one in call.keywords if one.arg == "name"]

    assert len(values) >= 30
    assert {one.value for one in values if isinstance(one, ast.Constant)} <= shown | named


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_shows_all_its_data_and_its_labels_stand_apart(name):
    """On paper as matplotlib has laid it out, and on wide and narrow pages."""
    faults = {figure.title: faults_of(figure) for figure in PICTURES[name]()}

    assert {title: found for title, found in faults.items() if found} == {}


def test_frames_of_a_video_name_as_many_stages_as_there_is_room_for():
    """58 stages and six links in 6.75 inches, as `render` of an environment draws them."""
    figure, (_, result) = pictures_of_plans.charts()[1], pictures_of_plans.many_stages()
    paper = draw(figure, size=(12.0, 6.75), dpi=100)
    paper.canvas.draw()

    shown = [one for one in paper.axes[0].get_yticklabels() if one.get_visible()]
    assert len(result.stages) == 58
    assert list(label_faults(paper)) == []
    assert 20 <= len(shown) <= 45


def one_panel(*marks, x=None, y=None, **changes):
    """A figure of one panel."""
    panel = Panel(x=x or Axis(), y=y or Axis(), marks=marks)
    return Figure(name="one", title="One", seen="One.", panels=(panel,), **changes)


def test_bounds_of_an_axis_never_cut_what_is_drawn():
    """An interval from 2 to 8 under bounds of 0 and 5: the axis ends 5 % of 8 above 8."""
    points = Points(label="", x=(5.0,), y=(0.0,), x_half_widths=(3.0,), colour=BLUE)
    ((x, _),) = axis_spans(one_panel(points, x=Axis(low=0.0, high=5.0)))

    assert x == pytest.approx((0.0, 8.4))


def test_boxes_span_their_axes():
    """Rows 0 and 1 of height 0.8 from 0 to 10, with a margin of 5 %."""
    boxes = Boxes(label="", starts=(0.0, 5.0), ends=(5.0, 10.0), rows=(0.0, 1.0), colour=BLUE,
                  height=0.8)  # fmt: skip
    ((x, y),) = axis_spans(one_panel(boxes))

    assert x == pytest.approx((-0.5, 10.5))
    assert y == pytest.approx((-0.4 - 0.09, 1.4 + 0.09))


@pytest.mark.parametrize(("value", "room"), [(51.1, 5.11), (0.0, 0.1)])
def test_values_that_differ_by_rounding_have_an_axis_of_their_size(value, room):
    line = Line(label="", x=(0.0, 1.0), y=(value, value * (1 + 1e-15)), colour=BLUE)
    ((_, (low, high)),) = axis_spans(one_panel(line))

    assert high - low == pytest.approx(2 * room, rel=1e-6)


def test_a_shared_axis_spans_all_panels():
    lines = [Line(label="", x=(at, at + 1.0), y=(0.0, 1.0), colour=BLUE) for at in (0.0, 9.0)]
    panels = tuple(Panel(x=Axis(), y=Axis(), marks=(line,)) for line in lines)
    figure = one_panel(lines[0])
    both = Figure(name="two", title="Two", seen="Two.", panels=panels, shares_x=True)

    (first, _), (second, _) = axis_spans(both)
    assert first == second == pytest.approx((-0.05, 10.05))
    assert axis_spans(figure)[0][0] == pytest.approx((-0.05, 1.05))


def test_kinds_of_cells_are_named_in_the_legend_and_stand_where_their_columns_do():
    """Columns named by numbers are places, not numbers, so that their ticks are below them."""
    kinds = (("pipeline", "#112233"), ("single", "#445566"), ("replicas", "#778899"))
    cells = Cells(
        label="", rows=("4 M",), columns=("0.25", "16"), values=((0.0, 2.0),), kinds=kinds
    )
    figure = one_panel(cells)

    spec = web_spec(figure)
    assert spec["data"][0]["x"] == [0, 1]
    assert spec["data"][0]["colorscale"][:2] == [[0.0, "#112233"], [1 / 3, "#112233"]]
    assert [trace["name"] for trace in spec["data"][1:]] == ["pipeline", "replicas"]
    assert [one.get_text() for one in draw(figure).legends[0].get_texts()] == [
        "pipeline",
        "replicas",
    ]


def test_counted_axes_have_ticks_at_whole_numbers():
    line = Line(label="", x=(0.0, 1.0), y=(0.0, 3.0), colour=BLUE)
    figure = one_panel(line, y=Axis(is_counted=True))

    ticks = draw(figure).axes[0].get_yticks()
    assert all(float(at).is_integer() for at in ticks)
    assert web_spec(figure)["layout"]["yaxis"]["dtick"] == 1


def test_a_wide_table_of_few_rows_is_turned():
    """Figures of 20 names of a policy: a row for each; the same of 20 policies stays."""
    row = {f"figure_{number}": number for number in range(20)}
    few = frame_table("Figures", pd.DataFrame([{"policy": "hpa"} | row]))
    many = frame_table("Figures", pd.DataFrame([{"policy": f"p{at}"} | row for at in range(21)]))

    assert few.head == ("policy", "hpa")
    assert few.rows[3] == ("figure_3", "3")
    assert len(many.head) == len(many.rows) == 21
