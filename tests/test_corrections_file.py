"""Correction factors on disk: what is written is read, anything else is refused."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration import read_corrections, write_corrections
from des import Corrections

FACTOR = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
CORRECTIONS = st.builds(
    Corrections,
    compute_time_factor=FACTOR,
    wan_bandwidth_factor=FACTOR,
    wan_latency_factor=FACTOR,
    message_overhead_s=st.floats(min_value=0, allow_infinity=False),
)
FACTORS = {
    "compute_time_factor": 1.5,
    "wan_bandwidth_factor": 0.8,
    "wan_latency_factor": 1,
    "message_overhead_s": 0.002,
}
FILE = {"format": "eastwest-corrections", "version": 1, "corrections": FACTORS}


def written(folder, content):
    path = folder / "corrections.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


@given(corrections=CORRECTIONS)
def test_what_is_written_is_read_to_the_last_bit(corrections, tmp_path_factory):
    path = tmp_path_factory.mktemp("corrections") / "corrections.json"

    write_corrections(corrections, path)

    assert read_corrections(path) == corrections
    assert [file.name for file in path.parent.iterdir()] == ["corrections.json"]


def test_a_file_written_by_hand_is_read(tmp_path):
    assert read_corrections(written(tmp_path, FILE)) == Corrections(**FACTORS)


def test_the_file_holds_every_field_of_corrections(tmp_path):
    path = tmp_path / "corrections.json"

    write_corrections(Corrections(), path)

    content = json.loads(path.read_text())
    assert content["format"] == "eastwest-corrections"
    assert content["version"] == 1
    assert list(content["corrections"]) == [f.name for f in dataclasses.fields(Corrections)]


@pytest.mark.parametrize("field", FACTORS)
def test_every_factor_must_be_given(field, tmp_path):
    path = written(tmp_path, FILE | {"corrections": without(FACTORS, field)})

    with pytest.raises(ValueError, match=rf"^{path}: corrections\.{field}: must be given, got"):
        read_corrections(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (without(FILE, "version"), "version: must be given, got nothing"),
        (FILE | {"version": 2}, "version: must be 1, got 2"),
        (FILE | {"version": "1"}, "version: must be 1, got '1'"),
        (FILE | {"format": "other"}, "format: must be 'eastwest-corrections', got 'other'"),
        (FILE | {"date": 3}, "date: must be left out or spelled as documented, got 3"),
        (
            FILE | {"corrections": FACTORS | {"wan_latency": 2}},
            r"corrections\.wan_latency: must be left out or spelled as documented, got 2",
        ),
        (
            FILE | {"corrections": FACTORS | {"wan_latency_factor": "1"}},
            r"corrections\.wan_latency_factor: must be a valid number, got '1'",
        ),
        (
            FILE | {"corrections": FACTORS | {"wan_latency_factor": True}},
            r"corrections\.wan_latency_factor: must be a valid number, got True",
        ),
        (
            FILE | {"corrections": FACTORS | {"wan_latency_factor": 0}},
            "wan_latency_factor must be positive and finite, got 0",
        ),
        (
            FILE | {"corrections": FACTORS | {"message_overhead_s": float("nan")}},
            "message_overhead_s must be finite and not negative, got nan",
        ),
        (
            FILE | {"corrections": FACTORS | {"wan_latency_factor": 10**400}},
            "wan_latency_factor",
        ),
        ([1], "file: must be .*, got .*1"),
        ("null", "file: must be .*, got None"),
        ('{"format": "a", "format": "b"}', "format: must be given once, got it twice"),
        ("{\n", "line 2: must be JSON, got "),
        ("", "line 1: must be JSON, got "),
        ("[" * 100_000, "must be JSON, got lists too deep"),
        ("1" * 10_000, "integer string conversion"),
    ],
)
def test_anything_else_is_refused_in_one_line_that_names_the_file(content, message, tmp_path):
    path = written(tmp_path, content)

    with pytest.raises(ValueError, match=f"^{path}: .*{message}") as refusal:
        read_corrections(path)

    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < len(str(path)) + 250


def test_files_that_cannot_be_read_are_named(tmp_path):
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe{}")

    with pytest.raises(ValueError, match=r"binary\.json: .*utf-8"):
        read_corrections(binary)
    with pytest.raises(ValueError, match=r"missing\.json: corrections file cannot be read: No"):
        read_corrections(tmp_path / "missing.json")


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    (tmp_path / "corrections.json").mkdir()

    with pytest.raises(OSError, match=r"corrections\.json"):
        write_corrections(Corrections(), tmp_path / "corrections.json")

    assert [path.name for path in tmp_path.iterdir()] == ["corrections.json"]
