"""Network files of ASTRA-sim with changed entries."""

import json
from pathlib import Path

from astra_sim.files.network_config import Dimension

RING4 = {
    "topology": ["Ring"],
    "npus_count": [4],
    "bandwidth": [50.0],
    "latency": [500.0],
}


def dimension(topology="Ring", num_npus=4, bandwidth_gb_per_s=50.0, latency_ns=500.0) -> Dimension:
    return Dimension(
        topology=topology,
        num_npus=num_npus,
        bandwidth_gb_per_s=bandwidth_gb_per_s,
        latency_ns=latency_ns,
    )


def written(tmp_path: Path, **changes: object) -> Path:
    return written_as(tmp_path, RING4 | changes)


def written_as(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "network.yml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))  # JSON is YAML
    return path
