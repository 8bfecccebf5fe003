"""ASTRA-sim's packet-level backend, ns-3: a user's binary, physical topology and configuration."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from calibration.cases.case import PlacementCase
from calibration.cases.case_key import binary_version
from calibration.reference.astra_config import logical_topology_json

_LOGICAL = "logical_topology.json"
_CONFIG = "config.txt"
_TOPOLOGY_LINE = re.compile(r"^[ \t]*TOPOLOGY_FILE\b.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ns3:
    """User's program and settings for the packet-level backend.

    Parameters
    ----------
    binary
        The program ``AstraSimNetwork``, which is run in its own folder, as its manual does: so
        relative paths in the configuration are relative to that.
    config
        Text file of ns-3's settings. Its ``TOPOLOGY_FILE`` is replaced.
    physical_topology
        Text file of hosts, switches and links; host i is NPU i.

    References
    ----------
    .. [1] https://astra-sim.github.io/astra-sim-docs/network-backend/ns3-network-backend.html
    """

    binary: Path
    config: Path
    physical_topology: Path

    def version(self) -> str:
        """Digest of all three, and of the sources that write the inputs.

        Raises
        ------
        ValueError
            If one cannot be read.
        """
        digest = hashlib.sha256()
        for path in (self.config, self.physical_topology):
            content = _read(path)
            digest.update(f"{len(content)}\n".encode() + content)
        return f"{binary_version(self.binary)}-{digest.hexdigest()[:16]}"


def write_ns3_files(case: PlacementCase, ns3: Ns3, folder: Path) -> Mapping[str, str]:
    """Write the logical topology and the configuration, and return the flags that name them.

    Raises
    ------
    ValueError
        If a file of the user cannot be read.
    OSError
        If the folder cannot be written.
    """
    topology = ns3.physical_topology.resolve()
    _check_hosts(topology, case.num_npus)
    line = f"TOPOLOGY_FILE {topology}"
    config = _read(ns3.config).decode(errors="surrogateescape")
    if _TOPOLOGY_LINE.search(config):
        config = _TOPOLOGY_LINE.sub(lambda _: line, config)
    else:
        config = f"{line}\n{config}"
    (folder / _CONFIG).write_bytes(config.encode(errors="surrogateescape"))
    (folder / _LOGICAL).write_text(logical_topology_json(case), "utf-8")
    return {
        "network-configuration": str(folder / _CONFIG),
        "logical-topology-configuration": str(folder / _LOGICAL),
    }


def _check_hosts(path: Path, num_npus: int) -> None:
    """Refuse a physical topology of another number of hosts, with which the program would hang."""
    first = _read(path).decode(errors="replace").partition("\n")[0].split()
    if len(first) != 3 or not all(word.isdecimal() for word in first):
        raise ValueError(
            f"ns3: {path}: first line must have the numbers of nodes, switches and links, "
            f"got {' '.join(first)!r}"
        )
    num_hosts = int(first[0]) - int(first[1])
    if num_hosts != num_npus:
        raise ValueError(
            f"ns3: {path}: nodes that are no switches must be the {num_npus} NPUs of the case, "
            f"got {num_hosts}"
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"ns3: {path}: cannot be read: {error.strerror}") from error
