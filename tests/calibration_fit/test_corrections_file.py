"""Correction factors on disk: what is written is read, anything else is refused."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import unit_workload, world

from calibration import read_corrections, write_corrections
from calibration.fit.fitted_for import FittedFor
from des import Corrections, Transport, UniformLaw, build_workload, read_topology

FACTOR = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
CORRECTIONS = st.builds(
    Corrections,
    compute_time_factor=FACTOR,
    intra_bandwidth_factor=FACTOR,
    intra_latency_factor=FACTOR,
    wan_bandwidth_factor=FACTOR,
    wan_latency_factor=FACTOR,
    message_overhead_s=st.floats(min_value=0, allow_infinity=False),
)
FIRST_FACTORS = {
    "compute_time_factor": 1.5,
    "wan_bandwidth_factor": 0.8,
    "wan_latency_factor": 1,
    "message_overhead_s": 0.002,
}
FIRST_FILE = {"format": "eastwest-corrections", "version": 1, "corrections": FIRST_FACTORS}
FACTORS = FIRST_FACTORS | {"intra_bandwidth_factor": 0.5, "intra_latency_factor": 2.0}
MARK = {"model": "m", "model_digest": "0" * 64, "network": "n", "network_digest": "f" * 64}
FILE = {
    "format": "eastwest-corrections",
    "version": 2,
    "corrections": FACTORS,
    "fitted_for": None,
}


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


@pytest.mark.parametrize("mark", [None, MARK])
def test_a_file_written_by_hand_is_read(mark, tmp_path):
    path = written(tmp_path, FILE | {"fitted_for": mark})

    assert read_corrections(path) == Corrections(**FACTORS)


def test_a_file_of_version_1_leaves_links_inside_domains_as_they_are(tmp_path):
    found = read_corrections(written(tmp_path, FIRST_FILE))

    assert found == Corrections(
        **FIRST_FACTORS, intra_bandwidth_factor=1.0, intra_latency_factor=1.0
    )


def test_the_file_holds_every_field_of_corrections(tmp_path):
    path = tmp_path / "corrections.json"

    write_corrections(Corrections(), path)

    content = json.loads(path.read_text())
    assert content["format"] == "eastwest-corrections"
    assert content["version"] == 2
    assert list(content["corrections"]) == list(Corrections().plain())
    assert content["fitted_for"] is None


@pytest.mark.parametrize(
    ("file", "field"),
    [(FILE, field) for field in FACTORS] + [(FIRST_FILE, field) for field in FIRST_FACTORS],
)
def test_every_factor_must_be_given(file, field, tmp_path):
    path = written(tmp_path, file | {"corrections": without(file["corrections"], field)})

    with pytest.raises(ValueError, match=rf"^{path}: corrections\.{field}: must be given, got"):
        read_corrections(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (without(FILE, "version"), "version: must be given, got nothing"),
        (FILE | {"version": 3}, "version: must be 1 or 2, got 3"),
        (FILE | {"version": "1"}, "version: must be 1 or 2, got '1'"),
        (FILE | {"version": True}, "version: must be a valid integer, got True"),
        (without(FILE, "fitted_for"), "fitted_for: must be given, got nothing"),
        (
            FILE | {"fitted_for": without(MARK, "network")},
            r"fitted_for\.network: must be given, got nothing",
        ),
        (
            FILE | {"fitted_for": MARK | {"model_digest": "0"}},
            "fitted_for: model_digest must be 64 hexadecimal digits, got '0'",
        ),
        (
            FIRST_FILE | {"corrections": FACTORS},
            r"corrections\.intra_bandwidth_factor: must be left out or spelled as documented",
        ),
        (
            FIRST_FILE | {"fitted_for": MARK},
            "fitted_for: must be left out or spelled as documented, got {",
        ),
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
            FILE | {"corrections": FACTORS | {"wan_latency_factor": 10**308 * 9}},
            "a whole number must have at most 308 digits, got 9000000000... with 309",
        ),
        ([1], "file: must be .*, got .*1"),
        ("null", "file: must be .*, got None"),
        ('{"format": "a", "format": "b"}', "key 'format' must be given once"),
        ("{\n", "not readable as JSON in line 2: "),
        ("", "not readable as JSON: the file is empty"),
        ("[" * 100_000, "not readable as JSON: nested too deeply"),
        ("1" * 10_000, "a whole number must have at most 308 digits, got 1111111111... with 10000"),
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

    with pytest.raises(
        ValueError, match=r"binary\.json: corrections file cannot be read: not UTF-8 text"
    ):
        read_corrections(binary)
    with pytest.raises(ValueError, match=r"missing\.json: corrections file cannot be read: No"):
        read_corrections(tmp_path / "missing.json")


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    (tmp_path / "corrections.json").mkdir()

    with pytest.raises(OSError, match=r"corrections\.json"):
        write_corrections(Corrections(), tmp_path / "corrections.json")

    assert [path.name for path in tmp_path.iterdir()] == ["corrections.json"]


WORLD = world("AB", {"AB": (1.0, 1.0), "BA": (2.0, 1.0)})
WORKLOAD = unit_workload([(1.0, 2.0)], num_microbatches=4, message_bytes=8.0)
FITTED_FOR = FittedFor.of(WORKLOAD, WORLD, network="pair")


def test_factors_that_were_fitted_before_fields_were_added_can_be_used_on():
    """Digests of a revision before domains had nodes or layer times from shapes."""
    assert FITTED_FOR.model_digest.startswith("56fa8c62f7c8722b")
    assert FITTED_FOR.network_digest.startswith("d6803c2badb9fd41")


def test_factors_may_be_used_for_what_they_were_fitted_for(tmp_path):
    """Names, prices, the number of microbatches and how links move may be others."""
    path = tmp_path / "corrections.json"
    write_corrections(Corrections(**FACTORS), path, fitted_for=FITTED_FOR)
    workload = dataclasses.replace(WORKLOAD, name="other", num_microbatches=64)
    links = tuple(dataclasses.replace(link, price_usd_per_gb=0.1) for link in WORLD.links)
    topology = dataclasses.replace(
        WORLD, links=links, dynamics=UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.1)
    )

    for used_for in (None, FITTED_FOR, FittedFor.of(workload, topology, network="other")):
        assert read_corrections(path, used_for=used_for) == Corrections(**FACTORS)


@pytest.mark.parametrize(
    ("workload", "topology", "field"),
    [
        (dataclasses.replace(WORKLOAD, message_bytes=9.0), WORLD, "model"),
        (dataclasses.replace(WORKLOAD, layers=WORKLOAD.layers * 2), WORLD, "model"),
        (WORKLOAD, world("AB", {"AB": (1.0, 1.0), "BA": (1.0, 1.0)}), "network"),
        (
            WORKLOAD,
            dataclasses.replace(WORLD, transport=Transport(endpoints="one_in_flight")),
            "network",
        ),
    ],
)
def test_factors_for_another_model_or_network_are_refused(workload, topology, field, tmp_path):
    path = tmp_path / "corrections.json"
    write_corrections(Corrections(**FACTORS), path, fitted_for=FITTED_FOR)
    used_for = FittedFor.of(workload, topology, network="here")

    message = (
        rf"^{path}: fitted_for\.{field}: factors must be used for the {field} that they were "
        rf"fitted for, (unit|pair) \(digest [0-9a-f]{{12}}\), got (unit|here) \(digest"
    )
    with pytest.raises(ValueError, match=message):
        read_corrections(path, used_for=used_for)


def test_the_kind_of_gpu_counts_where_passes_are_below_16_bits():
    """In BF16 all is in the figures of the GPUs, and marks are as before kinds were kept."""
    topology, job = read_topology("east_central_west"), build_workload("llama2_7b")
    kinds = tuple(dataclasses.replace(one, gpu_kind="h100") for one in topology.domains)
    named = dataclasses.replace(topology, domains=kinds)
    low = dataclasses.replace(job, precision="fp8")
    marks = {
        (name, each.precision): FittedFor.of(each, world, network="n")
        for name, world in (("plain", topology), ("named", named))
        for each in (job, low)
    }

    assert marks["plain", "bf16"] == marks["named", "bf16"]
    assert marks["plain", "fp8"].network_digest != marks["named", "fp8"].network_digest
    assert marks["named", "fp8"].model_digest != marks["named", "bf16"].model_digest
