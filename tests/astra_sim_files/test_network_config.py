"""Network files of ASTRA-sim: patterns of dimensions, and what is refused."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_files import assert_ends
from written_networks import RING4, dimension, written, written_as

from astra_sim.files.errors import AbortError, AstraSimError, AstraSimUsageError
from astra_sim.files.network_config import NetworkConfig, read_network_config
from des import read_topology


@pytest.mark.parametrize(
    ("topology", "target", "hops"),
    [("Ring", 1, 1), ("Ring", 4, 2), ("Ring", 3, 3), ("FullyConnected", 4, 1), ("Switch", 4, 2)],
)
def test_hops_are_those_of_the_pattern(topology, target, hops):
    """On a ring of 6 the way from 0 to 4 is 2 backwards; a switch is one up and one down."""
    assert dimension(topology, num_npus=6).num_hops(0, target) == hops


@given(counts=st.lists(st.integers(2, 5), min_size=1, max_size=3))
def test_addresses_are_a_bijection(counts):
    network = NetworkConfig(dimensions=tuple(dimension(num_npus=count) for count in counts))

    addresses = [network.address(npu) for npu in range(network.num_npus)]

    assert len(set(addresses)) == network.num_npus
    assert addresses[1] == (1, *[0] * (len(counts) - 1))


@given(
    counts=st.lists(st.integers(2, 5), min_size=1, max_size=3),
    chosen=st.data(),
)
def test_neighbours_differ_in_one_coordinate_alone(counts, chosen):
    network = NetworkConfig(dimensions=tuple(dimension(num_npus=count) for count in counts))
    npu = chosen.draw(st.integers(0, network.num_npus - 1))
    number = chosen.draw(st.integers(0, len(counts) - 1))

    neighbours = network.neighbours(npu, number)

    own = network.address(npu)
    assert [network.address(each) for each in neighbours] == [
        (*own[:number], place, *own[number + 1 :]) for place in range(counts[number])
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topology": ["ring"]}, "topology: must be one of Ring, .*, Pairwise; got 'ring'"),
        ({"topology": [["Ring"]]}, r"topology: must be one of Ring, .*; got \['Ring'\]"),
        ({"topology": None}, "topology: must be a list, got None"),
        ({"topology": {"a": 1}}, "topology: must be a list, got {'a': '1'}"),
        ({"topology": []}, "must be lists of one equal length, got 0, 1, 1 and 1"),
        ({"npus_count": 4}, "npus_count: must be a list, got '4'"),
        ({"bandwidth": "fast"}, "bandwidth: must be a list, got 'fast'"),
        ({"latency": None}, "latency: must be a list, got None"),
        ({"npus_count": [1]}, "npus_count: must be at least 2, got 1"),
        ({"npus_count": [-4]}, "npus_count: must be a whole number, got '-4'"),
        ({"npus_count": [4.0]}, r"npus_count: must be a whole number, got '4\.0'"),
        ({"npus_count": ["4.0"]}, r"npus_count: must be a whole number, got '4\.0'"),
        ({"npus_count": ["010"]}, "npus_count: must be a whole number, got '010'"),
        ({"npus_count": [True]}, "npus_count: must be a whole number, got 'true'"),
        ({"npus_count": [[4]]}, r"npus_count: must be a whole number, got \['4'\]"),
        ({"npus_count": [4, 2]}, "must be lists of one equal length, got 1, 2, 1 and 1"),
        ({"bandwidth": [0]}, r"bandwidth: must be positive and finite, got 0\.0"),
        ({"bandwidth": [1e999]}, "bandwidth: must be a number, got 'Infinity'"),
        ({"bandwidth": ["1e999"]}, "bandwidth: must be positive and finite, got inf"),
        ({"bandwidth": ["nan"]}, "bandwidth: must be a number, got 'nan'"),
        ({"bandwidth": ["1_0"]}, "bandwidth: must be a number, got '1_0'"),
        ({"bandwidth": ["fast"]}, "bandwidth: must be a number, got 'fast'"),
        ({"bandwidth": [None]}, "bandwidth: must be a number, got 'null'"),
        ({"latency": [-1]}, r"latency: must be finite and not negative, got -1\.0"),
    ],
)
def test_a_wrong_file_is_refused_by_name_field_and_value(tmp_path, changes, message):
    path, message = written(tmp_path, **changes), f".*{message}"
    assert_ends(read_network_config, path, message, error=AstraSimUsageError, exit_code=255)


@pytest.mark.parametrize("missing", ["topology", "npus_count", "bandwidth", "latency"])
def test_a_missing_list_is_refused(tmp_path, missing):
    content = {key: value for key, value in RING4.items() if key != missing}

    with pytest.raises(
        AstraSimUsageError, match=rf"network\.yml: {missing}: must be a list, got None"
    ):
        read_network_config(written_as(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(RING4 | {"topology": "Ring"}), "topology: must be a list, got 'Ring'"),
        ("topology: [ Ring", "network file is not YAML: while parsing a flow sequence"),
        ("topology: [ Ring ]\n\tnpus_count: [ 4 ]", "network file is not YAML: "),
        ("", "network file must hold a mapping, got None"),
        ("- Ring", r"network file must hold a mapping, got \['Ring'\]"),
    ],
)
def test_what_is_no_network_at_all_aborts(tmp_path, content, message):
    path = written_as(tmp_path, content)
    assert_ends(read_network_config, path, message, error=AbortError, exit_code=134)


def test_bytes_that_are_no_text_abort(tmp_path):
    path = tmp_path / "network.yml"
    path.write_bytes(b"topology: [ \xff\xfe\xfa ]")

    with pytest.raises(AbortError, match=r"network\.yml: network file is not YAML: "):
        read_network_config(path)


def test_block_lists_quotes_and_comments_are_fine(tmp_path):
    text = """
        # a ring
        topology:
          - Ring
        npus_count: [ '4' ]
        bandwidth: [ "5e+1" ]  # GB/s
        latency:
          - 500
        """

    assert read_network_config(written_as(tmp_path, text)) == NetworkConfig(
        dimensions=(dimension(),)
    )


def test_other_keys_are_told_and_ignored(tmp_path):
    told: list[str] = []
    path = written(tmp_path, dimensions_count=1, latency_matrix=[[0]])

    assert read_network_config(path, told.append) == NetworkConfig(dimensions=(dimension(),))
    assert told == [
        f"{path}: dimensions_count: unknown key, ignored",
        f"{path}: latency_matrix: ignored, as no dimension is Pairwise",
    ]
    with pytest.warns(UserWarning, match="dimensions_count: unknown key, ignored"):
        read_network_config(written(tmp_path, dimensions_count=1))


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(
        AstraSimError, match=r"absent\.yml: network file cannot be read: No such file"
    ) as caught:
        read_network_config(tmp_path / "absent.yml")
    assert caught.value.exit_code == 1


def test_a_network_needs_a_dimension():
    with pytest.raises(
        AstraSimUsageError, match="network: must have at least one dimension, got none"
    ):
        NetworkConfig(dimensions=())


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


def test_every_golden_network_is_read_and_has_an_npu_for_every_trace(golden_astra):
    """Cases that the real programs run; those that they refuse are left to the error cases."""
    num_read = 0
    for case in sorted(golden_astra.glob("astra/*/expected.json")):
        if json.loads(case.read_text())["outcome"] == "error":
            continue
        network = read_network_config(case.parent / "network.yml")
        assert len(list(case.parent.glob("trace.*.et"))) <= network.num_npus
        num_read += 1

    assert num_read > 50


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("err-topology-name", "topology: must be one of Ring"),
        ("err-npus-one", "npus_count: must be at least 2, got 1"),
        ("err-zero-bandwidth", "bandwidth: must be positive and finite, got 0"),
    ],
)
def test_networks_that_the_real_programs_refuse_are_refused(golden_astra, case, message):
    with pytest.raises(AstraSimUsageError, match=message):
        read_network_config(golden_astra / "astra" / case / "network.yml")
