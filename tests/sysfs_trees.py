"""Trees as sysfs has them: NUMA nodes, and devices on PCIe below their roots."""

from collections.abc import Mapping
from pathlib import Path

DISTANCES = ("10 21", "21 10")


def pcie_tree(folder: Path, roots: Mapping[str, str]) -> Path:
    """Write a tree of two NUMA nodes with devices, by PCI address, below roots; gives its root."""
    sysfs = folder / "sys"
    for number, distances in enumerate(DISTANCES):
        node = sysfs / f"devices/system/node/node{number}"
        node.mkdir(parents=True)
        (node / "distance").write_text(distances, "utf-8")
        (node / "meminfo").write_text(f"Node {number} MemTotal: 1024 kB\n", "utf-8")
        (node / "cpulist").write_text(f"{number * 96}-{number * 96 + 95}", "utf-8")
    (sysfs / "bus/pci/devices").mkdir(parents=True)
    for address, root in roots.items():
        below = sysfs / f"devices/{root}/0000:ff:01.0" / address
        below.mkdir(parents=True)
        (sysfs / "bus/pci/devices" / address).symlink_to(below)
    return sysfs
