"""CPUs and memory next to GPUs: by hand, bounds on random demands, and refusals."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.devices.numa import memory_nodes, numactl_line, optimal_cpus
from des.devices.presets import simulated
from des.devices.server import Gpu, Server
from des.devices.spans import numbers_in

GIB = 2.0**30
A100, H100 = simulated("dgx-a100"), simulated("dgx-h100")


def test_cores_of_the_own_node_come_before_their_second_threads():
    """GPU0 of the DGX A100 is at node 3: cores 48-63, second threads 176-191."""
    assert optimal_cpus(A100, [0], 4) == (48, 49, 50, 51)
    assert optimal_cpus(A100, [0], 18) == (*range(48, 64), 176, 177)
    assert optimal_cpus(A100, [0]) == (*range(48, 64), *range(176, 192))


def test_every_gpu_has_its_share_of_the_cpus():
    """Two GPUs at node 0 and one at node 1: eight and four CPUs of twelve."""
    assert optimal_cpus(H100, [0, 4], 8) == (0, 1, 2, 3, 56, 57, 58, 59)
    assert optimal_cpus(H100, [0, 1, 4], 12) == (*range(8), *range(56, 60))


def test_the_nearest_nodes_follow_evenly_when_the_own_are_full():
    """Node 3 has 32; nodes 0, 1 and 2 are 12 away, nodes 4 to 7 are 32 away."""
    cpus = optimal_cpus(A100, [0], 32 + 6)
    assert set(cpus) - set(range(48, 64)) - set(range(176, 192)) == {0, 1, 16, 17, 32, 33}

    near = {cpu for node in A100.numa_nodes[:4] for cpu in numbers_in(node.cpus)}
    assert set(optimal_cpus(A100, [0], 4 * 32)) == near
    assert len(set(optimal_cpus(A100, [0], 4 * 32 + 4)) - near) == 4


def test_cpus_of_others_are_left_to_them():
    first = optimal_cpus(A100, [0], 8)
    second = optimal_cpus(A100, [1], 8, taken=first)

    assert second == tuple(range(56, 64))


def test_affinity_that_the_job_is_restricted_to_is_kept():
    gpus = (replace(H100.gpus[0], cpus=((4, 7),)), *H100.gpus[1:])

    assert optimal_cpus(replace(H100, gpus=gpus), [0]) == (4, 5, 6, 7)


def test_a_matrix_alone_has_cpus_but_no_distances():
    """GPUs of nodes 0 and 1; a third says only its CPUs."""
    server = Server(
        name="s",
        gpus=(
            Gpu(number=0, cpus=((0, 1),), numa_nodes=(0,)),
            Gpu(number=2, cpus=((2, 3),), numa_nodes=(1,)),
            Gpu(number=5, cpus=((0, 3),)),
            Gpu(number=6),
        ),
        tokens=tuple(tuple("X" if i == j else "SYS" for j in range(4)) for i in range(4)),
    )

    assert optimal_cpus(server, [2], 3) == (0, 2, 3)
    assert optimal_cpus(server, [5], 2) == (0, 1)
    with pytest.raises(ValueError, match="CPUs near GPU6 are not known"):
        optimal_cpus(server, [6])
    with pytest.raises(ValueError, match="NUMA nodes of GPU5 are not known"):
        memory_nodes(server, [0, 5])
    with pytest.raises(ValueError, match="free memory of NUMA nodes 0 is not known"):
        memory_nodes(server, [0], GIB)


@given(
    gpus=st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True),
    count=st.integers(1, 256),
    taken=st.frozensets(st.integers(0, 255), max_size=100),
)
@settings(max_examples=100)
def test_cpus_are_as_many_as_wanted_and_own_ones_first(gpus, count, taken):
    own = {cpu for gpu in gpus for cpu in numbers_in(A100.gpus[gpu].cpus)} - taken
    if count > 256 - len(taken):
        with pytest.raises(ValueError, match=f"count must be from 1 to {256 - len(taken)}, "):
            optimal_cpus(A100, gpus, count, taken=taken)
        return
    cpus = optimal_cpus(A100, gpus, count, taken=taken)

    assert len(set(cpus)) == len(cpus) == count
    assert not set(cpus) & taken
    assert set(cpus) <= own or own <= set(cpus)
    assert set(optimal_cpus(A100, gpus, max(1, count - 1), taken=taken)) <= set(cpus)


def test_memory_is_next_to_the_gpus_while_it_fits():
    assert memory_nodes(A100, [0]) == (3,)
    assert memory_nodes(A100, [0], 256 * GIB) == (3,)
    assert memory_nodes(A100, [0], 257 * GIB) == (0, 3)
    assert memory_nodes(A100, [0, 6], 512 * GIB) == (3, 5)
    with pytest.raises(ValueError, match=r"memory must be at most 2048.0 GiB, .*\(256.0 GiB next"):
        memory_nodes(A100, [0], 2049 * GIB)


def test_memory_of_gpus_is_not_that_of_processes():
    """As on Grace, where a GPU's memory is a NUMA node of its own."""
    gpus = tuple(replace(gpu, memory_numa_node=1) for gpu in H100.gpus)

    with pytest.raises(ValueError, match=r"at most 1024\.0 GiB, free on NUMA nodes 0 together"):
        memory_nodes(replace(H100, gpus=gpus), [0], 1025 * GIB)


@pytest.mark.parametrize("gpus", [[], [8], [0, 0], [-1]])
def test_gpus_must_be_there(gpus):
    with pytest.raises(ValueError, match="gpus must be one or more different ones of 0-7, got"):
        optimal_cpus(H100, gpus, 1)


@pytest.mark.parametrize("count", [0, -1, 225])
def test_more_cpus_than_there_are_cannot_be_had(count):
    with pytest.raises(ValueError, match=f"count must be from 1 to 224, .*got {count}"):
        optimal_cpus(H100, [0], count)


def test_a_line_without_nodes_leaves_memory_free():
    assert numactl_line([3, 1, 2], []) == "numactl --physcpubind=1-3"
    assert numactl_line([0], [0, 1]) == "numactl --physcpubind=0 --membind=0-1"
