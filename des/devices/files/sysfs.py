"""Reader of sysfs: NUMA nodes and network cards of a Linux machine, from the root of the tree."""

import re
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import prefixed_errors, system_errors
from des.devices.server import NumaNode
from des.devices.spans import Span, parse_spans

_KIB = 1024.0
_MEMORY = re.compile(r"^Node \d+ Mem(Total|Free):\s*(\d+) kB\s*$", re.MULTILINE)
_RATE = re.compile(r"([\d.]+) Gb/sec\b.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SysfsCard:
    """A network card: name, NUMA node and line rate of its active ports, None if not known."""

    device: str
    numa_node: int | None = None
    bandwidth_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysfs:
    """NUMA nodes and network cards that a sysfs tree has."""

    numa_nodes: tuple[NumaNode, ...]
    cards: tuple[SysfsCard, ...]


def read_sysfs(root: Path) -> Sysfs:
    """Read ``devices/system/node`` and ``class/infiniband`` below a root, ``/sys`` or a copy of it.

    Raises
    ------
    ValueError
        If the root has no NUMA nodes, or a file in it says nothing known; names the file.
    """
    base = root / "sys" if (root / "sys").is_dir() else root
    folders = sorted(
        (base / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])
    )
    if not folders:
        raise ValueError(
            f"{root}: must be the root of a sysfs tree, with devices/system/node/node0"
        )
    cards = sorted((base / "class/infiniband").glob("*"), key=lambda path: path.name)
    return Sysfs(
        numa_nodes=tuple(_node(folder) for folder in folders),
        cards=tuple(_card(folder) for folder in cards),
    )


def _node(folder: Path) -> NumaNode:
    distances = _read(folder / "distance").split()
    if not all(word.isdigit() for word in distances):
        raise ValueError(f"{folder / 'distance'}: must be numbers, got {' '.join(distances)!r}")
    memory = {name: float(size) * _KIB for name, size in _MEMORY.findall(_read(folder / "meminfo"))}
    return NumaNode(
        number=int(folder.name[4:]),
        cpus=_cpus(folder / "cpulist"),
        memory_bytes=memory.get("Total"),
        free_bytes=memory.get("Free"),
        distances=tuple(int(word) for word in distances),
    )


def _cpus(path: Path) -> tuple[Span, ...]:
    text = _read(path).strip()
    with prefixed_errors(f"{path}: "):
        return parse_spans(text) if text else ()


def _card(folder: Path) -> SysfsCard:
    path = folder / "device/numa_node"
    node = _read(path).strip() if path.exists() else "-1"
    if not re.fullmatch(r"-1|\d+", node):
        raise ValueError(f"{path}: must be a node, or -1 if not known, got {node!r}")
    rates = [
        _rate(port / "rate")
        for port in sorted((folder / "ports").glob("[0-9]*"))
        if "ACTIVE" in _read(port / "state")
    ]
    return SysfsCard(
        device=folder.name,
        numa_node=int(node) if node != "-1" else None,
        bandwidth_bytes_per_s=sum(rates) if rates else None,
    )


def _rate(path: Path) -> float:
    text = _read(path).strip()
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{path}: must be a rate such as '200 Gb/sec (4X HDR)', got {text!r}")
    return float(found[1]) * 1e9 / 8


def _read(path: Path) -> str:
    with system_errors(f"{path}: cannot be read"):
        return path.read_text(encoding="utf-8")
