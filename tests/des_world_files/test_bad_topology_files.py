"""Topology files that are refused, with a message that helps."""

import json
import re
from pathlib import Path

import pytest
from written_worlds import JSON, YAML, edited_json, edited_yaml, read

from des import read_topology


def assert_refused(folder: Path, content: object, suffix: str, message: str) -> None:
    """The error names the file and starts with the message, taken literally."""
    expected = f"world{suffix}: {message}"
    with pytest.raises(ValueError, match=re.escape(expected)):
        read(folder, content, suffix)


LINK = "topology.cross_domain_links[0]"
DUPLICATE = "link East->Central: must be given once, got a duplicate"
AGAIN = "    - {source: East, dest: Central, bandwidth: 1Gbps, latency: 1ms}"
PRICES = "price_usd_per_gb_matrix"
BAD_YAML = {
    "unknown unit": ("5Gbps", "5Gbs", f"{LINK}.bandwidth: unknown unit 'Gbs', must be a bandwidth"),
    "no unit": ('"5Gbps"', "5", f"{LINK}.bandwidth: must be a bandwidth such as"),
    "unit of time": ("30ms", "30mbps", f"{LINK}.latency: unknown unit 'mbps', must be a time"),
    "unit of size": ("80GB", "80GW", "topology.domains[0].gpu_memory: unknown unit 'GW'"),
    "negative bandwidth": ("5Gbps", "-5Gbps", f"{LINK}.bandwidth: must be positive; got '-5Gbps'"),
    "zero bandwidth": ("5Gbps", "0Gbps", f"{LINK}.bandwidth: must be positive; got '0Gbps'"),
    "NaN bandwidth": ("5Gbps", "nanGbps", f"{LINK}.bandwidth: must be a bandwidth"),
    "infinite bandwidth": ("5Gbps", "1e400Gbps", f"{LINK}.bandwidth: Input should be a finite"),
    "negative latency": ("30ms", "-30ms", f"{LINK}.latency: must be at least 0; got '-30ms'"),
    "intra bandwidth": ("400Gbps", "0Gbps", "topology.domains[0].intra_bandwidth: must be pos"),
    "peak": ("120TFLOP/s", "0TFLOP/s", "topology.domains[0].gpu_peak: must be positive"),
    "no domain": ("dest: Central", "dest: Mars", "link East->Mars: domain must be one of East, "),
    "to itself": ("dest: Central", "dest: East", "link East->East: source and target must differ"),
    "same link": ("Central, dest: West", "East, dest: Central", DUPLICATE),
    "reverse link": ("Central, dest: West", "Central, dest: East", DUPLICATE),
    "no target": (", dest: Central", "", f"{LINK}.dest: must be given"),
    "same name": ("name: West", "name: East", "topology: domain names must be unique, got 'East'"),
    "no text": ("name: East", "name: 5", "topology.domains[0].name: Input should be a valid str"),
    "GPUs": ("num_gpus: 8", "num_gpus: 0", "domain East: num_gpus must be a whole number from"),
    "GPUs as text": ("num_gpus: 8", "num_gpus: '8'", "topology.domains[0].num_gpus: Input should"),
    "GPUs as float": ("num_gpus: 8", "num_gpus: 8.0", "topology.domains[0].num_gpus: Input should"),
    "fraction": ("fraction: 0.5", "fraction: 1.5", "domain East: attainable_fraction must be abo"),
    "NaN": ("fraction: 0.5", "fraction: .nan", "topology.domains[0].attainable_fraction: Input "),
    "unknown key": (
        "num_gpus",
        "num_gpu",
        "topology.domains[0].num_gpu: unknown key; did you mean 'num_gpus'?",
    ),
    "unknown dashed key": (
        "num_gpus",
        "num-gpus",
        "topology.domains[0].num-gpus: unknown key; did you mean 'num_gpus'?",
    ),
    "misspelt key that must be given": (
        "Central, bandwidth:",
        "Central, bandwith:",
        f"{LINK}.bandwith: unknown key; did you mean 'bandwidth'?",
    ),
    "key like none": (
        "dest: Central",
        "to: Central",
        f"{LINK}.to: unknown key; allowed are source, dest, bandwidth, latency, price_usd_per_gb, "
        "one_way",
    ),
    "misspelt section": ("dynamics:", "dinamics:", "dinamics: unknown key; did you mean 'dyn"),
    "key named as a type": ("dynamics:", "int:", "int: unknown key; allowed are topology, "),
    "key twice": ("gpu_peak:", "num_gpus:", "not readable as YAML in line 9: key 'num_gpus' must"),
    "unreadable": ("domains:", "domains: [", "not readable as YAML in line 7: "),
    "list as a key": ("dynamics:", "? [a, b]\n: c\ndynamics:", "not readable as YAML in line "),
    "number as a key": ("dynamics:", "1: c\ndynamics:", "[1]: Keys should be strings, got 1"),
    "link price": (
        '"30ms"',
        "30ms, price_usd_per_gb: -1",
        f"{LINK}.price_usd_per_gb: Input should",
    ),
    "price as text": ('"30ms"', "30ms, price_usd_per_gb: 1USD", f"{LINK}.price_usd_per_gb: Input "),
    "price NaN": (
        '"30ms"',
        "30ms, price_usd_per_gb: .nan",
        f"{LINK}.price_usd_per_gb: Input should",
    ),
    "GPU price": (
        "num_gpus: 8",
        "gpu_price_usd_per_hour: -2",
        "topology.domains[0].gpu_price_usd_per_hour: Input should be greater than or equal to 0",
    ),
    "one way": ('"30ms"', "30ms, one_way: maybe", f"{LINK}.one_way: Input should be a valid bool"),
    "one way twice": ('"30ms"}', f"30ms, one_way: true}}\n{AGAIN}", DUPLICATE),
    "swing": ("fluctuation: 0.3", "fluctuation: 1.0", "dynamics: bandwidth_fluctuation must be at"),
    "interval": ("per_epoch", "weekly", "dynamics.update_interval: must be per_epoch or a time"),
    "interval 0": ("per_epoch", "0s", "dynamics: update_interval_s must be at least 0.001"),
    "negative interval": ("per_epoch", "-5s", "dynamics: update_interval_s must be at least 0.00"),
}


@pytest.mark.parametrize(("old", "new", "message"), BAD_YAML.values(), ids=BAD_YAML)
def test_bad_yaml_is_refused_with_file_field_and_value(tmp_path, old, new, message):
    assert_refused(tmp_path, edited_yaml(old, new), ".yaml", message)


ENTRY = "bandwidth_matrix[0][1]"
BAD_JSON = {
    "zero bandwidth": (("bandwidth_matrix", 0, 1), 0, f"{ENTRY}: Input should be greater than 0"),
    "negative bandwidth": (("bandwidth_matrix", 0, 1), -5, f"{ENTRY}: Input should be greater "),
    "NaN bandwidth": (("bandwidth_matrix", 0, 1), float("nan"), f"{ENTRY}: Input should be a fin"),
    "infinite": (("bandwidth_matrix", 0, 1), float("inf"), f"{ENTRY}: Input should be a finite"),
    "text": (("bandwidth_matrix", 0, 1), "5Gbps", f"{ENTRY}: Input should be a valid number, got"),
    "negative latency": (("latency_matrix", 2, 1), -1, "latency_matrix[2][1]: Input should be gr"),
    "NaN latency": (("latency_matrix", 0, 0), float("nan"), "latency_matrix[0][0]: Input should "),
    "half a hole": (("latency_matrix", 0, 1), None, "[0][1]: bandwidth_matrix and latency_matrix"),
    "not square": (
        ("bandwidth_matrix", 1),
        [5, 400],
        "bandwidth_matrix: must be square, 3 x 3 as num_domains says; got 3 rows of length 2, 3",
    ),
    "too few rows": (
        ("latency_matrix",),
        [[1, 2, 3]],
        "latency_matrix: must be square, 3 x 3 as num_domains says; got 1 rows of length 3",
    ),
    "no rows": (("latency_matrix",), [], "latency_matrix: must be square, 3 x 3"),
    "num_domains": (("num_domains",), 4, "bandwidth_matrix: must be square, 4 x 4"),
    "no domains": (("num_domains",), 0, "num_domains: Input should be greater than or equal to 1"),
    "two names": (("names",), ["East", "West"], "names: must hold 3 entries, got 2"),
    "no names": (("names",), [], "names: must hold 3 entries, got 0"),
    "same names": (("names",), ["A", "B", "A"], "names: must be unique, got A, B, A"),
    "empty name": (("names", 1), "", "domain: name must be a non-empty text, got ''"),
    "two counts": (("num_gpus",), [8, 8], "num_gpus: must hold 3 entries, got 2"),
    "zero GPUs": (("num_gpus",), [8, 0, 8], "domain Central: num_gpus must be a whole number"),
    "GPUs as text": (("num_gpus",), "8", "num_gpus: Input should be a valid integer, got '8'"),
    "peak": (
        ("gpu_peak",),
        "120GW",
        "domain East: gpu_peak: unknown unit 'GW', must be a compute speed",
    ),
    "price": (
        (PRICES,),
        [[None, -1, 0], [0, None, 0], [0, 0, None]],
        f"{PRICES}[0][1]: Input should be greater than or equal to 0, got -1",
    ),
    "price inside": (
        (PRICES,),
        [[None, 0, 0], [0, 0.5, 0], [0, 0, None]],
        f"{PRICES}[1][1]: must be null, as there is no link to price; got 0.5",
    ),
    "prices not square": (
        (PRICES,),
        [[None, 0, 0], [0, None, 0]],
        f"{PRICES}: must be square, 3 x 3 as num_domains says; got 2 rows of length 3",
    ),
    "two GPU prices": (
        ("gpu_price_usd_per_hour",),
        [1, 2],
        "gpu_price_usd_per_hour: must hold 3 en",
    ),
    "GPU price": (
        ("gpu_price_usd_per_hour",),
        -1,
        "gpu_price_usd_per_hour: Input should be greater",
    ),
    "GPU price as text": (
        ("gpu_price_usd_per_hour",),
        [1, "2", None],
        "gpu_price_usd_per_hour[1]: Input should be a valid number, got '2'",
    ),
    "unknown key": (
        ("bandwith_matrix",),
        [],
        "bandwith_matrix: unknown key; did you mean 'bandwidth_matrix'?",
    ),
    "dashed key": (("num-gpus",), 8, "num-gpus: unknown key; did you mean 'num_gpus'?"),
    "another kind": (("topology",), "flat", "topology: Input should be 'hierarchical', got 'flat'"),
    "dynamics": (("dynamics",), {"jitter": 0.1}, "dynamics.jitter: unknown key; did you m"),
}


@pytest.mark.parametrize(("keys", "value", "message"), BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_is_refused_with_file_field_and_value(tmp_path, keys, value, message):
    assert_refused(tmp_path, edited_json(*keys, value=value), ".json", message)


def test_a_price_needs_a_link(tmp_path):
    content = edited_json("bandwidth_matrix", 0, 2, value=None)
    content["latency_matrix"][0][2] = None
    content[PRICES] = [[None, 0, 0.01], [0, None, 0], [0, 0, None]]

    message = f"{PRICES}[0][2]: must be null, as there is no link to price; got 0.01"
    assert_refused(tmp_path, content, ".json", message)


def test_a_domain_needs_figures_on_the_diagonal(tmp_path):
    content = edited_json("bandwidth_matrix", 1, 1, value=None)
    content["latency_matrix"][1][1] = None

    message = "bandwidth_matrix[1][1]: must be the bandwidth inside Central, got null"
    assert_refused(tmp_path, content, ".json", message)


def test_a_json_key_given_twice_is_refused_as_in_yaml(tmp_path):
    text = json.dumps(JSON).replace("{", '{"num_gpus": 4, ', 1)

    with pytest.raises(ValueError, match=r"world.json: .*num_gpus"):
        read(tmp_path, text, ".json")


@pytest.mark.parametrize(
    ("content", "suffix", "message"),
    [
        ("- a\n- b\n", ".yaml", "file: must be a mapping"),
        ("", ".yaml", "file: must be a mapping"),
        ("- a", ".yml", "file: must be a mapping"),
        ([1, 2], ".json", "file: must be a mapping"),
        ("{\n  'a': 1}", ".json", "not readable as JSON in line 2: "),
        ("", ".json", "not readable as JSON: the file is empty"),
        ("{}", ".json", "topology: must be given"),
        ("a: 1\n---\nb: 2\n", ".yaml", "not readable as YAML in line 2: "),
        ("!!python/object:os.system x", ".yaml", "not readable as YAML in line 1: "),
        (b"\xff\xfe", ".yaml", "topology file cannot be read: not UTF-8 text"),
        (b"\xff\xfe", ".json", "topology file cannot be read: not UTF-8 text"),
        (YAML, ".txt", "a topology must be a file that ends in .yaml, .yml, .json"),
        (YAML, "", "a topology must be a file that ends in .yaml, .yml, .json"),
    ],
)
def test_a_file_that_is_no_world_is_refused(tmp_path, content, suffix, message):
    assert_refused(tmp_path, content, suffix, message)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_a_missing_file_and_a_folder_are_refused(tmp_path, suffix):
    missing = tmp_path / f"missing{suffix}"
    with pytest.raises(ValueError, match=rf"missing{suffix}: .* cannot be read: No such file"):
        read_topology(missing)
    missing.mkdir()
    with pytest.raises(ValueError, match=rf"missing{suffix}: .* cannot be read: Is a directory"):
        read_topology(missing)
