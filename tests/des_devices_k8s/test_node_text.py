"""Labels and annotation of a node: read back, and damaged ones refused."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from sysfs_trees import pcie_tree
from topo_outputs import READABLE, servers

from des.devices.files.server_files import read_files
from des.devices.k8s.node_text import read_server_annotation, server_annotation, server_labels
from des.devices.presets import simulated


def essence(server):
    """Server without what the annotation leaves out: CPUs and NUMA nodes with their memory."""
    gpus = (replace(gpu, cpus=(), memory_numa_node=None) for gpu in server.gpus)
    nics = (replace(nic, bandwidth_bytes_per_s=None) for nic in server.nics)
    return replace(server, gpus=tuple(gpus), nics=tuple(nics), numa_nodes=())


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_recorded_servers_are_read_back(path):
    server = read_files([path]).server

    assert read_server_annotation(server_annotation(server), server.name) == essence(server)


@given(server=servers())
def test_any_server_is_read_back(server):
    assert read_server_annotation(server_annotation(server), server.name) == essence(server)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": 2}, "format"),
        ({"gpu": []}, "gpu: unknown key"),
        ({"gpus": [{"index": -1}]}, "index"),
        ({"matrix": ["X NV1", "NV2 X"]}, "must be the same both ways|rows"),
    ],
)
def test_damaged_annotations_are_refused(change, match):
    content = json.loads(server_annotation(simulated("a100-pairs-4"))) | change

    with pytest.raises(ValueError, match=match):
        read_server_annotation(json.dumps(content), "n")


def test_labels_name_model_and_groups():
    labels = server_labels(simulated("a100-pairs-4"), "example.com")

    assert labels == {
        "example.com/gpu-count": "4",
        "example.com/gpu-model": "a100_pcie",
        "example.com/gpu-nvlink-groups": "2",
        "example.com/gpu-numa-nodes": "2",
        "example.com/interconnect": "nvlink-groups",
        "example.com/nvlinks": "12",
        "example.com/nvlink-bandwidth": "300GBps",
        "example.com/gpus-per-numa": "2",
        "example.com/single-numa-4gpu": "false",
        "example.com/single-numa-8gpu": "false",
    }


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("dgx-h100", ("nvlink", "18", "450GBps", "4", "true", "false")),
        ("rtx-4090-8", ("pcie", None, None, "4", "true", "false")),
        ("nvswitch", ("nvlink", "12", None, "4", "true", "false")),
    ],
)
def test_labels_say_wires_and_what_a_numa_node_holds(kind, values):
    labels = server_labels(simulated(kind), "example.com")

    names = ("interconnect", "nvlinks", "nvlink-bandwidth", "gpus-per-numa")
    keys = [f"example.com/{name}" for name in (*names, "single-numa-4gpu", "single-numa-8gpu")]
    assert tuple(map(labels.get, keys)) == values


PCI = "index, pci.bus_id\n0, 00000000:1B:00.0\n1, 00000000:3D:00.0\n"


def test_pci_addresses_and_roots_are_read(tmp_path):
    """Addresses from nvidia-smi, roots from a sysfs tree where a device is below its root."""
    (tmp_path / "pci.txt").write_text(PCI, "utf-8")
    sysfs = pcie_tree(tmp_path, {"0000:1b:00.0": "pci0000:1a"})
    topo = tmp_path / "topo.txt"
    topo.write_text("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n", "utf-8")

    server = read_files([topo, tmp_path / "pci.txt", sysfs]).server

    assert [gpu.pci_address for gpu in server.gpus] == ["0000:1b:00.0", "0000:3d:00.0"]
    assert [gpu.pcie_root for gpu in server.gpus] == ["pci0000:1a", None]
    text = server_annotation(server)
    assert read_server_annotation(text, server.name) == essence(server)


@pytest.mark.parametrize("rows", ["5, 00000000:1B:00.0\n", "0, 0000:1B:00.0\n0, 0000:1C:00.0\n"])
def test_pci_addresses_of_other_gpus_are_refused(rows, tmp_path):
    topo, pci = tmp_path / "topo.txt", tmp_path / "pci.txt"
    topo.write_text("\tGPU0\nGPU0\tX\n", "utf-8")
    pci.write_text(rows, "utf-8")

    with pytest.raises(ValueError, match=r"PCI address"):
        read_files([topo, pci])
