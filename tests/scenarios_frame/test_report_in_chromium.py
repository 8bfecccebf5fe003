"""A report in a browser: nothing is complained about, asked for, too wide or hard to read."""

import pytest
from browser import needs_axe, needs_chromium
from evaluations import evaluation
from strategies import plan, unit_workload, world

from bench.browser import chromium
from des import lower
from des.views.plan_views import plan_views
from scenarios.frame.plots import comparison_bars
from scenarios.frame.report import Repetition, Report
from scenarios.frame.report_page import render_report
from scenarios.frame.statistics import summarise
from scenarios.frame.summary_table import summary_page_table

pytestmark = [needs_chromium, needs_axe]
DRAWN = "document.documentElement.dataset.drawnMs"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    links = dict.fromkeys(("AB", "BA", "BC", "CB", "AC", "CA"), (10.0, 0.1))
    workload = unit_workload([(1.0, 2.0)] * 3, num_microbatches=4, message_bytes=1.0)
    topology = world("ABC", links)
    views = plan_views(topology, lower(topology, workload, plan(0, 0, 1)))
    report = Report(
        title="A report",
        question="Where should the model be?",
        answer="Two layers in A, one in B.",
        repeat=Repetition(command="python -m scenarios.simulate", configuration={"model": "unit"}),
        first=views.first,
        tables=(summary_page_table(summarise(evaluation())),),
        figures=(comparison_bars(evaluation()), *views.more),
        caveats=("Links are simulated.",),
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_report(report), encoding="utf-8")
    return path.as_uri()


def test_a_report_is_drawn_readable_and_asks_for_nothing(page):
    """At 1280 pixels in light and 390 in dark: all five figures, first screen, widths, contrast."""
    with chromium() as tab:
        for width, scheme in ((1280, "light"), (390, "dark")):
            tab.show(width=width, scheme=scheme)
            tab.open(page, DRAWN)

            assert tab.run("document.querySelectorAll('.drawing .main-svg').length") >= 5
            assert tab.overflow() <= 0
            assert tab.violations() == []
            if width == 1280:
                bottom = "document.querySelector('.first').getBoundingClientRect().bottom"
                assert tab.run(bottom) <= 900
        assert tab.complaints == []
        assert tab.requests == []
