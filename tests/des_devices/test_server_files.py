"""Servers joined from several texts and a sysfs tree, by hand; contradictions are refused."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from des.devices.files.gpu_list import model_of, read_gpu_list
from des.devices.files.numactl import read_numa_nodes
from des.devices.files.server_files import read_files
from des.devices.spans import numbers_in

MATRIX = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV2\tPIX\t0-1\t0\t\tN/A\n"
    "GPU1\tNV2\t X \tSYS\t2-3\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)
NUMACTL = """\
available: 3 nodes (0-1,8)
node 0 cpus: 0 1
node 0 size: 1024 MB
node 0 free: 512 MB
node 1 cpus: 2 3
node 1 size: 2048 MB
node 1 free: 0 MB
node 8 cpus:
node 8 size: 96 GB
node 8 free: 96 GB
node distances:
node   0   1   8
  0:  10  21  80
  1:  21  10  80
  8:  80  80  10
"""
LINKS = """\
GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-aa)
     Link 0: 25.781 GB/s
     Link 1: 25.781 GB/s
     Link 2: <inactive>
GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-bb)
     Link 0: 25.781 GB/s
     Link 1: 25.781 GB/s
"""


def read(tmp_path, *texts):
    """Server of some texts, each in a file of its own."""
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(text, encoding="utf-8")
    return read_files(paths).server


def sysfs(tmp_path):
    """A sysfs tree of two NUMA nodes and two cards."""
    files = {
        "devices/system/node/node0/cpulist": "0-1\n",
        "devices/system/node/node0/distance": "10 21\n",
        "devices/system/node/node0/meminfo": "Node 0 MemTotal: 1024 kB\nNode 0 MemFree: 512 kB\n",
        "devices/system/node/node1/cpulist": "2-3\n",
        "devices/system/node/node1/distance": "21 10\n",
        "devices/system/node/node1/meminfo": "Node 1 MemTotal: 2048 kB\n",
        "class/infiniband/mlx5_0/device/numa_node": "0\n",
        "class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
        "class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)\n",
        "class/infiniband/mlx5_0/ports/2/state": "1: DOWN\n",
        "class/infiniband/mlx5_0/ports/2/rate": "10 Gb/sec (4X SDR)\n",
        "class/infiniband/mlx5_9/device/numa_node": "-1\n",
    }
    for name, text in files.items():
        path = tmp_path / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "sys"


def test_all_texts_of_a_machine_make_one_server(tmp_path):
    server = read(tmp_path, MATRIX, NUMACTL, LINKS)

    assert [gpu.model for gpu in server.gpus] == ["v100", "v100"]
    assert {gpu.nvlink_bytes_per_s for gpu in server.gpus} == {25.781e9}
    assert [node.number for node in server.numa_nodes] == [0, 1, 8]
    assert [node.cpus for node in server.numa_nodes] == [((0, 1),), ((2, 3),), ()]
    assert [node.memory_bytes for node in server.numa_nodes] == [2.0**30, 2.0**31, 96 * 2.0**30]
    assert [node.free_bytes for node in server.numa_nodes] == [2.0**29, 0.0, 96 * 2.0**30]
    assert server.numa_nodes[2].distances == (80, 80, 10)


def test_texts_may_also_be_in_one_file_and_in_utf_16(tmp_path):
    (tmp_path / "all.txt").write_text(MATRIX + NUMACTL + LINKS, encoding="utf-16")

    joined = read_files([tmp_path / "all.txt"]).server
    apart = read(tmp_path, MATRIX, NUMACTL, LINKS)
    assert (joined.gpus, joined.numa_nodes, joined.tokens) == (
        apart.gpus,
        apart.numa_nodes,
        apart.tokens,
    )


def test_a_sysfs_tree_gives_nodes_and_rates_of_active_ports(tmp_path):
    (tmp_path / "topo.txt").write_text(MATRIX, encoding="utf-8")
    for root in (sysfs(tmp_path), tmp_path):
        server = read_files([tmp_path / "topo.txt", root]).server

        assert [node.memory_bytes for node in server.numa_nodes] == [2.0**20, 2.0**21]
        assert [node.free_bytes for node in server.numa_nodes] == [2.0**19, None]
        assert (server.nics[0].numa_node, server.nics[0].bandwidth_bytes_per_s) == (0, 25e9)


def test_nodes_of_a_gpu_are_those_of_its_cpus_where_no_column_has_them(tmp_path):
    server = read(tmp_path, "\tGPU0\tCPU Affinity\nGPU0\t X \t1-2\n", NUMACTL)

    assert server.gpus[0].numa_nodes == (0, 1)


def test_cpus_of_nodes_may_be_wrapped_or_compressed():
    lines = NUMACTL.replace("cpus: 2 3", "cpus: 2 3 4\n5 6\n7").split("\n")
    packed = NUMACTL.replace("cpus: 2 3", "cpus: 2-4, 5-7 (6)").split("\n")

    assert read_numa_nodes(lines)[1].cpus == read_numa_nodes(packed)[1].cpus == ((2, 7),)


@given(
    numbers=st.lists(st.integers(0, 40), min_size=1, max_size=5, unique=True),
    shape=st.randoms(use_true_random=False),
)
@settings(max_examples=40)
def test_nodes_are_read_as_the_command_writes_them(numbers, shape):
    """Any nodes, also without CPUs or memory, and any distances."""
    nodes = sorted(numbers)
    cpus = {node: sorted(shape.sample(range(64), shape.randint(0, 9))) for node in nodes}
    sizes = {node: shape.choice([0, 96_000, 490_037]) for node in nodes}
    distances = {node: [shape.choice([10, 21, 255]) for _ in nodes] for node in nodes}
    lines = [f"available: {len(nodes)} nodes ({','.join(map(str, nodes))})"]
    for node in nodes:
        lines.append(f"node {node} cpus:{''.join(f' {cpu}' for cpu in cpus[node])}")
        lines += [f"node {node} size: {sizes[node]} MB", f"node {node} free: 0 MB"]
    lines += ["node distances:", "node " + "".join(f"{node:4}" for node in nodes)]
    lines += [f"{node:3}: " + "".join(f"{far:4}" for far in distances[node]) for node in nodes]
    read = read_numa_nodes(lines)

    assert [node.number for node in read] == nodes
    for node in read:
        assert list(numbers_in(node.cpus)) == cpus[node.number]
        assert node.memory_bytes == sizes[node.number] * 2.0**20
        assert list(node.distances) == distances[node.number]


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 NVL", "h100_nvl"),
        ("NVIDIA A100-PCIE-40GB", "a100_pcie"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA RTX A6000", "rtxa6000"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx2080ti"),
        ("Graphics Device", None),
    ],
)
def test_models_are_those_of_product_names(product, model):
    assert model_of(product) == model


def test_a_list_of_whole_gpus_skips_their_parts_and_inactive_links():
    lines = [
        "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-1)",
        "  MIG 1g.10gb     Device  0: (UUID: MIG-feb88891)",
        "NVML: Unable to retrieve NVLink information as all links are inActive",
        "GPU 1,2: NVIDIA H100",
        "GPU 3 Compute Capability: 9.0",
    ]

    assert [(gpu.number, gpu.links) for gpu in read_gpu_list(lines)] == [(0, ()), (1, ()), (2, ())]


LISTED = "GPU 0: NVIDIA H100 (UUID: G)\n"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([NUMACTL], "must have a matrix of nvidia-smi topo -m, got none"),
        ([MATRIX, MATRIX], "both have a matrix of topo -m"),
        ([MATRIX, NUMACTL, NUMACTL], "both have NUMA nodes"),
        (["[tool.ruff]\n"], "must be the output of nvidia-smi topo -m .*; got none of them"),
        ([MATRIX, NUMACTL.replace("(0-1,8)", "(0-1)")], "line 1: 3 nodes must be listed"),
        ([MATRIX, NUMACTL.replace("node 1 cpus: 2 3\n", "")], "cpus must be given of nodes 0 1 8"),
        ([MATRIX, NUMACTL.replace("node 8 free: 96 GB\n", "")], "free must be given of nodes 0 1"),
        ([MATRIX, NUMACTL.replace("  8:  80  80  10\n", "")], "distances must be given of nodes"),
        ([MATRIX, NUMACTL.replace("21  10  80", "21  10")], "line 14: distances of node 1 must be"),
        ([MATRIX, NUMACTL.replace("node 1 size", "node 0 size")], "size of node 0 is given twice"),
        ([MATRIX, NUMACTL.replace("cpus: 2 3", "cpus: 3 2")], "line 5: CPUs must rise"),
        ([MATRIX, NUMACTL.replace("size: 1024 MB", "size: 1024 MB\n7 8")], "a line was cut"),
        (
            [MATRIX.replace("2-3\t1", "2-3\t4"), NUMACTL],
            "GPU1 is near NUMA node 4, which is of non",
        ),
        ([MATRIX.replace("2-3\t1", "2-5\t1"), NUMACTL], "GPU1 is near CPU 4, which is of none"),
        ([MATRIX, LINKS.replace("GPU 1:", "GPU 7:")], "the list has GPUs 7, the matrix has 0, 1"),
        ([MATRIX, LINKS.replace("Link 1", "Link 3")], "line 3: links of GPU 0 must be numbered"),
        ([MATRIX, LINKS.replace("Link 1: 25.781", "Link 1: 20")], "must have one line rate"),
        ([MATRIX.replace("NV2", "NV4"), LINKS], "GPU0 has 2 active NVLinks, which does not fit"),
        ([MATRIX.replace("NV2", "SYS"), LINKS], "leaves them out"),
        ([MATRIX, LISTED, LISTED.replace("0:", "1:") + LISTED + "GPU 0: NVIDIA A30\n"], "is 'NVID"),
    ],
)
def test_contradictions_and_damage_are_refused(texts, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, *texts)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("devices/system/node/node0/cpulist", "0-", "cpulist: must be numbers and ranges"),
        ("devices/system/node/node1/distance", "21 x", "distance: must be numbers, got '21 x'"),
        ("class/infiniband/mlx5_0/ports/1/rate", "fast", "must be a rate such as '200 Gb/sec"),
        ("class/infiniband/mlx5_0/device/numa_node", "a", "must be a node, or -1 if not known"),
    ],
)
def test_files_of_a_sysfs_tree_are_checked(name, text, message, tmp_path):
    root = sysfs(tmp_path)
    (root / name).write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match=re.escape(message)):
        read_files([root])


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "bytes.txt").write_bytes(b"\xff\x00\x81")
    (tmp_path / "empty").mkdir()

    for name, message in (
        ("none.txt", "none.txt: cannot be read: No such file"),
        ("bytes.txt", "bytes.txt: cannot be read: not UTF-8"),
        ("empty", "empty: must be the root of a sysfs tree"),
    ):
        with pytest.raises(ValueError, match=message):
            read_files([tmp_path / name])
