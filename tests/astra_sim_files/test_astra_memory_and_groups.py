"""ASTRA-sim's remote memory and communicator group files as the engine reads them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_files import assert_ends, file_of

from astra_sim.files.comm_groups import read_comm_groups
from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.memory_config import MemoryConfig, read_memory_config

POOL = {"memory-type": "MEMORY_POOL", "remote-mem-latency": 333, "remote-mem-bw": 7}
NODES = POOL | {
    "memory-type": "PER_NODE_MEMORY_EXPANSION",
    "num-nodes": 2,
    "num-npus-per-node": 4,
}


@pytest.mark.parametrize(
    ("content", "memory"),
    [
        ({"memory-type": "NO_MEMORY_EXPANSION"}, MemoryConfig()),
        ({}, MemoryConfig(kind="unset")),
        (POOL, MemoryConfig(kind="pool", latency_ns=333, bandwidth_bytes_per_ns=7)),
        (
            POOL | {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 9.9},
            MemoryConfig(kind="per_npu", latency_ns=9, bandwidth_bytes_per_ns=7),
        ),
        (
            NODES | {"remote-mem-bw": 0.9},
            MemoryConfig(
                kind="per_node",
                latency_ns=333,
                bandwidth_bytes_per_ns=0,
                num_nodes=2,
                num_npus_per_node=4,
            ),
        ),
    ],
)
def test_every_type_of_memory_is_read(tmp_path, content, memory):
    """Fractions of the figures are cut off."""
    assert read_memory_config(file_of(tmp_path, "memory.json", content)) == memory


@pytest.mark.parametrize(
    ("latency_ns", "bandwidth", "num_bytes", "expected_ns"),
    [
        (333, 7, 1000, 475),  # 142.86 ns on the wire
        (100, 50, 0, 100),
        (100, 0, 1000, 100),
        (0, 3, 3, 1),
        (0, 1, 2**53 + 1, 2**53),  # in fp64
    ],
)
def test_an_access_takes_latency_and_whole_nanoseconds_on_the_wire(
    latency_ns, bandwidth, num_bytes, expected_ns
):
    memory = MemoryConfig(kind="pool", latency_ns=latency_ns, bandwidth_bytes_per_ns=bandwidth)

    assert memory.duration_ns(num_bytes) == expected_ns


@given(
    latency_ns=st.integers(0, 2**32 - 1),
    bandwidth=st.integers(1, 2**32 - 1),
    num_bytes=st.integers(0, 2**50),
)
def test_an_access_is_the_floor_of_the_quotient_where_fp64_is_exact(
    latency_ns, bandwidth, num_bytes
):
    """Below 2**53 the rounded quotient cannot reach the next integer from below."""
    memory = MemoryConfig(kind="pool", latency_ns=latency_ns, bandwidth_bytes_per_ns=bandwidth)

    assert memory.duration_ns(num_bytes) == latency_ns + num_bytes // bandwidth


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"memory-type": 1}, "memory-type: must be a text, got 1"),
        (POOL | {"remote-mem-latency": "1"}, "remote-mem-latency: must be a number, got '1'"),
        (POOL | {"remote-mem-latency": -1}, "remote-mem-latency: must be .* least 0, got -1"),
        (
            POOL | {"remote-mem-latency": 2**32},
            r"remote-mem-latency: must be less than 2\^32 .*, got 4294967296$",
        ),
        (POOL | {"remote-mem-bw": 2**40}, r"remote-mem-bw: must be less than 2\^32 "),
        (POOL | {"remote-mem-bw": True}, "remote-mem-bw: must be a number, got True"),
        (POOL | {"remote-mem-bw": -2}, "remote-mem-bw: must be .* least 0, got -2"),
        (NODES | {"num-nodes": 0}, "num-nodes: must be .* least 1, got 0"),
        (NODES | {"num-npus-per-node": 0}, "num-npus-per-node: must be .* least 1, got 0"),
        (
            {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-bw": 1},
            "remote-mem-latency: must be given for PER_NPU_MEMORY_EXPANSION, got nothing",
        ),
        (
            POOL | {"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 1},
            "num-npus-per-node: must be given for PER_NODE_MEMORY_EXPANSION, got nothing",
        ),
        ("{", "remote memory file is not JSON"),
        ([], "remote memory file must hold an object"),
    ],
)
def test_wrong_memory_aborts_and_is_named(tmp_path, content, message):
    path = file_of(tmp_path, "memory.json", content)
    assert_ends(read_memory_config, path, message, error=AbortError, exit_code=134)


def test_an_unknown_type_of_memory_ends_with_code_1(tmp_path):
    path = file_of(tmp_path, "memory.json", {"memory-type": "TAPE"})
    message = "memory-type: must be one of NO_MEMORY_EXPANSION, .*; got 'TAPE'"
    assert_ends(read_memory_config, path, message)


def test_a_memory_file_that_cannot_be_read_ends_with_code_1(tmp_path):
    message = "remote memory file cannot be read: No such file"
    assert_ends(read_memory_config, tmp_path / "absent.json", message)


@pytest.mark.parametrize("given", [("remote-mem-latency",), ("remote-mem-bw",), ()])
def test_figures_that_a_pool_lacks_are_zero_and_told(tmp_path, given):
    told: list[str] = []
    figures = {key: POOL[key] for key in given}
    path = file_of(tmp_path, "memory.json", {"memory-type": "MEMORY_POOL"} | figures)

    read = read_memory_config(path, told.append)

    assert read.latency_ns == figures.get("remote-mem-latency", 0)
    assert read.bandwidth_bytes_per_ns == figures.get("remote-mem-bw", 0)
    assert told == [
        f"{path}: {key}: not given for MEMORY_POOL, read as 0"
        for key in ("remote-mem-latency", "remote-mem-bw")
        if key not in given
    ]


def test_unknown_keys_of_memory_are_told_and_ignored(tmp_path):
    told: list[str] = []
    path = file_of(tmp_path, "memory.json", POOL | {"remote-mem-bandwidth": 9})

    assert read_memory_config(path, told.append).bandwidth_bytes_per_ns == 7
    assert told == [f"{path}: remote-mem-bandwidth: unknown key, ignored"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"kind": "tape"},
            "memory: kind must be one of unset, none, per_npu, per_node, pool; got 'tape'",
        ),
        ({"kind": "pool", "latency_ns": -1}, "remote-mem-latency: .*, got -1"),
        ({"kind": "pool", "bandwidth_bytes_per_ns": 0.5}, r"remote-mem-bw: .*, got 0\.5"),
        ({"kind": "per_node"}, "num-nodes: .*, got 0"),
    ],
)
def test_memory_built_by_hand_is_checked(fields, message):
    with pytest.raises(AstraSimError, match=message):
        MemoryConfig(**fields)


def test_groups_keep_the_order_of_their_ranks(tmp_path):
    path = file_of(tmp_path, "groups.json", {"2": [3, 1], "7th": [0], " 1": []})

    assert read_comm_groups(path) == {2: (3, 1), 7: (0,), 1: ()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"0": [0, 1]}, "group '0': must begin with a whole number from 1 to 2147483647, got '0'"),
        ({"-1": [0]}, "group '-1': must begin with a whole number"),
        ({"a1": [0]}, "group 'a1': must begin with a whole number"),
        ({"": [0]}, "group '': must begin with a whole number"),
        ({"2147483648": [0]}, "group '2147483648': must begin with a whole number"),
        ({"1": [0], "01": [1]}, "group '01': number must be given once, got 1 twice"),
        ({"1": 0}, "group '1': must be a list of ranks, got 0"),
        ({"1": [0, "1"]}, "group '1': rank must be a whole number from 0 on, got '1'"),
        ({"1": [0, -1]}, "group '1': rank must be a whole number from 0 on, got -1"),
        ({"1": [0, 1.0]}, r"group '1': rank must be a whole number from 0 on, got 1\.0"),
        ({"1": [False]}, "group '1': rank must be a whole number from 0 on, got False"),
        ({"1": [3, 0, 3]}, "group '1': ranks must be distinct, got 3 2 times"),
        ([[0, 1]], "communicator group file must hold an object"),
        ("{1: [0]}", "communicator group file is not JSON"),
    ],
)
def test_wrong_groups_abort_and_are_named(tmp_path, content, message):
    path = file_of(tmp_path, "groups.json", content)
    assert_ends(read_comm_groups, path, message, error=AbortError, exit_code=134)


def test_a_group_file_that_cannot_be_read_aborts(tmp_path):
    with pytest.raises(
        AbortError, match=r"absent\.json: communicator group file cannot be read: No such file"
    ):
        read_comm_groups(tmp_path / "absent.json")


def test_every_golden_memory_and_group_file_is_read(golden_astra):
    cases = golden_astra / "astra"
    kinds = {read_memory_config(path).kind for path in sorted(cases.glob("*/remote_memory.json"))}
    groups = {
        path.parent.name: read_comm_groups(path) for path in sorted(cases.glob("*/comm_group.json"))
    }

    assert kinds == {"none", "per_npu", "pool"}
    assert len(groups) > 10
    for case, ranks_of in groups.items():
        num_npus = json.loads((cases / case / "expected.json").read_text())["npus"]
        assert all(rank < num_npus for ranks in ranks_of.values() for rank in ranks)
