"""Sources of a watch: files of tools, and Prometheus over HTTP."""

import shutil
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from calibration.measurements.sites import Sites
from scenarios.watch.folder_source import FolderSource
from scenarios.watch.url_source import UrlSource

SAMPLES = Path(__file__).resolve().parents[1] / "calibration_measurements" / "samples"
SITES = Sites(patterns={"F": ("10.1.0.0/16", "fra-*"), "P": ("10.2.0.0/16", "par-*")})
LINK_OF_SAMPLE = {
    ("F->P", "bandwidth_bytes_per_s"): [1e9, 0.9e9, 0.8e9, 1e9],
    ("F->P", "latency_s"): [0.01, 0.0105, 0.01, 0.01],
    ("P->F", "latency_s"): [0.01, 0.0105, 0.01, 0.01],
}


def figures(observations):
    """Values by link and figure, in the order of time."""
    found = {}
    for one in observations:
        found.setdefault((one.about, one.figure), []).append(one.value)
    return found


def test_files_of_tools_are_read_once_by_their_content(tmp_path):
    source = FolderSource(folder=tmp_path, sites=SITES)
    shutil.copy(SAMPLES / "iperf3_3.12_one_way.json", tmp_path / "a.json")
    (seen,) = source.arrivals().observations
    shutil.copy(SAMPLES / "iperf3_3.12_one_way.json", tmp_path / "b.json")
    again = source.arrivals()
    (tmp_path / ".hidden").write_text("nonsense")

    assert (seen.about, seen.figure) == ("F->P", "bandwidth_bytes_per_s")
    assert again.observations == ()
    assert again.problems == (f"{tmp_path / 'b.json'}: left out, it has the content of a.json",)
    assert source.arrivals().problems == ()


def test_series_of_prometheus_are_observations_at_their_times(tmp_path):
    shutil.copy(SAMPLES / "prometheus.json", tmp_path)
    found = FolderSource(folder=tmp_path, sites=SITES).arrivals()

    assert found.problems == ()
    assert {key: pytest.approx(one) for key, one in figures(found.observations).items()} == (
        LINK_OF_SAMPLE
    )
    assert found.observations[0].time_s == 1.7e9


def test_a_log_of_a_run_says_nothing_of_links(tmp_path):
    shutil.copy(SAMPLES / "torchtitan.log", tmp_path)
    (problem,) = FolderSource(folder=tmp_path, sites=SITES).arrivals().problems

    assert "must hold bandwidth or round trips between two sites; got" in problem


def test_lines_are_read_on_from_where_they_ended_and_a_shorter_file_is_new(tmp_path):
    path, source = tmp_path / "x.jsonl", FolderSource(folder=tmp_path, sites=SITES)
    line = '{"time": 1, "site": "F", "up": true}\n'
    counts = []
    for text in (line, line * 2, line * 2 + line[:9], line * 3, line):
        path.write_text(text)
        counts.append(len(source.arrivals().observations))

    assert counts == [1, 1, 0, 1, 1]


class _Prometheus(BaseHTTPRequestHandler):
    """Answers with the sample, and notes what it was asked for."""

    def __init__(self, asked, *arguments):
        self.asked = asked
        super().__init__(*arguments)

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200 if "query_range" in self.path else 500)
        self.end_headers()
        self.wfile.write((SAMPLES / "prometheus.json").read_bytes())

    def log_message(self, format, *arguments):
        """Say nothing."""


@pytest.fixture
def prometheus():
    """Address of a server, and what it was asked for."""
    asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Prometheus, asked)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


def test_prometheus_is_asked_for_what_is_new(prometheus):
    address, asked = prometheus
    times_s = iter([1700001000.5, 1700001000.5, 1700001060.0, 1700001060.0])
    source = UrlSource(
        url=f"{address}/api/v1/query_range?query=up", sites=SITES, clock=lambda: next(times_s)
    )
    first, second = source.arrivals(), source.arrivals()

    assert {key: pytest.approx(one) for key, one in figures(first.observations).items()} == (
        LINK_OF_SAMPLE
    )
    assert second.problems == ()
    assert [path.partition("&")[2] for path in asked] == [
        "start=1700000400&end=1700001000&step=60",
        "start=1700001000&end=1700001060&step=60",
    ]


def test_an_address_that_does_not_answer_is_a_line(prometheus):
    address, _ = prometheus
    (problem,) = UrlSource(url=f"{address}/other", sites=SITES).arrivals().problems

    assert "cannot be read: HTTP Error 500" in problem
