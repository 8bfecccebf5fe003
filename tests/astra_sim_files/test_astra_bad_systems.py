"""System files of ASTRA-sim that are refused, and by which code the run ends."""

from dataclasses import replace

import pytest
from written_files import assert_ends, file_of

from astra_sim.files.algorithm import Algorithm
from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.system_config import SharedBusConfig, SystemConfig, read_system_config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"scheduling-policy": 1}, "scheduling-policy: must be a text, got 1"),
        ({"collective-optimization": None}, "collective-optimization: must be a text, got None"),
        ({"preferred-dataset-splits": "4"}, "preferred-dataset-splits: must be a number, got '4'"),
        (
            {"preferred-dataset-splits": True},
            "preferred-dataset-splits: must be a number, got True",
        ),
        (
            {"preferred-dataset-splits": -1},
            "preferred-dataset-splits: must be a whole number of at least 0, got -1",
        ),
        (
            {"active-chunks-per-dimension": [1]},
            r"active-chunks-per-dimension: must be a number, got \[1\]",
        ),
        ({"active-chunks-per-dimension": -1}, "active-chunks-per-dimension: must be .*, got -1"),
        ({"endpoint-delay": None}, "endpoint-delay: must be a number, got None"),
        ({"endpoint-delay": -1}, "endpoint-delay: must be a whole number of at least 0, got -1"),
        (
            {"endpoint-delay": 2**31},
            r"endpoint-delay: must be less than 2\^31 \(2147483648\).*, got 2147483648$",
        ),
        ({"endpoint-delay": 4294967306.7}, r"endpoint-delay: must be less .*, got 4294967306$"),
        ({"active-chunks-per-dimension": 2**32 + 1}, r"active-chunks-per-dimension: must be less"),
        ({"preferred-dataset-splits": 2**32 + 1}, "preferred-dataset-splits: must be less than"),
        ({"L": 2**31}, r"L: must be less than 2\^31 .*, got 2147483648$"),
        ({"o": 2**40}, r"o: must be less than 2\^31 .*, got 1099511627776$"),
        ({"g": 2**31}, r"g: must be less than 2\^31 "),
        ({"local-reduction-delay": 2**31}, r"local-reduction-delay: must be less than 2\^31 "),
        (
            {"all-reduce-implementation": "ring"},
            "all-reduce-implementation: must be a list of texts, got 'ring'",
        ),
        (
            {"all-reduce-implementation": [1]},
            r"all-reduce-implementation: must be a list of texts, got \[1\]",
        ),
        ({"local-mem-bw": "fast"}, "local-mem-bw: must be a number, got 'fast'"),
        ({"local-mem-bw": -1}, r"local-mem-bw: must be finite and not negative, got -1\.0"),
        ({"peak-perf": False}, "peak-perf: must be a number, got False"),
        ({"peak-perf": -2}, r"peak-perf: must be finite and not negative, got -2\.0"),
        ({"peak-perf": 10**400}, "peak-perf: must be a finite number, got 1000"),
        ({"model-shared-bus": "yes"}, "model-shared-bus: must be a number, got 'yes'"),
        ({"L": "x"}, "L: must be a number, got 'x'"),
        ({"o": -1}, "o: must be a whole number of at least 0, got -1"),
        ({"g": 1e300}, r"g: must be a number of single precision, got 1e\+300"),
        ({"G": -0.5}, r"G: must be finite and not negative, got -0\.5"),
        ({"local-reduction-delay": -1}, "local-reduction-delay: must be .* at least 0, got -1"),
        ({"communication-slots": 0}, "communication-slots: must be .* at least 1, got 0"),
        ({"communication-slots": "many"}, "communication-slots: must be a number, got 'many'"),
        ([], r"system file must hold an object, got \[\]"),
        ("{", "system file is not JSON: "),
        ("", "system file is not JSON: "),
        ('{"peak-perf": NaN}', "system file is not JSON: NaN is no number"),
        ('{"peak-perf": 1e999}', "peak-perf: must be a finite number, got inf"),
    ],
)
def test_wrong_content_aborts_and_is_named(tmp_path, content, message):
    path = file_of(tmp_path, "system.json", content)
    assert_ends(read_system_config, path, message, error=AbortError, exit_code=134)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"scheduling-policy": "lifo"},
            "scheduling-policy: must be one of LIFO, FIFO, EXPLICIT; got 'lifo'",
        ),
        (
            {"collective-optimization": "best"},
            "collective-optimization: must be one of baseline, localBWAware; got 'best'",
        ),
        (
            {"all-to-all-implementation-custom": ["trace"]},
            "all-to-all-implementation-custom: custom collectives are not modelled, got .'trace'",
        ),
        (
            {"per-node-custom-implementation": "map.yml"},
            "per-node-custom-implementation: custom collectives are not modelled, got 'map.yml'",
        ),
    ],
)
def test_unknown_policies_and_custom_collectives_end_with_code_1(tmp_path, content, message):
    assert_ends(read_system_config, file_of(tmp_path, "system.json", content), message)


def test_a_file_that_cannot_be_read_ends_with_code_1(tmp_path):
    message = "system file cannot be read: No such file"
    assert_ends(read_system_config, tmp_path / "absent.json", message)


def test_a_file_that_is_no_text_aborts(tmp_path):
    path = tmp_path / "system.json"
    path.write_bytes(b'{"L": "\xff"}')

    with pytest.raises(AbortError, match=r"system\.json: system file is not UTF-8"):
        read_system_config(path)


@pytest.mark.parametrize("field", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_a_list_longer_than_the_dimensions_aborts(field):
    system = replace(SystemConfig(), **{field: (Algorithm(name="ring"),) * 2}, source="system.json")

    system.check_dimensions(2)
    system.check_dimensions(3)
    with pytest.raises(
        AbortError,
        match=rf"^system\.json: {field.replace('_', '-')}-implementation: must have at most one "
        "entry for each of the network's 1 dimensions, got 2",
    ):
        system.check_dimensions(1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"preferred_dataset_splits": 1.5}, "system: preferred-dataset-splits: .*, got 1.5"),
        ({"active_chunks_per_dimension": True}, "active-chunks-per-dimension: .*, got True"),
        ({"local_mem_bw_gb_per_s": float("nan")}, "local-mem-bw: .*, got nan"),
        ({"communication_slots": 0}, "communication-slots: .* at least 1, got 0"),
        ({"scheduling_policy": "x"}, "scheduling-policy: must be one of .*; got 'x'"),
        ({"all_reduce": ("ring",)}, "all-reduce-implementation: must be Algorithms, got 'ring'"),
    ],
)
def test_a_system_built_by_hand_is_checked(fields, message):
    with pytest.raises(AstraSimError, match=message):
        SystemConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"latency_ns": -1}, "^L: .*, got -1"),
        ({"overhead_ns": 1.5}, "^o: .*, got 1.5"),
        ({"gap_ns": -3}, "^g: .*, got -3"),
        ({"gap_ns_per_byte": float("inf")}, "^G: .*, got inf"),
        ({"local_reduction_delay": -1}, "^local-reduction-delay: .*, got -1"),
    ],
)
def test_a_bus_built_by_hand_is_checked(fields, message):
    with pytest.raises(AbortError, match=message):
        SharedBusConfig(**fields)
