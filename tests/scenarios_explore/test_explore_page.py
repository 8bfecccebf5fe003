"""The explorer in a browser, and its command."""

import contextlib
import json
import re
import socket

import pytest
from browser import needs_axe, needs_chromium

pytest.importorskip("dash", reason='no dash; pip install "eastwest[explore]"')

from bench.browser import chromium
from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.command import HOST, Served, free_port, main
from scenarios.explore.controls import CONTROLS
from scenarios.explore.layout import EXPORTS
from scenarios.explore.scene import Settings

SMALL = Settings(model="llama2_7b", num_sequences=4)
READY = "document.querySelectorAll('#gantt .bars path').length > 10"


@pytest.fixture
def served(tmp_path):
    run = tmp_path / "a run"
    run.mkdir()
    (run / "report.html").write_text("<title>a report</title>", encoding="utf-8")
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    app = explorer_app(Explorer(settings=SMALL, runs=tmp_path))
    with Served(app.server, free_port(0)) as found:
        yield found


def test_the_page_draws_and_answers_its_controls(served):
    assert served.draw_once().startswith("East*11,Central*11,West*10: ")


def test_reports_of_runs_are_served_and_nothing_else(served):
    assert b"a report" in served.fetch("/runs/a%20run")
    for path in ("/runs/secret", "/runs/..", "/runs/..%2fsecret", "/assets/setup.cfg"):
        answer = b""
        with contextlib.suppress(OSError):  # not found; other paths give the page itself
            answer = served.fetch(path)
        assert b"secret" not in answer
        assert b"[metadata]" not in answer


@needs_chromium
@needs_axe
def test_the_explorer_is_readable_and_asks_this_machine_alone(served):
    with chromium() as tab:
        tab.show(width=1280)
        tab.open(served.url, READY)
        before = tab.run("document.getElementById('answer').textContent")
        tab.run("window.dash_clientside.set_props('bandwidth', {value: -2})")
        tab.wait_for(f"document.getElementById('answer').textContent !== {before!r}")
        assert tab.violations() == []
        tab.show(width=390, scheme="dark")
        tab.wait_for("document.querySelector('#gantt .main-svg').clientWidth < 390")
        assert tab.overflow() <= 0
        assert tab.complaints == []
        assert {url.split("/")[2] for url in tab.requests} == {served.url.split("/")[2]}


@pytest.fixture
def tab(served):
    with chromium() as found:
        found.open(served.url, READY)
        yield found


def text(tab, name):
    return tab.run(f"document.getElementById({name!r}).textContent")


def focus(tab, name):
    tab.run(f"document.getElementById({name!r}).focus()")


def wait_for_change(tab, name, before):
    tab.wait_for(f"document.getElementById({name!r}).textContent !== {json.dumps(before)}")
    return text(tab, name)


@needs_chromium
@needs_axe
def test_every_control_is_set_by_keys_and_does_what_it_says(tab):
    """Fields by typing and Enter, sliders by arrows; a bound never stands beside another time."""
    for name, value, said in (
        ("network", "four_uneven", "North*8,South*8"),
        ("model", "llama2_13b", "North*10,South*10"),
        ("schedule", "zb_h1", "North*10,South*10"),
        ("family", "single", "*40: "),
    ):
        before = text(tab, "answer")
        tab.run(f"document.getElementById({name!r}).select()")
        tab.call("Input.insertText", text=value)
        tab.press("Enter")
        assert said in wait_for_change(tab, "answer", before), name
        tab.wait_for("document.getElementById('fact-bound').textContent")
        over = re.findall(r"below (.+) s; this one is (.+) % above", text(tab, "fact-bound"))
        step_s = float(text(tab, "fact-time").partition(" ")[0])
        assert [100 * (step_s / float(bound_s) - 1) for bound_s, _ in over] == [
            pytest.approx(float(share), abs=0.6) for _, share in over
        ]
    for name, said in (
        ("bandwidth", "bandwidth x 0.841"),
        ("latency", "latency x 0.841"),
        ("gpus", "x 0.841, "),
        ("sequences", ", 12,288 tokens a step"),
    ):
        before = text(tab, "fact-settings")
        focus(tab, name)
        tab.press("ArrowLeft")
        assert said in wait_for_change(tab, "fact-settings", before), name
    assert tab.complaints == []


@needs_chromium
@needs_axe
def test_a_wrong_value_is_said_at_its_control_in_a_colour_that_is_read(tab):
    tab.show(width=390, scheme="dark")
    tab.run("document.getElementById('family').select()")
    tab.call("Input.insertText", text="nonsense")
    tab.press("Enter")

    wrong = wait_for_change(tab, "wrong-family", "")
    assert wrong.startswith("family must be one of those suggested, got 'nonsense'; allowed are ")
    assert tab.violations() == []
    assert tab.overflow() <= 0


@needs_chromium
def test_tab_passes_every_control_in_order_and_buttons_are_pressed_by_keys(tab, tmp_path):
    passed = []
    while "BODY" not in passed:
        tab.press("Tab")
        passed.append(tab.run("document.activeElement.id || document.activeElement.tagName"))
    buttons = ["compare", "sweep", *(f"save-{key}" for key in EXPORTS)]
    assert [name for name in passed if name in {*CONTROLS, *buttons}] == [*CONTROLS, *buttons]

    tab.save_into(tmp_path / "saved")
    for num, key in enumerate(EXPORTS, 1):
        focus(tab, f"save-{key}")
        tab.press("Space")
        tab.wait_for_saved(num)
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        *("network.yaml", "plan.json", "trace.json", "report.html")
    }
    focus(tab, "compare")
    tab.press("Enter")
    tab.wait_for("document.querySelectorAll('#planners tbody tr').length > 5")
    assert tab.complaints == []


def test_check_draws_once_and_stops(capsys):
    assert main(["--check", "--model", "llama2_7b", "--microbatches", "4"]) == 0
    assert capsys.readouterr().out.startswith("drawn: East*11,Central*11,West*10: ")


def test_a_port_in_use_is_one_line_and_code_2(capsys):
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--port", str(port)]) == 2

    error = capsys.readouterr().err
    assert f"port {port} must be free" in error
    assert len(error.splitlines()) == 1
