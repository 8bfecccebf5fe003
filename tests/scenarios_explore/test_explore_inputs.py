"""The explorer under attack: values of no control, calls of no page, links as runs."""

import copy
import json
import os
import re
import threading
from dataclasses import replace

import pytest
from examples import examples
from explorer_calls import GOOD, SMALL, callbacks, sent
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("dash", reason='no dash; pip install "eastwest[explore]"')

from des import read_topology
from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.calls import TimeLimit
from scenarios.explore.controls import CONTROLS, ControlError, Controls
from scenarios.explore.exports import names_with_report, read_report

pytestmark = pytest.mark.attack
odd_values = (
    st.none()
    | st.booleans()
    | st.integers(257)
    | st.integers(max_value=0).filter(lambda number: number < -4)
    | st.floats().filter(lambda number: not -4 <= number <= 256)
    | st.text(min_size=41)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
    | st.just(4.5)
    | st.integers(257, 10**6).map(str)
    | st.sampled_from(["/etc/passwd", "../../secret.yaml", "10" * 20])
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    explorer = Explorer(settings=SMALL, runs=tmp_path_factory.mktemp("runs"))
    return explorer_app(explorer).server.test_client()


@pytest.fixture(scope="module")
def calls(client):
    return callbacks(client)


@settings(max_examples=examples(200))
@given(data=st.data(), value=odd_values)
def test_a_value_that_a_control_cannot_have_is_said_at_the_control(client, calls, data, value):
    """Whatever is asked for; nothing is computed, so that it takes no time."""
    call = copy.deepcopy(data.draw(st.sampled_from(calls)))
    fields = [one for one in (*call["inputs"], *call["state"]) if one["id"] in CONTROLS]
    if call["output"] == "runs.children" or not fields:
        return
    field = data.draw(st.sampled_from(fields))
    field["value"] = value
    if field["id"] in ("bandwidth", "latency") and value == 4.5:
        value = field["value"] = 5.5

    status, text = sent(client, call)

    assert status in (200, 204)
    if "gantt" in call["output"]:
        shown = json.loads(text)["response"]
        assert shown["answer"]["children"].startswith("This cannot be: ")
        if not (field["id"] == "schedule" and isinstance(value, str) and len(value) <= 40):
            said = shown[f"wrong-{field['id']}"]["children"]
            assert re.match(f"{field['id']} must (be|have) .*, got ", said)
            assert len(said) < 600
            assert "gantt" not in shown


@settings(max_examples=examples(200))
@given(data=st.data())
def test_a_call_that_no_page_makes_is_refused(client, calls, data):
    """Parts missing, of another kind or of another callback; bytes that are no JSON."""
    call = copy.deepcopy(data.draw(st.sampled_from(calls)))
    part = data.draw(st.sampled_from(["output", "outputs", "inputs", "state", "changedPropIds"]))
    odd = data.draw(
        st.none() | st.integers() | st.just([1]) | st.just({"id": "answer"}) | st.just("..x...y..")
    )
    bad = data.draw(
        st.sampled_from(
            [
                {**call, part: odd},
                {"output": call["output"]},
                [call],
                b"[" * 100_000,
                b"\xff",
                b"",
                b'{"output": 1e999}',
                b'{"a": 1, "a": 2}',
            ]
        )
    )
    assert sent(client, bad)[0] == 400


@given(
    number=st.integers(10**3, 10**30),
    control=st.sampled_from(["gpus", "sequences", "bandwidth", "latency"]),
)
def test_numbers_are_bounded_by_the_page(number, control):
    """By its sliders, which reach to what it was started with."""
    controls = Controls.of(SMALL, read_topology("east_central_west"))
    values = dict(zip(CONTROLS, GOOD, strict=True)) | {control: number}

    with pytest.raises(ControlError, match=f"{control} must be .* to [0-9]+, got [0-9]") as refused:
        controls.settings(tuple(values.values()))
    assert refused.value.control == control
    large = Controls.of(replace(SMALL, num_sequences=500), read_topology("east_central_west"))
    assert large.spans["sequences"][1] == 500


def test_a_moved_slider_comes_as_text_and_counts_as_its_number():
    """So browsers send it; the values that a page begins with come as numbers."""
    controls = Controls.of(SMALL, read_topology("east_central_west"))
    numbers = dict(zip(CONTROLS, GOOD, strict=True))
    numbers |= {"bandwidth": -0.25, "latency": 4, "gpus": 16, "sequences": 7}
    texts = numbers | {name: str(numbers[name]) for name in controls.spans}

    assert controls.settings(tuple(texts.values())) == controls.settings(tuple(numbers.values()))
    for wrong in ("8.5", " 8", "8e0", "0x8", "nan", "-0", ""):
        with pytest.raises(ControlError, match=r"gpus must be a whole number from 1 to 64, got '"):
            controls.settings(tuple((texts | {"gpus": wrong}).values()))


@pytest.mark.parametrize("kind", ["report", "folder", "fifo", "folder as report", "outside"])
def test_reports_are_regular_files_of_run_folders(tmp_path, kind):
    """No links, whatever they lead to, and nothing that a reader would wait for."""
    runs, secret = tmp_path / "runs", tmp_path / "secret"
    (runs / "good").mkdir(parents=True)
    (runs / "good" / "report.html").write_text("good")
    secret.mkdir()
    (secret / "report.html").write_text("secret")
    bad = runs / "bad"
    if kind == "folder":
        bad.symlink_to(secret)
    elif kind != "outside":
        bad.mkdir()
    if kind == "report":
        (bad / "report.html").symlink_to(secret / "report.html")
    elif kind == "fifo":
        os.mkfifo(bad / "report.html")
    elif kind == "folder as report":
        (bad / "report.html").mkdir()

    assert names_with_report(runs) == ["good"]
    assert read_report(runs, "good") == b"good"
    for name in ("bad", "..", ".", "", "../secret", "good/../../secret", "\0"):
        assert read_report(runs, name) is None


def test_an_answer_that_takes_too_long_is_given_up():
    """So are those that wait for their turn; the work itself runs to its end."""
    limit, end = TimeLimit(0.05), threading.Event()
    for _ in range(5):
        with pytest.raises(ValueError, match=r"must take at most 0\.05 s"):
            limit.result(lambda: end.wait(60.0))
    end.set()
    patient = TimeLimit(60.0)
    assert patient.result(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        patient.result(lambda: 1 // 0)


def test_a_slow_answer_is_a_sentence_on_the_page(tmp_path):
    explorer = Explorer(settings=SMALL, runs=tmp_path, limit=TimeLimit(1e-6))
    client = explorer_app(explorer).server.test_client()
    for call in callbacks(client):
        status, text = sent(client, call)
        assert status in (200, 204)
        if "planners" in call["output"]:
            assert "an answer must take at most 1e-06 s" in text
