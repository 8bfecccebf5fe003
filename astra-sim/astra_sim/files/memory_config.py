"""ASTRA-sim's ``remote_memory.json``: memory outside the NPUs."""

import warnings
from pathlib import Path
from typing import Literal, get_args

from astra_sim.base.values import dataclass
from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.json_fields import JsonFields, Warn, read_json_fields, require_whole, shown

MemoryKind = Literal["unset", "none", "per_npu", "per_node", "pool"]
"""``unset``: a file without a type, which only a memory node makes an error."""

KIND_OF_TYPE: dict[str, MemoryKind] = {
    "NO_MEMORY_EXPANSION": "none",
    "PER_NPU_MEMORY_EXPANSION": "per_npu",
    "PER_NODE_MEMORY_EXPANSION": "per_node",
    "MEMORY_POOL": "pool",
}

UNSIGNED_INT_BITS = 32
"""Bits of a latency or bandwidth in the original."""

NUMBER_KEYS = {
    "latency_ns": "remote-mem-latency",
    "bandwidth_bytes_per_ns": "remote-mem-bw",
    "num_nodes": "num-nodes",
    "num_npus_per_node": "num-npus-per-node",
}
"""Key of each number, by the name of its field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """Remote memory of every NPU, of every node of NPUs, of all together, or none.

    ``num_nodes`` and ``num_npus_per_node`` count only where the memory is that of nodes. Errors
    name the keys of the file.
    """

    kind: MemoryKind = "none"
    latency_ns: int = 0
    bandwidth_bytes_per_ns: int = 0
    num_nodes: int = 0
    num_npus_per_node: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(MemoryKind):
            allowed = ", ".join(get_args(MemoryKind))
            raise AstraSimError(f"memory: kind must be one of {allowed}; got {shown(self.kind)}")
        at_least = 1 if self.kind == "per_node" else 0
        require_whole("remote-mem-latency", self.latency_ns, 0, UNSIGNED_INT_BITS)
        require_whole("remote-mem-bw", self.bandwidth_bytes_per_ns, 0, UNSIGNED_INT_BITS)
        require_whole("num-nodes", self.num_nodes, at_least)
        require_whole("num-npus-per-node", self.num_npus_per_node, at_least)

    def duration_ns(self, num_bytes: int) -> int:
        """Time of one load or store that waits for no other; without bandwidth only the latency.

        Examples
        --------
        >>> MemoryConfig(kind="pool", latency_ns=333, bandwidth_bytes_per_ns=7).duration_ns(1000)
        475
        """
        if not self.bandwidth_bytes_per_ns:
            return self.latency_ns
        return self.latency_ns + int(float(num_bytes) / self.bandwidth_bytes_per_ns)


def read_memory_config(path: str | Path, warn: Warn = warnings.warn) -> MemoryConfig:
    """Read a ``remote_memory.json``; ``warn`` gets the keys that mean nothing.

    Figures that a pool lacks are 0, as in the original, which ``warn`` gets as well.

    Raises
    ------
    AstraSimError
        If the file cannot be read or there is no such type of memory.
    AbortError
        If it is no JSON object, or a value is of a wrong type, negative or missing.
    """
    fields = read_json_fields(path, kind="remote memory")
    keys = tuple(NUMBER_KEYS.values())
    fields.warn_of_others(("memory-type", *keys), warn)
    kind = _kind(fields)
    if kind not in ("unset", "none"):
        for key in keys if kind == "per_node" else keys[:2]:
            if key in fields.content:
                continue
            given = fields.content["memory-type"]
            if kind != "pool":
                raise AbortError(f"{fields.source}: {key}: must be given for {given}, got nothing")
            warn(f"{fields.source}: {key}: not given for {given}, read as 0")
    try:
        numbers = {name: fields.whole(key, 0) for name, key in NUMBER_KEYS.items()}
        return MemoryConfig(kind=kind, **numbers)
    except AbortError as error:
        raise type(error)(f"{fields.source}: {error}") from error


def _kind(fields: JsonFields) -> MemoryKind:
    name = fields.text("memory-type")
    if name is None:
        return "unset"
    if name not in KIND_OF_TYPE:
        allowed = ", ".join(KIND_OF_TYPE)
        raise AstraSimError(
            f"{fields.source}: memory-type: must be one of {allowed}; got {shown(name)}"
        )
    return KIND_OF_TYPE[name]
