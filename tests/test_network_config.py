"""ASTRA-sim's network file and the message times of its congestion-unaware network."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_sim import Dimension, NetworkConfig, read_network_config, unaware_message_ns
from des import read_topology

GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden" / "astra"
RING4 = {
    "topology": ["Ring"],
    "npus_count": [4],
    "bandwidth": [50.0],
    "latency": [500.0],
}


def dimension(topology="Ring", num_npus=4, bandwidth_gb_per_s=50.0, latency_ns=500.0) -> Dimension:
    return Dimension(
        topology=topology,
        num_npus=num_npus,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        latency_ns=latency_ns,
    )


def written(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "network.yml"
    path.write_text(json.dumps(RING4 | changes))  # JSON is YAML
    return path


@pytest.mark.parametrize(
    ("topology", "target", "hops"),
    [("Ring", 1, 1), ("Ring", 4, 2), ("Ring", 3, 3), ("FullyConnected", 4, 1), ("Switch", 4, 2)],
)
def test_hops_are_those_of_the_pattern(topology, target, hops):
    """On a ring of 6 the way from 0 to 4 is 2 backwards; a switch is one up and one down."""
    assert dimension(topology, num_npus=6).num_hops(0, target) == hops


def test_a_message_pays_its_hops_and_one_serialisation_rounded_down():
    """1 MiB at 50 * 2**30 / 1e9 bytes/ns is 19531.25 ns; two hops of 500 ns come on top."""
    network = NetworkConfig(dimensions=(dimension(),))

    assert unaware_message_ns(network, 0, 2, 2**20) == 20531
    assert unaware_message_ns(network, 0, 3, 2**20) == 20031


def test_only_the_first_dimension_that_differs_is_charged():
    """NPU 5 of [4, 2] is at (1, 1): a message from 0 pays the inner dimension alone."""
    outer = dimension("FullyConnected", 2, bandwidth_gb_per_s=1.0, latency_ns=1e6)
    network = NetworkConfig(dimensions=(dimension(), outer))

    assert network.address(5) == (1, 1)
    assert unaware_message_ns(network, 0, 5, 2**20) == unaware_message_ns(network, 0, 1, 2**20)
    assert unaware_message_ns(network, 0, 4, 2**20) == 1_976_562  # 1 ms + 976562.5 ns


@given(counts=st.lists(st.integers(2, 5), min_size=1, max_size=3))
def test_addresses_are_a_bijection(counts):
    network = NetworkConfig(dimensions=tuple(dimension(num_npus=count) for count in counts))

    addresses = [network.address(npu) for npu in range(network.num_npus)]

    assert len(set(addresses)) == network.num_npus
    assert addresses[1] == (1, *[0] * (len(counts) - 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": ["ring"]}, "topology: must be one of Ring, .*; got 'ring'"),
        ({"topology": "Ring"}, "topology: must be a list, got 'Ring'"),
        ({"npus_count": [1]}, "npus_count: must be at least 2, got 1"),
        ({"npus_count": [4.0]}, r"npus_count: must be a whole number, got 4\.0"),
        ({"npus_count": [4, 2]}, "must be lists of one equal length, got 1, 2, 1 and 1"),
        ({"bandwidth": [0]}, r"bandwidth: must be positive and finite, got 0\.0"),
        ({"bandwidth": ["fast"]}, "bandwidth: must be a number, got 'fast'"),
        ({"latency": [-1]}, r"latency: must be finite and not negative, got -1\.0"),
    ],
)
def test_a_wrong_file_is_refused_by_name_field_and_value(tmp_path, changes, message):
    with pytest.raises(ValueError, match=rf"network\.yml: .*{message}"):
        read_network_config(written(tmp_path, **changes))


def test_a_quoted_count_and_other_keys_are_fine(tmp_path):
    path = written(tmp_path, npus_count=["4"], comment="ignored")

    assert read_network_config(path) == NetworkConfig(dimensions=(dimension(),))


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"absent\.yml: network file cannot be read"):
        read_network_config(tmp_path / "absent.yml")


def test_the_shipped_configuration_is_the_shipped_world():
    """Inside as in the topology; between, the harmonic mean bandwidth and the mean latency."""
    path = Path(str(files("astra_sim") / "configs" / "east_central_west.yml"))
    inside, between = read_network_config(path).dimensions
    world = read_topology("east_central_west")
    bandwidths = [link.bandwidth_bytes_per_s for link in world.links]
    latencies_s = [link.latency_s for link in world.links]

    assert (inside.num_npus, between.num_npus) == (8, 3)
    assert inside.bytes_per_ns * 1e9 == pytest.approx(50e9)
    assert inside.latency_ns == pytest.approx(500.0)
    assert between.bytes_per_ns * 1e9 == pytest.approx(6 / sum(1 / b for b in bandwidths))
    assert between.latency_ns * 1e-9 == pytest.approx(sum(latencies_s) / 6)


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the golden cases of ASTRA-sim are not here")
def test_every_golden_network_is_read_and_has_an_npu_for_every_trace():
    """Cases that the real programs run; those that they refuse are left to the error cases."""
    num_read = 0
    for case in sorted(GOLDEN.glob("*/expected.json")):
        if json.loads(case.read_text())["outcome"] == "error":
            continue
        network = read_network_config(case.parent / "network.yml")
        assert len(list(case.parent.glob("trace.*.et"))) <= network.num_npus
        num_read += 1

    assert num_read > 50


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the golden cases of ASTRA-sim are not here")
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("err-topology-name", "topology: must be one of Ring"),
        ("err-npus-one", "npus_count: must be at least 2, got 1"),
    ],
)
def test_networks_that_the_real_programs_refuse_are_refused(case, message):
    with pytest.raises(ValueError, match=message):
        read_network_config(GOLDEN / case / "network.yml")
