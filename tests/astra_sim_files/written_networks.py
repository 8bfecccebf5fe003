"""Network files of ASTRA-sim with changed entries."""

from pathlib import Path

from written_files import file_of

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
    return file_of(tmp_path, "network.yml", content)
