"""Reports: equal input gives equal bytes, HTML is whole, and shows what it was given."""

import base64
import hashlib
import html
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from evaluations import evaluation
from rich.console import Console

from agents.answer.sections import Section
from des.base.command import UsageError
from des.figures.web import web_spec
from scenarios.frame.files import read_csv
from scenarios.frame.outputs import OutputChoice, write_outputs
from scenarios.frame.plots import comparison_bars
from scenarios.frame.report import Repetition, Report
from scenarios.frame.report_page import render_report
from scenarios.frame.statistics import summarise
from scenarios.frame.summary_table import summary_page_table, summary_table

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


def report(**changes: object) -> Report:
    values = {
        "title": "East-West training",
        "question": "How good is PPO?",
        "answer": "PPO is 10 % slower than exact.",
        "repeat": Repetition(
            command="python -m scenarios.east_west_train --seed 0",
            configuration={"steps": 100, "limit_s": None},
        ),
        "tables": (summary_page_table(summarise(evaluation())),),
        "first": (comparison_bars(evaluation()),),
        "versions": {"python": "3"},
        "fidelity": ("Iteration times are right.",),
        "caveats": ("Links are simulated.",),
    }
    return Report(**(values | changes))


def test_a_report_is_whole_and_needs_nothing_from_outside():
    """Every tag is closed in order; the only sources are pictures inside the file."""
    text = render_report(report())
    page = Page(text)

    own = "".join(part for part in text.split("<script>") if len(part) < 100_000)
    assert re.search(r"https?:|url\(|@import|<link", own) is None
    assert not {name for _, name, _ in page.attributes} & {"src", "href"}
    assert page.tags[:3] == ["html", "head", "meta"]
    assert len(text.encode()) < 8_000_000


def test_a_report_shows_everything_it_was_given():
    """Title, question, answer, command, figures, configuration, fidelity and caveats."""
    page = Page(render_report(report()))

    assert page.inside("h1") == page.inside("title") == ["East-West training"]
    assert "PPO is 10 % slower than exact." in page.inside("p")
    assert page.inside("code") == ["python -m scenarios.east_west_train --seed 0"]
    figure = comparison_bars(evaluation())
    assert page.inside("figcaption") == [figure.seen]
    assert ("figure", "aria-label", figure.seen) in page.attributes
    assert page.inside("li") == ["Iteration times are right.", "Links are simulated."]
    (specs,) = (text for tag, text in page.texts if tag == "script" and text.startswith("{"))
    assert json.loads(specs) == {"comparison": web_spec(figure)}
    assert page.inside("th")[-3:] == ["steps", "limit_s", "python"]
    assert page.inside("td")[-3:] == ["100", "None", "3"]


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
    one_draw = summarise(evaluation()[lambda frame: frame["draw"] == 0])
    text = render_report(report(tables=(summary_page_table(one_draw),), first=()))

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
                question=hostile,
                answer=hostile,
                repeat=Repetition(command=hostile, configuration={hostile: hostile}),
                tables=(summary_page_table(summarise(frame)),),
                first=(replace(comparison_bars(frame), title=hostile, seen=hostile),),
                versions={},
                fidelity=(hostile,),
                caveats=(hostile,),
            )
        )
    )

    assert "b" not in page.tags
    assert page.tags.count("script") == 3  # the figures, plotly.js and what draws
    for tag in ("title", "h1", "h2", "p", "code", "figcaption", "th", "td", "li"):
        assert hostile in page.inside(tag)
    assert ("figure", "aria-label", hostile) in page.attributes
    assert "x<y" in page.inside("th")


def test_sections_of_an_answer_are_tables_too():
    section = Section(title="Where", lines=("a line",), head=("domain",), rows=(("East",),))
    page = Page(render_report(report(sections=(section,), first=())))

    assert "Where" in page.inside("h2")
    assert "East" in page.inside("th")


def test_equal_reports_are_equal_bytes_and_figures_have_files_of_their_own(tmp_path):
    """Nothing of the time or place goes into the files, and nothing is left beside them."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        choice = OutputChoice(figures=("svg",))
        write_outputs(tmp_path / name, choice, report(), {"evaluation": evaluation()})

    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two
    assert sorted(one) == ["comparison.svg", "evaluation.csv", "report.html"]
    assert one["report.html"].decode() == render_report(report())


def test_rows_are_kept_where_the_report_cannot_be_written(tmp_path):
    (tmp_path / "report.html").mkdir()

    with pytest.raises(ValueError, match=r"report.html: cannot be written"):
        write_outputs(tmp_path, OutputChoice(), report(), {"evaluation": evaluation()})

    assert read_csv(tmp_path / "evaluation.csv").equals(evaluation())


def test_rows_go_into_parquet_files_too(tmp_path):
    pytest.importorskip("pyarrow")
    choice = OutputChoice(parquet=True)

    files = choice.row_files({"evaluation": evaluation()})

    assert sorted(files) == ["evaluation.csv", "evaluation.parquet"]
    assert pd.read_parquet(io.BytesIO(files["evaluation.parquet"])).equals(evaluation())


def test_no_figures_are_no_files():
    assert OutputChoice(figures=("none",)).report_files(report()).keys() == {"report.html"}


def test_wrong_choices_are_refused():
    with pytest.raises(UsageError, match="each once; got none,png"):
        OutputChoice(figures=("none", "png"))
    with pytest.raises(UsageError, match="--figures: figures must be some of png, pdf, svg"):
        OutputChoice(figures=("gif",))
    with pytest.raises(ValueError, match="figures must have own names, got 'comparison'"):
        report(figures=(comparison_bars(evaluation()),))


def test_pages_allow_their_own_scripts_alone():
    """By hash; no network, and nothing that is compiled from text."""
    text = render_report(report())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    policy = html.unescape(policy)
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)

    hashes = [hashlib.sha256(one.encode()).digest() for one in scripts]
    allowed = [f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes]
    directives = dict(one.strip().split(" ", 1) for one in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"].split() == allowed


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
    page = Page(render_report(report(tables=(summary_page_table(summary),), first=())))

    assert page.inside("td")[:2] == ["123.5 ± 1.2", "123,457 ± 1,234"]
    assert [*page.inside("strong"), page.inside("td")[2]] == ["0.001235 ± 0.000046", "22.73 ± 0"]
