"""Server read from files about one machine; the kind of each is found from its text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from des.base.checks import prefixed_errors, system_errors
from des.devices.files.gpu_list import ListedGpu, read_gpu_list, with_gpu_list
from des.devices.files.joining import with_cards, with_numa_nodes
from des.devices.files.link_matrix import LinkMatrix
from des.devices.files.matrix_text import has_matrix, read_matrix
from des.devices.files.numactl import has_lscpu, has_numa_nodes, read_lscpu, read_numa_nodes
from des.devices.files.pasted import plain_lines
from des.devices.files.pci_list import read_pci_list, with_pci_addresses, with_pcie_roots
from des.devices.files.rocm_topology import has_rocm_topology, read_rocm_topology
from des.devices.files.sysfs import SysfsCard, read_sysfs
from des.devices.server import NumaNode, Server

_KNOWN = (
    "the output of nvidia-smi topo -m (or -mp), nvidia-smi -L, nvidia-smi nvlink --status, "
    "nvidia-smi --query-gpu=index,pci.bus_id --format=csv, numactl --hardware, lscpu or "
    "rocm-smi --showtopo (or the root of a sysfs tree)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadServer:
    """A server, and the matrix that it was read from, as printed."""

    server: Server
    matrix: LinkMatrix


@dataclass(slots=True, kw_only=True)
class _Found:
    """Readings of all files, each with the file that it is from."""

    matrices: list[tuple[Path, LinkMatrix]] = field(default_factory=list)
    nodes: list[tuple[Path, tuple[NumaNode, ...]]] = field(default_factory=list)
    lists: list[tuple[Path, tuple[ListedGpu, ...]]] = field(default_factory=list)
    cards: list[tuple[Path, tuple[SysfsCard, ...]]] = field(default_factory=list)
    addresses: list[dict[int, str]] = field(default_factory=list)


def read_files(paths: Sequence[Path], *, strict: bool = False) -> ReadServer:
    """Read a server from files about it, each with one text or several.

    Parameters
    ----------
    paths
        Files, one of which has the matrix of ``nvidia-smi topo -m`` or ``-mp``, or the tables of
        ``rocm-smi --showtopo``.
    strict
        See `des.devices.files.matrix_text.read_matrix`.

    Raises
    ------
    ValueError
        If a file cannot be read, is damaged or holds none of the texts, if not exactly one has a
        matrix, or if files contradict each other; names the file.
    """
    found = _Found()
    for path in paths:
        if path.is_dir():
            tree = read_sysfs(path)
            found.nodes.append((path, tree.numa_nodes))
            found.cards.append((path, tree.cards))
        else:
            _read_text(path, found, strict=strict)
    for what, given in (("a matrix of topo -m", found.matrices), ("NUMA nodes", found.nodes)):
        if len(given) > 1:
            raise ValueError(f"{', '.join(str(path) for path, _ in given)}: both have {what}")
    if not found.matrices:
        raise ValueError(
            f"{', '.join(map(str, paths))}: must have a matrix of nvidia-smi topo -m, got none"
            f"{_describe_lists(found)}"
        )
    path, matrix = found.matrices[0]
    server = matrix.server(str(path))
    for _, nodes in found.nodes:
        server = with_numa_nodes(server, nodes)
    for _, listed in found.lists:
        server = with_gpu_list(server, listed)
    for addresses in found.addresses:
        server = with_pci_addresses(server, addresses)
    for root, cards in found.cards:
        server = with_pcie_roots(with_cards(server, cards), root)
    return ReadServer(server=server, matrix=matrix)


def _describe_lists(found: _Found) -> str:
    """Say what the lists of GPUs hold in place of a matrix, with MIG devices by name."""
    gpus = [gpu for _, listed in found.lists for gpu in listed]
    divided = (f"GPU {gpu.number} with {', '.join(gpu.mig_devices)}" for gpu in gpus
               if gpu.mig_devices)  # fmt: skip
    named = "; ".join(divided)
    parts = f", divided into MIG devices: {named}" if named else ""
    return f" but a list of {len(gpus)} GPUs{parts}" if gpus else ""


def _read_text(path: Path, found: _Found, *, strict: bool) -> None:
    lines = plain_lines(_text(path))
    with prefixed_errors(f"{path}: "):
        listed = read_gpu_list(lines)
        is_numa, is_lscpu = has_numa_nodes(lines), has_lscpu(lines)
        addresses = read_pci_list(lines)
        if has_rocm_topology(lines):
            found.matrices.append((path, read_rocm_topology(lines)))
        elif has_matrix(lines):
            found.matrices.append((path, read_matrix(lines, strict=strict)))
        elif not (listed or is_numa or is_lscpu or addresses):
            got = "none of them" if any(lines) else "an empty file"
            raise ValueError(f"must be {_KNOWN}; got {got}")
        if is_numa:
            found.nodes.append((path, read_numa_nodes(lines)))
        if is_lscpu:
            found.nodes.append((path, read_lscpu(lines)))
    if addresses:
        found.addresses.append(addresses)
    if listed:
        found.lists.append((path, listed))


def _text(path: Path) -> str:
    """Read a file in UTF-8, or in UTF-16 as Windows writes the output of programs."""
    with system_errors(f"{path}: cannot be read"):
        content = path.read_bytes()
    coding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    try:
        return content.decode(coding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read: not UTF-8 text") from error
