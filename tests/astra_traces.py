"""Files of runs of the ASTRA-sim engine for tests, written with the real Chakra package."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from chakra.schema.protobuf.et_def_pb2 import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    REDUCE_SCATTER,
    Node,
)

from bench.execution_traces import (
    As,
    collective,
    compute,
    memory,
    node,
    receive,
    send,
    write_traces,
)

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "BARRIER",
    "BROADCAST",
    "REDUCE_SCATTER",
    "As",
    "Case",
    "Node",
    "collective",
    "compute",
    "memory",
    "network_file",
    "node",
    "receive",
    "send",
    "system_file",
    "write_traces",
]

FLAGS = {
    "system-configuration": "system.json",
    "remote-memory-configuration": "remote_memory.json",
    "network-configuration": "network.yml",
}


def network_file(
    topology: str | Sequence[str] = "Ring",
    npus: int | Sequence[int] = 4,
    bandwidth: float | Sequence[float] = 50.0,
    latency: float | Sequence[float] = 500.0,
    **more: object,
) -> dict[str, Any]:
    """Content of a ``network.yml``; a single value means one dimension."""
    lists = {"topology": topology, "npus_count": npus, "bandwidth": bandwidth, "latency": latency}
    return {
        key: list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        for key, value in lists.items()
    } | more


def system_file(algorithm: str | Sequence[str] = "ring", **more: object) -> dict[str, Any]:
    """Content of a ``system.json``: one algorithm for all collectives, a list by dimension.

    Keys of ``more`` have underscores for the hyphens of the file, as in
    ``preferred_dataset_splits=4``; None leaves a key out.
    """
    names = [algorithm] if isinstance(algorithm, str) else list(algorithm)
    content = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 10,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "all-reduce-implementation": names,
        "all-gather-implementation": names,
        "reduce-scatter-implementation": names,
        "all-to-all-implementation": names,
        "collective-optimization": "localBWAware",
        "local-mem-bw": 1600,
        "roofline-enabled": 0,
        "peak-perf": 900,
    } | {
        key if key in ("L", "o", "g", "G") else key.replace("_", "-"): value
        for key, value in more.items()
    }
    return {key: value for key, value in content.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything a run reads: nodes of every NPU and the contents of the configuration files."""

    ranks: Sequence[Sequence[Node]]
    network: Mapping[str, Any] = field(default_factory=network_file)
    system: Mapping[str, Any] = field(default_factory=system_file)
    memory: Mapping[str, Any] = field(
        default_factory=lambda: {"memory-type": "NO_MEMORY_EXPANSION"}
    )
    groups: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def write(self, folder: Path) -> list[str]:
        """Write all files and return the flags that name them."""
        prefix = write_traces(folder, self.ranks)
        self.write_configurations(folder)
        flags = [f"--workload-configuration={prefix}"]
        flags += [f"--{flag}={folder / name}" for flag, name in FLAGS.items()]
        flags.append(f"--logging-folder={folder / 'log'}")
        if self.groups:
            flags.append(f"--comm-group-configuration={folder / 'comm_group.json'}")
        return flags

    def changed(self, **changes: Any) -> "Case":
        """Return a case in which some parts differ."""
        return replace(self, **changes)

    def write_configurations(self, folder: Path) -> None:
        """Write all files but the traces."""
        contents = {"system": self.system, "remote_memory": self.memory, "comm_group": self.groups}
        for name, content in contents.items():
            (folder / f"{name}.json").write_text(json.dumps(dict(content)), "utf-8")
        (folder / "network.yml").write_text(yaml.safe_dump(dict(self.network)), "utf-8")
