"""Empty files of every kind that users bring are refused in one line that names the file."""

import pytest
from readers import READERS

from des.serving.trace_files import read_request_trace
from scenarios.job_queue.traces.forms import read_job_trace
from scenarios.simulate import main as simulate

SETTINGS = "settings"
"""Plain YAML, of which nothing is a value as well; the reader of the settings refuses it."""


@pytest.mark.parametrize("content", [b"", b"\n"])
@pytest.mark.parametrize("name", [name for name in READERS if name != SETTINGS])
def test_an_empty_file_is_refused_by_its_name(name, content, tmp_path):
    reader = READERS[name]
    path = tmp_path / f"empty{reader.suffix}"
    path.write_bytes(content)

    with pytest.raises(reader.refuses) as caught:
        reader.read(path)
    message = str(caught.value)
    assert str(tmp_path) in message
    assert "\n" not in message


@pytest.mark.parametrize("name", [n for n, one in READERS.items() if one.suffix == ".json"
                                  and not n.startswith(("ASTRA", "cluster"))])  # fmt: skip
def test_an_empty_json_file_is_said_to_be_empty(name, tmp_path):
    path = tmp_path / "empty.json"
    path.touch()

    with pytest.raises(ValueError, match=r"\.json: not readable as JSON: the file is empty"):
        READERS[name].read(path)


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (read_request_trace, "must be lines of JSON, or a header with the columns .*is empty"),
        (lambda path: read_job_trace(path, "auto"), "must be a trace of one of .*; the file is em"),
    ],
)
def test_an_empty_trace_is_said_to_be_empty(reader, message, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("\n", encoding="utf-8")

    with pytest.raises(ValueError, match=f"trace.csv: {message}"):
        reader(path)


def test_an_empty_plan_is_said_to_be_empty(tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.touch()

    assert simulate(["--plan", str(path), "--json"]) == 2
    assert "plan.json: --num-layers: must be given, got none: the file is empty" in (
        capsys.readouterr().err
    )
