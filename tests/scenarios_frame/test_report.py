"""Figures and report: equal input gives equal bytes, HTML is whole, and shows what it was given."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from rich.console import Console

from scenarios.frame.pictures import Picture
from scenarios.frame.plots import comparison_bars, learning_curve, png_bytes
from scenarios.frame.report import Report, render_report, summary_table, write_report
from scenarios.frame.statistics import summarise

VOID_TAGS = {"meta", "img"}


class Page(HTMLParser):
    """Collects what a browser would, and fails on a tag that is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID_TAGS:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self._open[-1] if self._open else "", data.strip()))

    def inside(self, tag: str) -> list[str]:
        return [text for parent, text in self.texts if parent == tag]


def metrics() -> pd.DataFrame:
    steps = np.arange(1, 21) * 2048
    times_s = 12.0 + 30.0 * np.exp(-steps / 10_000)
    return pd.DataFrame({"step": steps, "mean_reward": -times_s, "mean_iteration_time_s": times_s})


def evaluation() -> pd.DataFrame:
    factors = {"uniform": 1.5, "ppo": 1.1, "exact": 1.0}
    rows = [
        {
            "draw": draw,
            "planner": planner,
            "iteration_time_s": (10.0 + draw) * factor,
            "utilisation": 0.5 / factor,
            "communication_cost_bytes": 3e9,
            "decision_time_s": 0.002 / factor,
            "reward": -factor,
            "fits_memory": planner != "uniform" or draw != 0,
        }
        for planner, factor in factors.items()
        for draw in range(3)
    ]
    return pd.DataFrame(rows)


def report(**changes: object) -> Report:
    values = {
        "title": "East-West training",
        "verdict": "PPO is 10 % slower than exact.",
        "command": "python -m scenarios.east_west_train --seed 0",
        "summary": summarise(evaluation()),
        "pictures": (Picture(caption="The learning curve.", png=b"\x89PNG one"),),
        "configuration": {"steps": 100, "limit_s": None},
        "fidelity": ("Iteration times are right.",),
        "caveats": ("Links are simulated.",),
    }
    return Report(**(values | changes))


def pixels(png: bytes) -> np.ndarray:
    return imread(io.BytesIO(png), format="png")


def test_a_learning_curve_shows_the_columns_and_the_references():
    """The lines hold exactly the numbers of the log; each reference is a line with its name."""
    figure = learning_curve(metrics(), {"uniform": 18.0, "exact": 12.0})
    rewards, times = figure.axes

    np.testing.assert_array_equal(rewards.lines[0].get_xdata(), metrics()["step"])
    np.testing.assert_array_equal(rewards.lines[0].get_ydata(), metrics()["mean_reward"])
    np.testing.assert_array_equal(times.lines[0].get_ydata(), metrics()["mean_iteration_time_s"])
    assert [line.get_ydata()[0] for line in times.lines[1:]] == [12.0, 18.0]
    assert [text.get_text() for text in times.texts] == ["exact 12 s", "uniform 18 s"]
    assert times.get_ylabel() == "mean iteration time [s]"


@pytest.mark.parametrize("slowest_s", [18.0, 500.0])
def test_labels_of_references_stay_apart_and_inside(slowest_s):
    """On a linear axis and on the logarithmic one that a slow reference needs."""
    references = {"a": 12.0, "b": 12.01, "c": 12.02, "y": slowest_s, "z": slowest_s}
    times = learning_curve(metrics(), references).axes[1]
    heights = [text.xy[1] for text in times.texts]

    assert times.get_yscale() == ("log" if slowest_s == 500.0 else "linear")
    assert all(gap > 0.08 for gap in np.diff(heights))
    assert max(heights) <= 1.0


def test_bars_are_the_means_in_order_with_a_point_per_draw():
    """exact 11 s, ppo 12.1 s, uniform 16.5 s, three points each, intervals by hand."""
    axes = comparison_bars(evaluation()).axes[0]

    assert [bar.get_width() for bar in axes.patches] == pytest.approx([11.0, 12.1, 16.5])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["exact", "ppo", "uniform"]
    points = [list(points.get_offsets()[:, 0]) for points in axes.collections[::2]]
    assert points[0] == pytest.approx([10.0, 11.0, 12.0])
    # t(2) = 4.3027 times the standard error 1 / sqrt(3)
    assert axes.texts[0].get_text() == "11 ± 2.5 s"


def test_a_single_draw_and_a_single_update_can_be_drawn():
    """The first update of a run, one draw, no references."""
    assert png_bytes(learning_curve(metrics()[:1], {})).startswith(b"\x89PNG")
    figure = comparison_bars(evaluation()[lambda frame: frame["draw"] == 0])
    assert figure.axes[0].texts[0].get_text() == "10 s"
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_the_same_figure_gives_the_same_bytes():
    """Rendered twice, and drawn again; no software version or time inside."""
    figure = learning_curve(metrics(), {"exact": 12.0})
    content = png_bytes(figure)

    assert png_bytes(figure) == content
    assert png_bytes(learning_curve(metrics(), {"exact": 12.0})) == content
    assert png_bytes(comparison_bars(evaluation())) == png_bytes(comparison_bars(evaluation()))
    assert b"Software" not in content
    assert b"tEXt" not in content


def test_other_numbers_give_another_picture():
    """The bytes are equal because the input is, not because nothing is drawn."""
    one = pixels(png_bytes(comparison_bars(evaluation())))
    other = pixels(png_bytes(comparison_bars(evaluation()[lambda frame: frame["draw"] > 0])))

    assert one.shape == other.shape
    assert (one != other).any()
    assert len(np.unique(one.reshape(-1, one.shape[2]), axis=0)) > 10


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: learning_curve(metrics()[["step"]], {}), "metrics must have the columns mean_rew"),
        (lambda: learning_curve(metrics()[:0], {}), "metrics must have rows"),
        (lambda: comparison_bars(evaluation()[["draw"]]), "must have the columns planner, iter"),
        (lambda: comparison_bars(evaluation()[:0]), "evaluation must have rows"),
    ],
)
def test_a_table_without_what_a_figure_needs_is_refused(draw, message):
    """The message names the table and what it lacks."""
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_report_is_whole_and_needs_nothing_from_outside():
    """Every tag is closed in order; the only sources are pictures inside the file."""
    text = render_report(report())
    page = Page(text)

    assert re.search(r"https?:|url\(|@import|<script|<link", text) is None
    assert {value[:22] for _, name, value in page.attributes if name in ("src", "href")} == {
        "data:image/png;base64,"
    }
    assert page.tags[:3] == ["html", "head", "meta"]


def test_a_report_shows_everything_it_was_given():
    """Title, verdict, command, pictures to the last byte, configuration, fidelity and caveats."""
    page = Page(render_report(report()))

    assert page.inside("h1") == page.inside("title") == ["East-West training"]
    assert "PPO is 10 % slower than exact." in page.inside("p")
    assert page.inside("code") == ["python -m scenarios.east_west_train --seed 0"]
    assert page.inside("figcaption") == ["The learning curve."]
    assert page.inside("li") == ["Iteration times are right.", "Links are simulated."]
    sources = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    assert [base64.b64decode(source.partition(",")[2]) for source in sources] == [b"\x89PNG one"]
    assert page.inside("th")[-2:] == ["steps", "limit_s"]
    assert page.inside("td")[-2:] == ["100", "None"]


def test_the_table_has_a_row_per_planner_and_the_best_in_bold():
    """exact is best in time, utilisation and reward; uniform decides fastest; two always fit."""
    page = Page(render_report(report()))

    assert page.inside("th")[:7] == [
        *("planner", "iteration time [s]", "utilisation [%]", "comm. cost [GB]"),
        *("decision time [ms]", "reward", "fits mem. [%]"),
    ]
    assert page.inside("th")[7:10] == ["exact", "ppo", "uniform"]
    assert page.inside("strong") == [
        *("11.0 ± 2.5", "50 ± 0", "-1 ± 0", "100 ± 0"),  # exact
        "100 ± 0",  # ppo
        "1.333 ± 0",  # uniform
    ]
    assert page.inside("td").count("3 ± 0") == 3  # all alike, so none is best


def test_a_single_draw_is_shown_without_an_interval():
    """NaN is for computing, not for reading."""
    text = render_report(report(summary=summarise(evaluation()[lambda frame: frame["draw"] == 0])))

    assert "nan" not in text
    assert "<strong>10</strong>" in text


def test_text_is_never_taken_for_html():
    """Hostile text in every place comes out as the same text."""
    hostile = "<script>alert('1')</script> & \"quoted\" <b>"
    frame = evaluation().replace({"planner": {"ppo": hostile}}).assign(**{"x<y": 1.0})
    page = Page(
        render_report(
            report(
                title=hostile,
                verdict=hostile,
                command=hostile,
                summary=summarise(frame),
                pictures=(Picture(caption=hostile, png=b""),),
                configuration={hostile: hostile},
                fidelity=(hostile,),
                caveats=(hostile,),
            )
        )
    )

    assert set(page.tags).isdisjoint({"script", "b"})
    for tag in ("title", "h1", "p", "code", "figcaption", "th", "td", "li"):
        assert hostile in page.inside(tag)
    assert ("img", "alt", hostile) in page.attributes
    assert "x<y" in page.inside("th")


def test_equal_reports_are_equal_bytes(tmp_path):
    """Nothing of the time or place goes into the file, and nothing is left beside it."""
    for name in ("one", "two"):
        write_report(tmp_path / name, report())

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_text(encoding="utf-8") == render_report(report())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_the_console_table_fits_eighty_characters_and_shows_the_same_numbers():
    """Names that look like markup are shown as they are."""
    frame = evaluation().replace({"planner": {"ppo": "[red]ppo"}})
    console = Console(width=80, file=io.StringIO())
    console.print(summary_table(summarise(frame)))
    lines = console.file.getvalue().splitlines()

    assert max(map(len, lines)) <= 80
    shown = {line.split()[0]: line.split()[1:] for line in lines if "±" in line}
    assert shown["exact"] == ["11.0±2.5", "50±0", "3±0", "2±0", "100±0"]
    assert shown["[red]ppo"][0] == "12.1±2.7"
    assert "over 3 draws; best in bold." in " ".join(console.file.getvalue().split())


def test_the_digits_shown_are_those_that_the_interval_supports():
    """Two digits of the half width; a spread from rounding alone is none."""
    summary = pd.DataFrame(
        {
            "num_draws": [9, 9, 9, 9],
            "iteration_time_s": [123.456, 123456.7, 0.00123456, 22.7272],
            "iteration_time_s_half_width": [1.234, 1234.5, 0.0000456, 1e-14],
        },
        index=pd.Index(["a", "b", "c", "d"], name="planner"),
    )
    page = Page(render_report(report(summary=summary)))

    assert page.inside("td")[:2] == ["123.5 ± 1.2", "123,457 ± 1,234"]
    assert [*page.inside("strong"), page.inside("td")[2]] == ["0.001235 ± 0.000046", "22.73 ± 0"]
