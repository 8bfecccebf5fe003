"""Extensions of ASTRA-sim's network file: figures of pairs, and bandwidths that change."""

import pytest
from written_networks import dimension, written, written_as

from astra_sim.files.errors import AstraSimUsageError
from astra_sim.files.network_config import (
    BandwidthChange,
    NetworkConfig,
    PairwiseDimension,
    read_network_config,
)

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
