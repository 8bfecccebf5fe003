"""The explorer in a browser, and its command."""

import contextlib
import socket

import pytest
from browser import needs_axe, needs_chromium

pytest.importorskip("dash", reason='no dash; pip install "eastwest[explore]"')

from bench.browser import chromium
from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.command import HOST, Served, free_port, main
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
