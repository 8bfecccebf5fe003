"""Reader of PCI addresses: ``nvidia-smi --query-gpu=index,pci.bus_id --format=csv``, and sysfs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from des.devices.server import Server

_ROW = re.compile(r"\s*(\d+)\s*,\s*([0-9A-Fa-f]{4,8}(?::[0-9A-Fa-f]{2}){2}\.[0-7])\s*")
_ADDRESS = re.compile(r"(?:0{4})?([0-9a-f]{4}(?::[0-9a-f]{2}){2}\.[0-7])")
_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")


def bus_address(text: str) -> str:
    """Address of a PCI device as Kubernetes has it: domain, bus, device and function.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> bus_address("00000000:1B:00.0")
    '0000:1b:00.0'
    """
    found = _ADDRESS.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"PCI address must be such as 0000:1b:00.0, got {text!r:.80}")
    return found[1]


def read_pci_list(lines: Sequence[str]) -> dict[int, str]:
    """Read the PCI addresses that some lines list, by number of the GPU; empty without any.

    Raises
    ------
    ValueError
        If a GPU is listed twice, naming the line.
    """
    found: dict[int, str] = {}
    for number, line in enumerate(lines, start=1):
        row = _ROW.fullmatch(line)
        if row is None:
            continue
        if int(row[1]) in found:
            raise ValueError(f"line {number}: GPU {row[1]} must have one PCI address, got two")
        found[int(row[1])] = bus_address(row[2])
    return found


def with_pci_addresses(server: Server, addresses: Mapping[int, str]) -> Server:
    """Return the server with the PCI addresses of its GPUs.

    Raises
    ------
    ValueError
        If an address is of none of its GPUs, or two are equal.
    """
    numbers = [gpu.number for gpu in server.gpus]
    extra = sorted(set(addresses) - set(numbers))
    if extra or len(set(addresses.values())) < len(addresses):
        what = f"GPU {extra[0]}" if extra else "the same address twice"
        raise ValueError(
            f"{server.name}: PCI addresses must be of GPUs {', '.join(map(str, numbers))}, "
            f"one each; got {what}"
        )
    gpus = (
        replace(gpu, pci_address=addresses.get(gpu.number, gpu.pci_address)) for gpu in server.gpus
    )
    return replace(server, gpus=tuple(gpus))


def with_pcie_roots(server: Server, root: Path) -> Server:
    """Return the server with the PCIe roots of GPUs whose addresses a sysfs tree has."""
    base = root / "sys" if (root / "sys").is_dir() else root
    gpus = []
    for gpu in server.gpus:
        path = base / "bus/pci/devices" / (gpu.pci_address or "none")
        parts = path.resolve().parts if path.exists() else ()
        above = next((part for part in parts if _ROOT.fullmatch(part)), gpu.pcie_root)
        gpus.append(replace(gpu, pcie_root=above))
    return replace(server, gpus=tuple(gpus))
