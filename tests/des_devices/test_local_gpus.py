"""GPU topologies: rings and disjoint groups against brute force, presets by hand, bad input."""

from itertools import combinations, permutations

import numpy as np
import pytest
from gpu_numbers import renumbered

from des.devices.gpus import GpuTopology
from des.devices.patterns import hybrid_cube_mesh, pcie_two_numa
from des.devices.servers import draw_server, server

SEEDS = range(8)


def brute_force_ring(gpus: GpuTopology, group: tuple[int, ...]) -> float:
    """Bandwidth of the slowest hop in the best ring: all orders of the group."""
    bandwidths = gpus.bandwidth_bytes_per_s
    return max(
        min(
            bandwidths[one][other] for one, other in zip(order, (*order[1:], order[0]), strict=True)
        )
        for order in permutations(group)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ring_of_every_small_set_is_the_best_of_all_orders(seed):
    gpus = draw_server(np.random.default_rng(seed))

    for size in (2, 3, 4, 5):
        for group in combinations(range(8), size):
            mask = sum(1 << gpu for gpu in group)
            found = gpus.wires.ring_bandwidth_bytes_per_s[mask]
            assert found == brute_force_ring(gpus, group)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_two_groups_of_four_and_pairs_are_those_of_all_partitions(seed):
    """Pairs of disjoint groups among the free GPUs, by enumeration."""
    gpus = draw_server(np.random.default_rng(seed))

    for row, size in ((1, 2), (2, 4)):
        groups = [set(group) for group in combinations(gpus.free, size)]
        slowest = [
            min(brute_force_ring(gpus, tuple(one)), brute_force_ring(gpus, tuple(other)))
            for one, other in combinations(groups, 2)
            if not one & other
        ]
        found = gpus.best_groups[0][row, 2]
        assert found == max(slowest) if slowest else np.isnan(found)


def test_groups_of_a_server_of_bridged_pairs_by_hand():
    """Pairs over 4 NVLinks of 20 GB/s, four GPUs of a processor over PCIe, eight over both."""
    bandwidths, latencies_s = server("pcie_pairs").best_groups

    assert list(bandwidths[1, 1:5]) == [80e9] * 4
    assert list(bandwidths[2, 1:3]) == [20e9] * 2
    assert bandwidths[3, 1] == 10e9
    assert np.isnan(bandwidths[2, 3])
    assert latencies_s[1, 1] == 3.4e-6
    assert latencies_s[3, 1] == 5.7e-6


def test_every_gpu_of_the_cube_mesh_has_six_nvlinks():
    rows = hybrid_cube_mesh()

    counts = [sum(int(name[2:]) for name in row if name.startswith("NV")) for row in rows]
    assert counts == [6] * 8


def test_a_ring_through_the_cube_mesh_uses_double_links_alone():
    """0-3-2-1-5-6-7-4: two links each, though no GPU has more than two such neighbours."""
    assert server("hybrid_cube_mesh").best_groups[0][3, 1] == 40e9


def test_nodes_are_read_off_the_classes():
    gpus = GpuTopology.of_classes(pcie_two_numa())

    assert gpus.numa_of_gpu == (0, 0, 0, 0, 1, 1, 1, 1)
    assert GpuTopology.of_classes([["X", "NV2"], ["NV2", "X"]]).numa_of_gpu == (0, 0)


def test_a_ring_takes_bandwidth_before_latency():
    """One NVLink has less bandwidth and less latency than a PCIe switch."""
    three = GpuTopology.of_classes([["X", "NV1", "PIX"], ["NV1", "X", "PIX"], ["PIX", "PIX", "X"]])

    assert three.wires.ring_bandwidth_bytes_per_s[0b111] == 20e9
    assert three.best_groups[0][1, 1] == 24e9
    assert three.best_groups[1][1, 1] == 5.7e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_other_numbers_leave_the_best_groups_as_they_are(seed):
    rng = np.random.default_rng(seed)
    gpus = draw_server(rng)
    other = renumbered(gpus, rng.permutation(8).tolist())

    np.testing.assert_array_equal(other.best_groups[0], gpus.best_groups[0])
    np.testing.assert_array_equal(other.best_groups[1], gpus.best_groups[1])


def test_numbering_back_gives_the_same_server():
    gpus = draw_server(np.random.default_rng(3))
    order = [3, 1, 4, 0, 5, 7, 2, 6]

    back = renumbered(renumbered(gpus, order), np.argsort(order).tolist())
    assert back == gpus


def test_equal_generators_draw_equal_servers_of_several_kinds():
    first, again = (
        [draw_server(np.random.default_rng([seed, 5])) for seed in range(40)] for _ in range(2)
    )

    assert first == again
    assert {len(gpus.free) for gpus in first} == {4, 5, 6, 7, 8}


PAIR = {
    "bandwidth_bytes_per_s": ((1.0, 2.0), (2.0, 1.0)),
    "latency_s": ((0.0, 1.0), (1.0, 0.0)),
    "numa_of_gpu": (0, 0),
    "free": (0, 1),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"numa_of_gpu": ()}, "1 to 16 GPUs, got 0"),
        ({"numa_of_gpu": (0,) * 17}, "1 to 16 GPUs, got 17"),
        ({"numa_of_gpu": (0, -1)}, "numa_of_gpu must be whole numbers"),
        ({"bandwidth_bytes_per_s": ((1.0, 2.0),)}, "bandwidth_bytes_per_s must be 2 rows of 2"),
        ({"bandwidth_bytes_per_s": ((1.0, 2.0), (3.0, 1.0))}, "GPUs 1 and 0 must be the same both"),
        ({"bandwidth_bytes_per_s": ((1.0, 0.0), (0.0, 1.0))}, "bandwidth_bytes_per_s must be pos"),
        ({"latency_s": ((0.0, np.nan), (np.nan, 0.0))}, "latency_s must be finite"),
        ({"free": ()}, "free must be one or more different GPUs from 0 to 1"),
        ({"free": (1, 0)}, "in rising order, got"),
        ({"free": (0, 2)}, "free must be one or more"),
    ],
)
def test_bad_topologies_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        GpuTopology(**(PAIR | changes))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([["X", "PIX"]], "classes must be 1 rows of 1, got rows of \\[2\\]"),
        ([["X", "NV0"], ["NV0", "X"]], "GPUs 0 and 1 must be one of NV1, .*, got 'NV0'"),
        ([["PIX"]], "class of GPUs 0 and 0 must be X, got 'PIX'"),
        ([["X", "PIX"], ["SYS", "X"]], "must be the same both ways"),
    ],
)
def test_bad_matrices_of_classes_are_refused(classes, message):
    with pytest.raises(ValueError, match=message):
        GpuTopology.of_classes(classes)


def test_unknown_servers_orders_and_counts_are_refused():
    with pytest.raises(ValueError, match="unknown kind 'dgx-a10'; did you mean 'dgx-a100'"):
        server("dgx-a10")
    with pytest.raises(ValueError, match="order must name GPUs 0 to 7 once"):
        renumbered(server("nvswitch"), [0] * 8)
    with pytest.raises(ValueError, match="most_taken must be from 1 to 7, got 8"):
        draw_server(np.random.default_rng(0), most_taken=8)
