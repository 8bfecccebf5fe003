"""Topology files: both forms say the same."""

import pytest
from written_worlds import JSON, YAML, edited_json, edited_yaml, read

from des import UniformLaw, read_topology
from des.worlds import EAST_CENTRAL_WEST

PER_EPOCH = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)

SMALLEST_YAML = """
topology:
  domains:
    - {name: A, intra_bandwidth: 400Gbps, intra_latency: 500ns}
"""
SMALLEST_JSON = {
    "topology": "hierarchical",
    "num_domains": 1,
    "bandwidth_matrix": [[400]],
    "latency_matrix": [[0.0005]],
}


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_the_shipped_world_is_read_in_si(suffix):
    """By hand: 400 Gbit/s = 50e9 B/s, 5 Gbit/s = 625e6 B/s, 30 ms = 0.03 s, 500 ns = 5e-7 s."""
    topology = read_topology(EAST_CENTRAL_WEST.with_suffix(suffix))

    assert [domain.name for domain in topology.domains] == ["East", "Central", "West"]
    for domain in topology.domains:
        assert domain.num_gpus == 8
        assert domain.gpu_peak_flops_per_s == 120e12
        assert domain.gpu_memory_bytes == 80e9
        assert domain.gpu_memory_bandwidth_bytes_per_s == 1.6e12
        assert domain.attainable_fraction == 0.5
        assert domain.intra_bandwidth_bytes_per_s == 50e9
        assert domain.intra_latency_s == 5e-7
    figures = {
        (link.source, link.target): (link.bandwidth_bytes_per_s, link.latency_s)
        for link in topology.links
    }
    assert figures == {
        ("East", "Central"): (625e6, 0.03),
        ("Central", "East"): (625e6, 0.03),
        ("Central", "West"): (375e6, 0.05),
        ("West", "Central"): (375e6, 0.05),
        ("East", "West"): (250e6, 0.08),
        ("West", "East"): (250e6, 0.08),
    }
    assert topology.dynamics == PER_EPOCH
    assert topology.movement is None


def test_the_shipped_forms_are_equal():
    from_yaml = read_topology(EAST_CENTRAL_WEST)
    from_json = read_topology(str(EAST_CENTRAL_WEST.with_suffix(".json")))

    assert from_yaml == from_json
    assert hash(from_yaml) == hash(from_json)


@pytest.mark.parametrize("suffix", [".yml", ".YAML"])
def test_other_yaml_suffixes_are_known(tmp_path, suffix):
    assert read(tmp_path, YAML, suffix) == read_topology(EAST_CENTRAL_WEST)


def test_a_diagonal_of_half_a_millisecond_is_read_as_written(tmp_path):
    topology = read(tmp_path, edited_json("latency_matrix", 0, 0, value=0.5), ".json")

    assert [domain.intra_latency_s for domain in topology.domains] == [0.0005, 5e-7, 5e-7]


@pytest.mark.parametrize(
    ("content", "suffix", "name"),
    [(SMALLEST_YAML, ".yaml", "A"), (SMALLEST_JSON, ".json", "domain0")],
)
def test_defaults_are_those_of_the_shipped_world(tmp_path, content, suffix, name):
    """A domain needs no GPU keys and a world no dynamics; JSON domains get numbered names."""
    topology = read(tmp_path, content, suffix)

    shipped = read_topology(EAST_CENTRAL_WEST)
    (domain,) = topology.domains
    assert domain.name == name
    for field in ("num_gpus", "gpu_peak_flops_per_s", "gpu_memory_bytes", "attainable_fraction"):
        assert getattr(domain, field) == getattr(shipped.domains[0], field)
    assert domain.gpu_memory_bandwidth_bytes_per_s == 1.6e12
    assert topology.dynamics == PER_EPOCH
    assert topology.links == ()


def test_matrices_may_be_asymmetric_and_have_holes(tmp_path):
    """Row = source, column = target; null in both matrices = no direct link."""
    content = SMALLEST_JSON | {
        "num_domains": 2,
        "bandwidth_matrix": [[100, 8], [None, 200]],
        "latency_matrix": [[0, 25], [None, 1]],
    }

    topology = read(tmp_path, content, ".json")
    (link,) = topology.links
    assert (link.source, link.target) == ("domain0", "domain1")
    assert (link.bandwidth_bytes_per_s, link.latency_s) == (1e9, 0.025)
    assert [d.intra_bandwidth_bytes_per_s for d in topology.domains] == [12.5e9, 25e9]
    assert [d.intra_latency_s for d in topology.domains] == [0.0, 0.001]


def test_gpu_keys_hold_one_value_or_one_a_domain(tmp_path):
    content = JSON | {
        "num_gpus": [8, 16, 4],
        "gpu_peak": ["120TFLOP/s", "312TFLOP/s", "989TFLOP/s"],
        "gpu_memory": "40GB",
        "attainable_fraction": [0.5, 0.4, 1],
    }

    topology = read(tmp_path, content, ".json")
    assert [d.num_gpus for d in topology.domains] == [8, 16, 4]
    assert [d.gpu_peak_flops_per_s for d in topology.domains] == [120e12, 312e12, 989e12]
    assert [d.gpu_memory_bytes for d in topology.domains] == [40e9] * 3
    assert [d.attainable_fraction for d in topology.domains] == [0.5, 0.4, 1.0]


def test_links_may_move_every_so_many_seconds(tmp_path):
    from_yaml = read(tmp_path, edited_yaml("per_epoch", '"500ms"'), ".yaml")
    moving = {"update_interval": "500ms", "bandwidth_fluctuation": 0, "latency_jitter": 0.9}
    from_json = read(tmp_path, JSON | {"dynamics": moving}, ".json")

    assert from_yaml.dynamics.update_interval_s == 0.5
    assert from_json.dynamics == UniformLaw(
        bandwidth_fluctuation=0.0, latency_jitter=0.9, update_interval_s=0.5
    )


def test_prices_are_read_in_both_forms(tmp_path):
    """A YAML link has one price for both directions, a JSON matrix one for each."""
    text = edited_yaml('latency: "30ms"', 'latency: "30ms", price_usd_per_gb: 0.02')
    text = text.replace("num_gpus: 8", "num_gpus: 8\n      gpu_price_usd_per_hour: 2", 1)
    from_yaml = read(tmp_path, text, ".yaml")
    assert [link.price_usd_per_gb for link in from_yaml.links] == [0.02, None, 0.02] + [None] * 3
    assert [domain.gpu_price_usd_per_hour for domain in from_yaml.domains] == [2.0, None, None]

    matrix = [[None, 0.02, None], [0.09, None, 0], [None, None, None]]
    content = JSON | {"price_usd_per_gb_matrix": matrix, "gpu_price_usd_per_hour": [2, None, 1.5]}
    from_json = read(tmp_path, content, ".json")
    assert [link.price_usd_per_gb for link in from_json.links] == [
        0.02,
        None,
        0.09,
        0.0,
        None,
        None,
    ]
    assert [domain.gpu_price_usd_per_hour for domain in from_json.domains] == [2.0, None, 1.5]


def test_equal_prices_make_equal_worlds(tmp_path):
    text = YAML.replace('ms"}', 'ms", price_usd_per_gb: 0.05}')
    text = text.replace("num_gpus: 8", "num_gpus: 8\n      gpu_price_usd_per_hour: 3.5")
    matrix = [[None if row == column else 0.05 for column in range(3)] for row in range(3)]
    content = JSON | {"price_usd_per_gb_matrix": matrix, "gpu_price_usd_per_hour": 3.5}

    assert read(tmp_path, text, ".yaml") == read(tmp_path, content, ".json")


def test_worlds_without_prices_have_none():
    topology = read_topology(EAST_CENTRAL_WEST)

    assert {link.price_usd_per_gb for link in topology.links} == {None}
    assert {domain.gpu_price_usd_per_hour for domain in topology.domains} == {None}


def test_a_link_may_lead_one_way_only(tmp_path):
    """Two entries of one way each make a link that differs on the way back."""
    text = (
        SMALLEST_YAML
        + """\
    - {name: B, intra_bandwidth: 400Gbps, intra_latency: 500ns}
  cross_domain_links:
    - {source: B, dest: A, bandwidth: 1Gbps, latency: 1ms, one_way: true}
"""
    )
    (link,) = read(tmp_path, text, ".yaml").links
    assert (link.source, link.target) == ("B", "A")

    text += "    - {source: A, dest: B, bandwidth: 2Gbps, latency: 3ms, one_way: true}\n"
    there, back = read(tmp_path, text, ".yaml").links
    assert (there.bandwidth_bytes_per_s, there.latency_s) == (250e6, 0.003)
    assert (back.bandwidth_bytes_per_s, back.latency_s) == (125e6, 0.001)
