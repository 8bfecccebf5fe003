"""ASTRA-sim's ``system.json`` as the engine reads it."""

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_files import file_of

from astra_sim.files.algorithm import Algorithm
from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.system_config import SharedBusConfig, SystemConfig, read_system_config


def read(folder: Path, **content: object) -> SystemConfig:
    """What a file with these keys says, underscores standing for hyphens."""
    keys = {key.replace("_", "-"): value for key, value in content.items()}
    return read_system_config(file_of(folder, "system.json", keys))


EVERY_KEY = {
    "scheduling_policy": "LIFO",
    "collective_optimization": "localBWAware",
    "preferred_dataset_splits": 4,
    "active_chunks_per_dimension": 2,
    "endpoint_delay": 12,
    "all_reduce_implementation": ["ring", "oneDirect3"],
    "all_gather_implementation": ["halvingDoubling"],
    "reduce_scatter_implementation": ["doubleBinaryTree"],
    "all_to_all_implementation": ["direct", "direct"],
    "local_mem_bw": 1600.5,
    "peak_perf": 900,
    "roofline_enabled": 1,
    "replay_only": 1,
    "track_local_mem": 1,
    "model_shared_bus": 1,
    "L": 50,
    "o": 3,
    "g": 100,
    "G": 0.5,
    "local_reduction_delay": 2,
    "communication_slots": 3,
}
EVERY_FIELD = SystemConfig(
    scheduling_policy="LIFO",
    collective_optimization="localBWAware",
    preferred_dataset_splits=4,
    active_chunks_per_dimension=2,
    endpoint_delay_ns=12,
    all_reduce=(
        Algorithm(name="ring"),
        Algorithm(name="direct", whole_system=True, window=3),
    ),
    all_gather=(Algorithm(name="halvingDoubling"),),
    reduce_scatter=(Algorithm(name="doubleBinaryTree"),),
    all_to_all=(Algorithm(name="direct"),) * 2,
    local_mem_bw_gb_per_s=1600.5,
    peak_perf_tflops=900.0,
    roofline_enabled=True,
    replay_only=True,
    track_local_mem=True,
    shared_bus=SharedBusConfig(
        latency_ns=50, overhead_ns=3, gap_ns=100, gap_ns_per_byte=0.5, local_reduction_delay=2
    ),
    communication_slots=3,
)


def test_every_key_has_its_field(tmp_path):
    system = read(tmp_path, **EVERY_KEY)

    assert system == EVERY_FIELD
    assert system.source == str(tmp_path / "system.json")


def test_an_empty_file_has_the_defaults(tmp_path):
    system = read(tmp_path)

    assert system == SystemConfig()
    assert system.preferred_dataset_splits == 0
    assert system.active_chunks_per_dimension == 1
    assert system.scheduling_policy is None
    assert system.collective_optimization is None
    assert system.all_reduce == ()
    assert (system.local_mem_bw_gb_per_s, system.peak_perf_tflops) == (0.0, 0.0)
    assert (system.roofline_enabled, system.replay_only, system.track_local_mem) == (False,) * 3
    assert system.shared_bus is None
    assert system.communication_slots == 1


@pytest.mark.parametrize(
    ("delay", "scale", "expected_ns"),
    [
        (7.9, 1.0, 7),
        (7.9, 1.3, 9),  # floor(7 * 1.3), not floor(7.9 * 1.3) = 10
        (10, 0.31, 3),
        (10, 2.55, 25),
        (0, 5.0, 0),
        (None, 2.55, 10),
    ],
)
def test_the_endpoint_delay_is_cut_off_scaled_and_cut_off(tmp_path, delay, scale, expected_ns):
    """A delay that is not given is 10 ns, whatever the scale."""
    given_keys = {} if delay is None else {"endpoint_delay": delay}

    assert read(tmp_path, **given_keys).endpoint_delay(scale) == expected_ns


@pytest.mark.parametrize("value", [1, 0.5, -1, True, False, "no", None, [], {}])
@pytest.mark.parametrize("key", ["roofline_enabled", "replay_only", "track_local_mem"])
def test_only_the_number_zero_turns_a_feature_off(tmp_path, key, value):
    assert getattr(read(tmp_path, **{key: value}), key)
    for zero in (0, 0.0, -0.0):
        assert not getattr(read(tmp_path, **{key: zero}), key)


@pytest.mark.parametrize(
    ("value", "is_on"),
    [(1, True), (True, True), (1.9, True), (0, False), (False, False), (2, False)],
)
def test_the_shared_bus_is_modelled_where_its_key_is_one(tmp_path, value, is_on):
    assert (read(tmp_path, model_shared_bus=value).shared_bus is not None) is is_on


def test_a_bus_without_figures_is_free(tmp_path):
    assert read(tmp_path, model_shared_bus=1).shared_bus == SharedBusConfig(
        latency_ns=0, overhead_ns=0, gap_ns=0, gap_ns_per_byte=0.0, local_reduction_delay=1
    )


def test_bus_figures_are_rounded_to_single_precision_before_they_are_cut_off(tmp_path):
    """2**24 + 1 lies between two floats and goes to 2**24; 0.0038 is no float either."""
    bus = read(tmp_path, model_shared_bus=1, L=2**24 + 1, o=3.99, g=0.99999999, G=0.0038).shared_bus

    assert bus is not None
    assert (bus.latency_ns, bus.overhead_ns, bus.gap_ns) == (2**24, 3, 1)
    assert bus.gap_ns_per_byte == 0.003800000064074993
    assert struct.pack("<f", bus.gap_ns_per_byte) == struct.pack("<f", 0.0038)


def test_a_fraction_for_a_whole_number_is_cut_off(tmp_path):
    system = read(
        tmp_path,
        preferred_dataset_splits=4.9,
        active_chunks_per_dimension=2.0,
        local_reduction_delay=3.5,
        model_shared_bus=1,
    )

    assert (system.preferred_dataset_splits, system.active_chunks_per_dimension) == (4, 2)
    assert system.shared_bus is not None
    assert system.shared_bus.local_reduction_delay == 3


def test_slots_may_be_unlimited(tmp_path):
    assert read(tmp_path, communication_slots="unlimited").communication_slots is None


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("ring", Algorithm(name="ring")),
        ("oneRing", Algorithm(name="ring", whole_system=True)),
        ("direct", Algorithm(name="direct")),
        ("direct-1", Algorithm(name="direct")),
        ("direct8", Algorithm(name="direct", window=8)),
        ("direct99999", Algorithm(name="direct", window=99999)),
        ("oneDirect", Algorithm(name="direct", whole_system=True)),
        ("oneDirect12", Algorithm(name="direct", whole_system=True, window=12)),
        ("halvingDoubling", Algorithm(name="halvingDoubling")),
        ("oneHalvingDoubling", Algorithm(name="halvingDoubling", whole_system=True)),
        ("doubleBinaryTree", Algorithm(name="doubleBinaryTree")),
    ],
)
def test_algorithms_by_name(text, algorithm):
    assert Algorithm.parse(text) == algorithm


@pytest.mark.parametrize("text", ["foo", "", "Ring", "ring2", "oneDoubleBinaryTree", "Direct"])
def test_an_unknown_algorithm_ends_with_code_1(tmp_path, text):
    with pytest.raises(
        AstraSimError,
        match=rf"system\.json: all-gather-implementation: must be one of ring, .*; got '{text}'$",
    ) as caught:
        read(tmp_path, all_gather_implementation=["ring", text])
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("window", ["x", "2x", "1_0", " 2", "-2", "123456", "1.5", "ional"])
@pytest.mark.parametrize("prefix", ["direct", "oneDirect"])
def test_a_window_that_is_no_number_aborts(tmp_path, prefix, window):
    with pytest.raises(
        AbortError,
        match=r"system\.json: all-to-all-implementation: window of direct must be .*, "
        rf"got '{prefix}{window}'$",
    ):
        read(tmp_path, all_to_all_implementation=[prefix + window])


@given(window=st.integers(0, 99999), whole_system=st.booleans())
def test_any_window_is_read_back(window, whole_system):
    text = f"{'oneDirect' if whole_system else 'direct'}{window}"

    assert Algorithm.parse(text) == Algorithm(
        name="direct", whole_system=whole_system, window=window
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "foo"}, "algorithm: name must be one of ring, .*; got 'foo'"),
        (
            {"name": "doubleBinaryTree", "whole_system": True},
            "doubleBinaryTree: whole_system must be False",
        ),
        ({"name": "ring", "window": 2}, "algorithm ring: window must be None, got 2"),
        ({"name": "direct", "window": -1}, "window: must be a whole number of at least 0, got -1"),
    ],
)
def test_an_algorithm_built_by_hand_is_checked(fields, message):
    with pytest.raises(AstraSimError, match=message):
        Algorithm(**fields)


def test_unknown_keys_are_told_and_ignored(tmp_path):
    told: list[str] = []
    path = file_of(tmp_path, "system.json", {"active-chunks": 3, "peak-perf": 2, "Peak-Perf": 3})

    system = read_system_config(path, told.append)

    assert system == SystemConfig(peak_perf_tflops=2.0)
    assert told == [
        f"{path}: {key}: unknown key, ignored" for key in ("active-chunks", "Peak-Perf")
    ]
    with pytest.warns(UserWarning, match="active-chunks: unknown key, ignored"):
        read_system_config(file_of(tmp_path, "system.json", {"active-chunks": 3}))


def test_keys_without_effect_are_known(tmp_path):
    """ASTRA-sim's own examples have them."""
    content = {
        "boost-mode": 0,
        "intra-dimension-scheduling": "FIFO",
        "inter-dimension-scheduling": "baseline",
        "trace-enabled": 0,
    }
    told: list[str] = []

    assert (
        read_system_config(file_of(tmp_path, "system.json", content), told.append) == SystemConfig()
    )
    assert told == []


def test_every_golden_system_is_read_but_the_one_with_an_unknown_algorithm(golden_astra):
    refused = {}
    num_read = 0
    for path in sorted(golden_astra.glob("astra/*/system.json")):
        try:
            system = read_system_config(path)
        except AstraSimError as error:
            refused[path.parent.name] = error.exit_code
        else:
            content = json.loads(path.read_text())
            assert system.preferred_dataset_splits == content.get("preferred-dataset-splits", 0)
            assert system.peak_perf_tflops == content["peak-perf"]
            num_read += 1

    assert refused == {"err-unknown-algorithm": 1}
    assert num_read > 50
