"""ASTRA-sim's network file and its extensions."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.files.errors import AbortError, AstraSimError, AstraSimUsageError
from astra_sim.files.network_config import (
    BandwidthChange,
    Dimension,
    NetworkConfig,
    PairwiseDimension,
    read_network_config,
)
from des import read_topology

RING4 = {
    "topology": ["Ring"],
    "npus_count": [4],
    "bandwidth": [50.0],
    "latency": [500.0],
}


PAIRWISE3 = {
    "topology": ["Pairwise"],
    "npus_count": [3],
    "bandwidth_matrix": [[None, 1.0, 2.0], [3.0, 0, 4.0], [5.0, 6.0, "none"]],
    "latency_matrix": [[0, 10, 20], [30, 0, 40], [50, 0.5, 0]],
}
PAIRS = PairwiseDimension(
    bandwidth_matrix_gb_per_s=((0.0, 1.0, 2.0), (3.0, 0.0, 4.0), (5.0, 6.0, 0.0)),
    latency_matrix_ns=((0.0, 10.0, 20.0), (30.0, 0.0, 40.0), (50.0, 0.5, 0.0)),
)


def dimension(topology="Ring", num_npus=4, bandwidth_gb_per_s=50.0, latency_ns=500.0) -> Dimension:
    return Dimension(
        topology=topology,
        num_npus=num_npus,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        latency_ns=latency_ns,
    )


def written(tmp_path: Path, **changes: object) -> Path:
    return written_as(tmp_path, RING4 | changes)


def written_as(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "network.yml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))  # JSON is YAML
    return path


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
    with pytest.raises(AstraSimUsageError, match=rf"network\.yml: .*{message}") as caught:
        read_network_config(written(tmp_path, **changes))
    assert caught.value.exit_code == 255


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
    with pytest.raises(AbortError, match=rf"network\.yml: {message}") as caught:
        read_network_config(written_as(tmp_path, content))
    assert caught.value.exit_code == 134


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


@pytest.mark.parametrize("null", [{}, {"bandwidth": [None], "latency": ["~"]}, {"latency": None}])
def test_pairs_have_their_own_figures(tmp_path, null):
    """Rows are sources; the diagonal may hold anything."""
    network = read_network_config(written_as(tmp_path, PAIRWISE3 | null))

    assert network == NetworkConfig(dimensions=(PAIRS,))
    (pairs,) = network.dimensions
    assert (pairs.topology, pairs.num_npus, pairs.num_hops(1, 2), pairs.num_hops(1, 1)) == (
        "Pairwise",
        3,
        1,
        0,
    )
    assert pairs.link_latency_ns(2, 1) == 0.5
    assert pairs.link_bytes_per_ns(1, 2) == 4.0 * 2**30 / 10**9


def test_pairs_may_be_one_dimension_of_several(tmp_path):
    content = PAIRWISE3 | {
        "topology": ["FullyConnected", "Pairwise"],
        "npus_count": [8, 3],
        "bandwidth": [50, None],
        "latency": [500, None],
    }

    network = read_network_config(written_as(tmp_path, content))

    assert network.dimensions == (dimension("FullyConnected", 8), PAIRS)
    assert network.num_npus == 24


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"npus_count": [4]}, "bandwidth_matrix: must have a row for each of 4 places, got 3"),
        ({"bandwidth_matrix": None}, "bandwidth_matrix: must be a list, got None"),
        ({"latency_matrix": [[0]]}, "latency_matrix: must have a row for each of 3 places, got 1"),
        (
            {"latency_matrix": [[0, 1, 2], [0, 1], [0, 1, 2]]},
            "latency_matrix: row 1 must have 3 entries, got 2",
        ),
        (
            {"latency_matrix": [[0, 1, 2], 7, [0, 1, 2]]},
            "latency_matrix: row 1: must be a list, got '7'",
        ),
        (
            {"bandwidth_matrix": [[1, 1, 1], [1, 1, 1], [1, 0, 1]]},
            r"bandwidth_matrix: row 2, column 1: must be positive and finite, got 0\.0",
        ),
        (
            {"bandwidth_matrix": [[1, None, 1], [1, 1, 1], [1, 1, 1]]},
            "bandwidth_matrix: row 0, column 1: must be a number, got 'null'",
        ),
        (
            {"latency_matrix": [[0, 1, -2], [0, 1, 2], [0, 1, 2]]},
            r"latency_matrix: row 0, column 2: must be finite and not negative, got -2\.0",
        ),
        ({"bandwidth": [5]}, "bandwidth: must be null for a Pairwise dimension, .*; got '5'"),
        ({"latency": [[1]]}, r"latency: must be null for a Pairwise dimension, .*; got \['1'\]"),
        (
            {"topology": ["Pairwise", "Ring"], "npus_count": [3, 4]},
            "bandwidth: must be a list, got None",
        ),
        (
            {
                "topology": ["Pairwise", "Pairwise"],
                "npus_count": [3, 3],
                "bandwidth": [None, None],
                "latency": [None, None],
            },
            "topology: must be Pairwise once at most",
        ),
    ],
)
def test_wrong_pairs_are_refused(tmp_path, changes, message):
    with pytest.raises(AstraSimUsageError, match=rf"network\.yml: {message}"):
        read_network_config(written_as(tmp_path, PAIRWISE3 | changes))


@pytest.mark.parametrize(
    ("bandwidths", "latencies", "message"),
    [
        (((1.0,),), ((1.0,),), "bandwidth_matrix: must have at least 2 rows, got 1"),
        (((1.0, 1.0),) * 2, ((1.0, 1.0),), "latency_matrix: must have 2 rows .*, got 1"),
        (((1.0, 1.0),) * 2, ((1.0,),) * 2, "latency_matrix: row 0 must have 2 entries, got 1"),
        (((1.0, float("nan")),) * 2, ((1.0, 1.0),) * 2, "row 0, column 1: .*, got nan"),
    ],
)
def test_pairs_built_by_hand_are_checked(bandwidths, latencies, message):
    with pytest.raises(AstraSimUsageError, match=message):
        PairwiseDimension(bandwidth_matrix_gb_per_s=bandwidths, latency_matrix_ns=latencies)


@pytest.mark.parametrize(
    ("topology", "joined"),
    [
        ("Ring", {(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (2, 1), (3, 2), (0, 3)}),
        ("FullyConnected", {(a, b) for a in range(4) for b in range(4) if a != b}),
        ("Switch", {(a, 4) for a in range(4)} | {(4, a) for a in range(4)}),
    ],
)
def test_links_join_the_places_of_the_pattern(topology, joined):
    """The switch of a Switch is the place after the last."""
    places = dimension(topology)

    assert joined == {(a, b) for a in range(-1, 6) for b in range(-1, 6) if places.has_link(a, b)}
    assert places.link_latency_ns(0, 1) == 500.0
    assert places.link_bytes_per_ns(0, 1) == places.bytes_per_ns == 50.0 * 2**30 / 10**9


def test_pairs_are_all_joined():
    assert {(a, b) for a in range(-1, 5) for b in range(-1, 5) if PAIRS.has_link(a, b)} == {
        (a, b) for a in range(3) for b in range(3) if a != b
    }


def test_bandwidth_changes_are_in_order_of_time(tmp_path):
    path = written(
        tmp_path,
        bandwidth_changes=[
            {"time_ns": 20, "bandwidth": 1},
            {"time_ns": 5, "dimension": 0, "source": 3, "target": 0, "bandwidth": 0.5},
            {"time_ns": 20, "source": None, "target": None, "bandwidth": "2e0"},
        ],
    )

    changes = read_network_config(path).bandwidth_changes

    assert changes == (
        BandwidthChange(time_ns=5, source=3, target=0, bandwidth_gb_per_s=0.5),
        BandwidthChange(time_ns=20, bandwidth_gb_per_s=1.0),
        BandwidthChange(time_ns=20, bandwidth_gb_per_s=2.0),
    )
    assert changes[0].bytes_per_ns == 0.5 * 2**30 / 10**9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (7, "entry 0: must be a mapping, got '7'"),
        ({"when": 3}, "entry 0: key must be one of time_ns, .*; got 'when'"),
        ({"time_ns": None}, "entry 0: time_ns: must be a whole number, got 'null'"),
        ({"time_ns": -1}, "entry 0: time_ns: must be a whole number, got '-1'"),
        ({"time_ns": 1.5}, r"entry 0: time_ns: must be a whole number, got '1\.5'"),
        ({"bandwidth": "x"}, "entry 0: bandwidth: must be a number, got 'x'"),
        ({"bandwidth": 0}, r"change at 3 ns: bandwidth: must be positive and finite, got 0\.0"),
        ({"dimension": 1}, r"change at 3 ns: dimension must be within \[0, 1\), got 1"),
        ({"source": 1}, "change at 3 ns: source and target must both .*, got 1 and None"),
        ({"source": 0, "target": 2}, "must be joined by a link of Ring dimension 0; got 0 and 2"),
        ({"source": 0, "target": 4}, "must be joined by a link of Ring dimension 0; got 0 and 4"),
    ],
)
def test_wrong_bandwidth_changes_are_refused(tmp_path, change, message):
    entry = {"time_ns": 3, "bandwidth": 1} | change if isinstance(change, dict) else change

    with pytest.raises(AstraSimUsageError, match=rf"network\.yml: .*{message}"):
        read_network_config(written(tmp_path, bandwidth_changes=[entry]))


def test_bandwidth_changes_must_be_a_list_and_ordered(tmp_path):
    with pytest.raises(AstraSimUsageError, match="bandwidth_changes: must be a list, got '5'"):
        read_network_config(written(tmp_path, bandwidth_changes=5))
    changes = tuple(BandwidthChange(time_ns=time, bandwidth_gb_per_s=1.0) for time in (4, 3))
    with pytest.raises(AstraSimUsageError, match="must be in order of time, got 3 after 4"):
        NetworkConfig(dimensions=(dimension(),), bandwidth_changes=changes)
    with pytest.raises(AstraSimUsageError, match="time_ns must not be negative, got -1"):
        BandwidthChange(time_ns=-1, bandwidth_gb_per_s=1.0)


def test_only_the_links_of_a_switch_change():
    change = BandwidthChange(time_ns=1, source=0, target=1, bandwidth_gb_per_s=1.0)

    with pytest.raises(
        AstraSimUsageError, match="dimension 0, whose switch is place 4; got 0 and 1"
    ):
        NetworkConfig(dimensions=(dimension("Switch"),), bandwidth_changes=(change,))


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
